"""A finding as every report tells it: where, what, which lines, what comes of it, whose it is, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tlcheck.lower.runs import near
from tlcheck.program.release import Release
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.verdicts.claim import Claim, Finding, Weight
from tlcheck.verdicts.commands import bisect_of, explain_of, fix_of
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.source_lines import text_at
from tlcheck.witness import Accesses, Act, Addition, Element, indexed

_TOLD = 3  # consequences
_DIGITS = 9  # of a number
_LONGEST = 400  # characters of a line of the user's


@dataclass(frozen=True, slots=True)
class AccessedLine:
    """A line of the user's file with the accesses that it makes. line: 0 where it is not known."""

    line: int
    text: str
    accesses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of one kernel.

    file, line: where it is wrong; 0 where no line is known. what: a sentence. blamed: `TileLang 0.1.9`, `your kernel`.
    marks: lines that take part, the wrong one first. consequences: sentences. blame: the release and the pass; empty
    where the kernel itself is to blame. help: what to do. weight: see `Finding`. excuse: `expected: REASON`, `accepted`
    or `warning` in its place, else empty. Two that differ in the target and the words of help and witness alone are the
    same.
    """

    file: str
    line: int
    rule: str
    name: str
    what: str
    blamed: str
    kernel: str
    marks: tuple[AccessedLine, ...]
    consequences: tuple[str, ...]
    blame: str
    help: str = field(compare=False)
    weight: Weight = "error"
    excuse: str = ""
    target: str = field(default="", compare=False)
    witness: str = field(default="", compare=False)

    @property
    def is_compilers(self) -> bool:
        """Whether TileLang is to blame, and not the kernel itself."""
        return bool(self.blame)

    @property
    def place(self) -> str:
        """`kernels.py:42`, which a terminal makes clickable."""
        return f"{near(self.file)}:{self.line}" if self.line else near(self.file)

    @property
    def title(self) -> str:
        """`TLR001 unordered-accesses: nothing orders two accesses to a`."""
        what = self.what.removeprefix(f"{self.name}: ")
        return f"{self.rule} {self.name}{' (hazard)' if self.weight == 'hazard' else ''}: {what}"

    def blamed_for(self, targets: Sequence[str]) -> str:
        """`[TileLang 0.1.9, sm_80 sm_90]`, `[your kernel]`; with `expected` and the like where it does not count."""
        parts = [self.blamed, *([" ".join(targets)] if self.is_compilers and any(targets) else [])]
        parts += [self.excuse.partition(":")[0]] if self.excuse else []
        return f"[{', '.join(parts)}]"

    @property
    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield what follows the lines, each with its heading; consequences have none."""
        yield from (("", words) for words in self.consequences)
        yield "kernel", self.kernel
        if self.blame:
            yield "blame", self.blame
        if self.excuse:
            word, _, reason = self.excuse.partition(": ")
            yield word, reason
        yield "help", self.help

    @property
    def text(self) -> str:
        """All of it as plain lines, the first of them for this one kernel and target."""
        lines = [f"{self.place}: {self.title}   {self.blamed_for([self.target])}"]
        lines += marked_lines(self.marks)
        lines += [f"   {heading}: {words}" if heading else f"   {words}" for heading, words in self.rows]
        return "\n".join(lines)


def marked_lines(marks: Sequence[AccessedLine], width: int = 100) -> Iterator[str]:
    """`     42 | T.copy(A, a)   write: thread 0, TIR line 42`; accesses below their line where they do not fit."""
    aside = max((len(mark.text) for mark in marks if mark.accesses), default=0) + 3
    longest = max((len(words) for mark in marks for words in mark.accesses), default=0)
    fits = 10 + aside + longest <= width
    for mark in marks:
        head = f"{mark.line or '':>7} | "
        if fits and mark.accesses and mark.text:
            first, *others = mark.accesses
            yield f"{head}{mark.text:<{aside}}{first}"
            yield from (f"{'':>7} | {'':<{aside}}{words}" for words in others)
            continue
        if mark.text:
            yield f"{head}{mark.text}"
        yield from (f"{'':>7} |   {words}" for words in mark.accesses)


def problem_of(result: Result, claim: Claim, finding: Finding) -> Problem:
    """Tell a finding of a run."""
    run = result.run
    file, line = place_of(claim)
    release = run.tilelang
    is_authors = finding.blame == "author"
    return Problem(
        file,
        line,
        finding.rule,
        finding.name,
        finding.what,
        "your kernel" if is_authors else f"TileLang {release}",
        run.case,
        tuple(_marks(claim, finding, line)),
        tuple(_consequences(claim, finding)),
        "" if is_authors else _blame(finding, release),
        _help(result, finding),
        finding.weight,
        f"{claim.excuse.kind}: {claim.excuse.reason}" if claim.excuse is not None else "",
        run.target,
        finding.words,
    )


def place_of(claim: Claim) -> tuple[str, int]:
    """The file and line that are wrong: where it begins, if that is known, else the claim's own."""
    origin = None if claim.finding is None else claim.finding.origin
    return claim.source.file, origin.line if origin is not None and origin.line else claim.source.line


