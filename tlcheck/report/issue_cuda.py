"""The CUDA of an issue: how it differs from that of a right kernel, or the lines that the finding is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from tlcheck.remedy.issue import CudaChange, Issue, SharedBytes
from tlcheck.targets.lookup import target
from tlcheck.verdicts.claim import FindingOrigin

_COLUMNS, _OF_A_SIDE = 160, 4
_READABLE = 100  # columns: in longer lines indices are left out
_ORDERING = r"(?<!warpgroup_)(wait|syncthreads|sync_thread|fence|arrive|commit)(?!_operand)"  # in names of functions
_MISSING = {"a barrier": r"sync(threads|_thread)|named_barrier", "fence": r"fence_proxy", "a wait": r"wait"}
_FENCES = {"CUDA": "cuda", "HIP": "cpp"}  # what GitHub colours the code as
_LEAST = 5  # lines of a kernel that are worth showing
_IDLE = re.compile("warpgroup_fence_operand")  # for the compiler alone
_MERGED = re.compile(r"\bbuf_(dyn_)?shmem\b")
_LOOP = re.compile(r"for \(int (\w+) =")
_THREADS = frozenset(["int", "threadIdx", "blockIdx", "x", "y", "z"])


def section(issue: Issue, room: int) -> Iterator[str]:
    """Yield the first of these that there is, and that fits: all that differs from a kernel that is right; what differs
    of the order of accesses; the kernel; its lines that the finding is about; what differs there; the kernel in part.
    """
    finding, generated = issue.claim.finding, issue.generated or ()
    told = finding.origin if finding is not None else None
    origin = _as_named(told, generated)
    about, run = _about(origin, _ORDERING), issue.reduced.result.run
    language, release = language_of(run.target), run.release
    if issue.overlap is not None:
        yield from (_overlap(issue.overlap), "")
        room -= 2
    hunks = [_short(hunk) for hunk in issue.cuda.hunks] if issue.cuda is not None else []
    ordering = [hunk for hunk in hunks if _orders(origin, hunk)]
    named = [hunk for hunk in hunks if any(about.search(line) for line in hunk if line[0] in "-+")]
    excerpt = [] if origin is None else _excerpt(generated, origin, room)
    if hunks and _size(hunks) <= room:
        yield from _difference(issue.cuda, hunks, f"**{language}**: {release}", "")
    elif ordering and _size(ordering) <= room:
        yield from _difference(issue.cuda, ordering, f"**{language}**: {release}", ", in part")
    elif generated and len(generated) <= room:
        yield from _listing(language, f"of {release}, without declarations", [*map(_cut, generated)])
    elif excerpt and origin is not None:
        where = f", where `{told.buffers[0]}` lies" if told is not None and told != origin else ""
        yield from _listing(language, f"of {release}, the lines about `{origin.buffers[0]}`{where}", excerpt)
    elif some := _fitting(named, room):
        yield from _difference(issue.cuda, some, f"**{language}**: {release}", ", in part")
    elif issue.generated == ():
        yield from (f"**{language}** of {release}: the kernel does nothing.", "")
    elif generated and room >= _LEAST:
        rows = [*map(_cut, generated[: room - 1]), f"  // {len(generated) - room + 1} lines more"]
        yield from _listing(language, f"of {release}, without declarations", rows)


def language_of(arch: str) -> str:
    """Return what the generated source is written in."""
    return "HIP" if target(arch).family == "amd" else "CUDA"


def _as_named(origin: FindingOrigin | None, generated: Sequence[str]) -> FindingOrigin | None:
    """An origin with the buffers that the CUDA names: some releases merge those in shared memory into one."""
    merged = next((found[0] for line in generated if (found := _MERGED.search(line))), "")
    if origin is None or not origin.buffers or not merged or any(map(_about(origin).search, generated)):
        return origin
    return replace(origin, buffers=(merged,))


def _overlap(found: SharedBytes) -> str:
    """Say where two buffers lie in shared memory."""
    places = ", ".join(f"`{name}` from byte {byte:,}" for name, byte in found.first.items())
    apart = f" They lie apart with {found.apart}." if found.apart else ""
    return f"**Shared memory**: {places}.{apart}"


def _about(origin: FindingOrigin | None, ordering: str = "") -> re.Pattern[str]:
    """Return what a line names that is about a finding: its buffers, and what would order two accesses."""
    words = [rf"\b({'|'.join(map(re.escape, origin.buffers))})\b"] if origin is not None and origin.buffers else []
    words += [ordering] if origin is not None and origin.kind == "unordered" and ordering else []
    return re.compile("|".join(words) or "$^")


def _orders(origin: FindingOrigin | None, hunk: Sequence[str]) -> bool:
    """Whether what differs would order two accesses that nothing orders."""
    is_order = origin is not None and origin.kind == "unordered"
    return is_order and any(re.search(_ORDERING, line) for line in hunk if line[0] in "-+")


def _size(hunks: Sequence[Sequence[str]]) -> int:
    return sum(len(hunk) + 1 for hunk in hunks)


def _fitting(hunks: Sequence[Sequence[str]], room: int) -> list[Sequence[str]]:
    """Return as many of the hunks as fit."""
    found: list[Sequence[str]] = []
    for hunk in hunks:
        if _size([*found, hunk]) <= room:
            found.append(hunk)
    return found


def _difference(change: CudaChange | None, hunks: Sequence[Sequence[str]], wrong: str, part: str) -> Iterator[str]:
    assert change is not None
    yield f"{wrong} (`-`) against {change.what} (`+`, right){part}:"
    yield "```diff"
    yield from [_cut(line) for hunk in hunks for line in ("@@", *hunk)][1:]
    yield "```"
    yield ""


def _listing(language: str, title: str, lines: Sequence[str]) -> Iterator[str]:
    yield f"**{language}** {title}:"
    yield f"```{_FENCES[language]}"
    yield from lines
    yield "```"
    yield ""


def _excerpt(lines: Sequence[str], origin: FindingOrigin, room: int) -> list[str]:
    """The lines about a finding, with what could order two accesses where that fits as well."""
    missing = next((words for name, words in _MISSING.items() if name in origin.missing), _ORDERING)
    rows: list[str] = []
    for about, gaps in product((_about(origin, missing), _about(origin)), (True, False)):
        wanted = [n for n, line in enumerate(lines) if about.search(line) and not _IDLE.search(line)]
        if len(rows := _with_blocks(lines, wanted, gaps=gaps)) <= room:
            return rows if any(map(_about(origin).search, rows)) else []
    while wanted and len(rows) > room:
        del wanted[-1]
        rows = _with_blocks(lines, wanted, gaps=False)
    return rows


def _with_blocks(lines: Sequence[str], wanted: Sequence[int], *, gaps: bool) -> list[str]:
    """Lines with the loops and conditions around them. gaps: whether `...` stands for what is between."""
    around = _around(lines)
    counters = _THREADS | {name for line in lines for name in _LOOP.findall(line)}
    kept = {each for number in wanted for each in (number, *around[number])}
    rows: list[str] = []
    for number, line in enumerate(lines):
        if number in kept and line.strip() != "{":
            rows.append(_cut(_without_indices(line, counters)))
        elif gaps and rows and line.strip() != "}" and rows[-1].strip() != "...":
            rows.append(" " * (len(line) - len(line.lstrip())) + "...")
    return rows[:-1] if rows and rows[-1].strip() == "..." else rows


def _around(lines: Sequence[str]) -> list[list[int]]:
    """Return of each line the lines that open the blocks around it; of an `else` also that of its `if`."""
    found: list[list[int]] = []
    stack: list[list[int]] = []
    for number, line in enumerate(lines):
        text = line.strip()
        closed = stack.pop() if text.startswith("}") and stack else []
        own = [each for opened in stack for each in opened]
        found.append([*own, *closed] if "else" in text else own)
        if text.endswith("{"):
            stack.append([*closed, number] if "else" in text else [number])
    return found


def _without_indices(line: str, counters: frozenset[str]) -> str:
    """A long line with `...` in the place of the longest parts that hold numbers and counters alone."""
    while len(line) > _READABLE:
        parts = [part for part in _parts(line) if not set(re.findall(r"[A-Za-z_]\w*", part[1:-1])) - counters]
        longest = max(parts, key=len, default="")
        if len(longest) < 12:
            break
        line = line.replace(longest, f"{longest[0]}...{longest[-1]}")
    return line


def _parts(line: str) -> Iterator[str]:
    """Yield the parts in parentheses or brackets, with them."""
    opened: list[int] = []
    for place, character in enumerate(line):
        if character in "([":
            opened.append(place)
        elif character in ")]" and opened:
            yield line[opened.pop() : place + 1]


def _cut(line: str) -> str:
    return line if len(line) <= _COLUMNS else f"{line[: _COLUMNS - 3]}..."


def _short(hunk: Sequence[str]) -> list[str]:
    """A place with at most a few lines of each side."""
    sides = [[line for line in hunk if line[0] == side] for side in "-+"]
    for side in sides:
        if len(side) > _OF_A_SIDE + 1:
            side[_OF_A_SIDE:] = [f"{side[0][0]}  // {len(side) - _OF_A_SIDE} lines more"]
    first = [line for line in hunk[:1] if line[0] == " "]
    return [*first, *sides[0], *sides[1], *(line for line in hunk[len(first) :] if line[0] == " ")]
