"""Find which result of one toolchain belongs to which of the other's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import zip_longest

from tlcheck.errors import UsageError
from tlcheck.gate.outcome import UNSEEN, LoweredPair, LoweredSide
from tlcheck.lower.scripts import End, left_out_tests
from tlcheck.verdicts.results import Result

Key = tuple[str, str, str]  # file, name, target; without a target it is about a whole file
_Script = tuple[str, str]  # file and target


@dataclass
class FoundSides:
    """A record of what one toolchain made of the selected files. ends: how far scripts came, by file and target."""

    sides: dict[Key, LoweredSide] = field(default_factory=dict)
    ends: dict[_Script, End] = field(default_factory=dict)

    def captured(self, script: _Script) -> CapturedSides:
        """Return what a script came to."""
        mine = [(key[1], side) for key, side in self.sides.items() if (key[0], key[2]) == script]
        kernels = sorted((side for name, side in mine if name), key=lambda side: side.result.run.position)
        whole = next((side for name, side in mine if not name), None)
        return CapturedSides(tuple(kernels), self.ends[script], whole)


def paired(old: FoundSides, new: FoundSides, files: int) -> list[LoweredPair]:
    """One comparison for each case and target, without its outcomes, in the order of the files and their cases.

    files: number of those selected. Raises UsageError for a script that the user named and that compiles nothing.
    """
    scripts = dict.fromkeys([*new.ends, *old.ends])
    found = list(_cases(old.sides, new.sides, scripts))
    for script in scripts:
        found += comparisons(old.captured(script), new.captured(script))
    return sorted(found, key=lambda compared: (_place(compared, files), compared.file, compared.name, compared.target))


def _place(compared: LoweredPair, files: int) -> tuple[int, ...]:
    """Return the key of a run; of a failed file only the number is known."""
    sides = [side for side in (compared.after, compared.before) if side is not None]
    number, *rest = max((side.result.run.position for side in sides), key=len)
    return (number % files, *rest)


def _cases(
    old: Mapping[Key, LoweredSide], new: Mapping[Key, LoweredSide], scripts: Mapping[_Script, None]
) -> Iterator[LoweredPair]:
    """A file that does not import has no cases on that side: it fails for each that the other side has."""
    keys = [key for key in dict.fromkeys([*new, *old]) if (key[0], key[2]) not in scripts]
    declared = {file for file, _, target in keys if target}
    before, after = _failed(old), _failed(new)
    for key in keys:
        file, _, target = key
        if target or file not in declared:
            yield LoweredPair(*key, old.get(key, before.get(file)), new.get(key, after.get(file)))


def _failed(sides: Mapping[Key, LoweredSide]) -> dict[str, LoweredSide]:
    """The files that do not import."""
    return {file: side for (file, _, target), side in sides.items() if not target}


_Pair = tuple[LoweredSide | None, LoweredSide | None]
_NUMBER = re.compile(r"-\d+$")  # of the second kernel with a name, and of those after it
_PARAMETER = "parameter"


@dataclass(frozen=True)
class CapturedSides:
    """A record of what a script came to with one toolchain. whole: its failure, where it has no kernel and that is to
    be told.
    """

    kernels: tuple[LoweredSide, ...]
    end: End
    whole: LoweredSide | None


def comparisons(old: CapturedSides, new: CapturedSides) -> Iterator[LoweredPair]:
    """Pair all kernels of a script, or the script if it has none. Raises UsageError for one that compiles nothing."""
    run = new.end.run
    if not old.kernels and not new.kernels:
        yield from _failures(old, new)
    taken = {kernel.result.run.name for kernel in new.kernels}
    of_function = [Counter(_function(kernel) for kernel in side.kernels) for side in (old, new)]
    for before, after in _pairs(old.kernels, new.kernels):
        name = _name(before, after, taken)
        sides = before or _missing(after, old, new), after or _missing(before, new, old)
        function = _function(known) if (known := after or before) is not None else ""
        compiled = of_function[0][function], of_function[1][function]
        yield LoweredPair(run.file, name, run.target, *sides, captured=True, specializations=compiled)


def _function(kernel: LoweredSide) -> str:
    """The name of a captured kernel's function, without its arguments."""
    return _NUMBER.sub("", kernel.result.run.name).partition("[")[0]