def _marks(claim: Claim, finding: Finding, line: int) -> Iterator[AccessedLine]:
    """The wrong line, then those of the other accesses, each line once."""
    accesses: dict[int, list[str]] = {line: []}
    if finding.origin is not None and finding.origin.other_line:
        accesses[finding.origin.other_line] = []
    witness = finding.witness
    if isinstance(witness, Accesses):
        acts = [witness.first] if witness.second is None else [witness.first, witness.second]
        for act in acts:
            words = _access(act, alone=len(acts) == 1)
            accesses.setdefault(act.source, []).extend([words] if words else [])
    for number, said in sorted(accesses.items(), key=lambda each: each[0] != line):
        text = text_at(claim.source.file, number)[:_LONGEST]
        note = () if number != line or claim.source.exact or claim.source.copied else (_UNKNOWN,)
        if text or said or note:
            yield AccessedLine(number, text, (*said, *note))


_UNKNOWN = "the kernel begins here; the line is not known"


def _access(act: Act, *, alone: bool) -> str:
    """`write: block (0, 0, 0), thread 0, TIR line 42`. alone: the finding says already which access it is."""
    at = "" if act.at in (Checkpoint.DEVICE_TIR, "") else f" at {act.at}"
    tir = [f"TIR line {act.line}{at}"] if act.line and act.at != Checkpoint.SOURCE else []
    where = ", ".join([*([act.place] if act.place else []), *tir])
    return where if alone else f"{act.what}: {where}" if where else act.what


def _consequences(claim: Claim, finding: Finding) -> Iterator[str]:
    """Yield where it begins, the element that shows it, and what else comes of it."""
    if finding.origin is not None:
        yield finding.origin.words
    if isinstance(finding.witness, Element):
        yield element_in_words(claim.buffer, finding.witness)
        yield from finding.witness.sum
    elif isinstance(finding.witness, Addition) and finding.origin is None:
        yield finding.words
    same = f"{finding.rule} {claim.buffer}: {finding.what}"  # at other pairs of accesses
    told = list(dict.fromkeys(words for also in claim.also for words in _consequence(also) if words != same))
    yield from told[:_TOLD]
    if len(told) > _TOLD:
        yield f"and {len(told) - _TOLD} more (-v)"


def _consequence(also: Claim) -> Iterator[str]:
    found = also.finding
    if found is not None and isinstance(found.witness, Element):
        yield element_in_words(also.buffer, found.witness)
    elif found is not None:
        yield f"{found.rule} {also.buffer}: {found.what}"


def element_in_words(buffer: str, element: Element) -> str:
    """`C[0, 0] is undefined (never written), should be 19.0; 65,536 elements differ`."""
    name = indexed(buffer, element.index)
    got = value_in_words(element.got) if element.got.startswith("poison") else _short(element.got)
    inputs = f" ({element.inputs})" if element.inputs else ""
    return f"{name} is {got}, should be {_short(element.expected)}{inputs}"


def value_in_words(got: str) -> str:
    """`undefined (never written)` for `poison: never written`; a number as it is."""
    poison, _, why = got.partition(": ")
    return got if poison != "poison" else f"undefined{f' ({why})' if why else ''}"


def _short(number: str) -> str:
    """A number with as many digits as tell it from another one; a whole number with all of them."""
    if number.lstrip("-").isdigit():
        return number
    try:
        return number if len(number) <= _DIGITS else f"{float(number):.{_DIGITS - 2}g}"
    except ValueError:
        return number


def _blame(finding: Finding, release: str) -> str:
    known = finding.history
    name = (known.pass_name if known is not None else "") or finding.pass_name
    parts = [f"TileLang {release}" + (f" ({name})" if name else "")]
    if known is not None and known.pass_name:
        parts += [known.note] if known.note else []
    elif finding.skipped:
        parts.append(f"not executed: {', '.join(finding.skipped)}")
    if known is not None and known.words:
        parts.append(known.words)
    elif finding.right_from:
        parts.append(f"right in {finding.right_from}")
    return "; ".join(parts)


def _help(result: Result, finding: Finding) -> str:
    """Return what is known to help, and where more is said."""
    right = _right_release(finding, result.run.release)
    ways = [f"use TileLang {right}"] if right else []
    ways += [f"set the pass config {finding.pass_config} to True"] if finding.pass_config else []
    ways += [finding.advice] if finding.advice else []
    return "; ".join(
        [*([" or ".join(ways)] if ways else []), *_search(result, finding, right), f"`{explain_of(finding.rule)}`"]
    )


def _search(result: Result, finding: Finding, right: str) -> Iterator[str]:
    """The command that looks for what helps, where nothing is known to."""
    if finding.blame != "compiler" or right or result.saved:
        return
    if result.run.is_captured:
        yield f"`{bisect_of(result.run)}` says which release is right"
    else:
        yield f"`{fix_of(result.run)}` looks for a workaround"


def _right_release(finding: Finding, own: str) -> str:
    """A release that has it right: a newer one, if any is known."""
    found = finding.history.right_in if finding.history is not None else ()
    if not found:
        return finding.right_from
    newest = found[-1]
    return newest if Release.of(newest) > Release.of(own) else f"{newest}, which is older"