def _name(before: LoweredSide | None, after: LoweredSide | None, taken: Container[str]) -> str:
    """Return the name with the new toolchain; with the old one if the kernel is gone and no other has that name."""
    if after is not None:
        return after.result.run.name
    assert before is not None
    run = before.result.run
    return f"{run.name} ({run.tilelang})" if run.name in taken else run.name


def _failures(old: CapturedSides, new: CapturedSides) -> Iterator[LoweredPair]:
    """A script that fails now, before any kernel."""
    run = new.end.run
    before, after = old.whole, new.whole
    if after is None or after.result.failure is None:
        return
    if before is not None and before.result.failure == after.result.failure and after.result.failure.kind == "usage":
        raise UsageError(f"{run.file}: {after.result.failure.message}")
    yield LoweredPair(run.file, "", run.target, before or LoweredSide(Result(old.end.run)), after, captured=True)


def _missing(known: LoweredSide | None, script: CapturedSides, other: CapturedSides) -> LoweredSide | None:
    """Return what stands for a kernel that was captured with the other toolchain only: that the script failed before
    it.

    None where it came as far as with the other one, and so does not compile this kernel. A script that was cut off
    when its time was over says nothing of the kernels that were still to come: another machine gets further.
    """
    ended, there = script.end.ended, other.end.ended
    assert known is not None
    if ended is None or (there is not None and (ended.message, ended.where) == (there.message, there.where)):
        return None
    run = replace(known.result.run, toolchain=script.end.run.toolchain, versions=script.end.run.versions)
    kind = UNSEEN if ended.kind == "timeout" else ended.kind
    words = f"the script does not come to it: {ended.message}"
    return LoweredSide(Result(run, failure=replace(ended, kind=kind, message=words)))


def _pairs(old: Sequence[LoweredSide], new: Sequence[LoweredSide]) -> Iterator[_Pair]:
    """Kernels of the same function and arguments belong together, in their order."""
    groups: dict[object, tuple[list[LoweredSide], list[LoweredSide]]] = {}
    for number, kernels in enumerate((old, new)):
        for kernel in kernels:
            groups.setdefault(call_of(kernel.result.run.name, kernel.result.run.args), ([], []))[number].append(kernel)
    for before, after in groups.values():
        yield from zip(before, after, strict=True) if len(before) == len(after) else _aligned(before, after)


def call_of(name: str, args: Mapping[str, str]) -> tuple[object, ...]:
    """Return what a captured kernel is of."""
    given = tuple(sorted((key, unquoted(text)) for key, text in args.items()))
    return unquoted(_NUMBER.sub("", name)), given


def unquoted(text: str) -> str:
    """A kernel's name or argument as it is in every release: some have types for what are strings in others."""
    return text.replace("'", "")


def _aligned(old: Sequence[LoweredSide], new: Sequence[LoweredSide]) -> Iterator[_Pair]:
    """Yield where one side has more of them: by what they look like, as far as that says which is which."""
    matcher = SequenceMatcher(None, list(map(_form, old)), list(map(_form, new)), autojunk=False)
    for _, old_begin, old_end, new_begin, new_end in matcher.get_opcodes():
        yield from zip_longest(old[old_begin:old_end], new[new_begin:new_end])


def _form(kernel: LoweredSide) -> tuple[object, ...]:
    """Return what no release changes: blocks, threads, parameters. Empty for a kernel that was not lowered."""
    facts = kernel.facts
    if facts is None:
        return ()
    parameters = [(b.name, b.dtype, b.shape) for b in facts.buffers if b.role == _PARAMETER]
    return tuple(count.number for count in facts.grid), facts.threads, tuple(parameters)


def remarks(ends: Iterable[End]) -> Iterator[str]:
    """Yield that most tests did not run, then where scripts ended before their end: once if both toolchains have the
    same, else with which one.
    """
    ends = list(ends)
    yield from left_out_tests(ends)
    found: dict[tuple[str, str], list[End]] = {}
    for end in ends:
        found.setdefault((end.run.file, end.run.target), []).append(end)
    for both in found.values():
        if len({end.remarks for end in both}) == 1:
            yield from both[0].remarks
        else:
            yield from (f"with {end.run.tilelang}, {remark}" for end in both for remark in end.remarks)
