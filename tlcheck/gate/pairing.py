"""Which result of one toolchain belongs to which of the other's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tlcheck.gate.outcome import Comparison, Side
from tlcheck.gate.scripts import Captured, comparisons
from tlcheck.lower.scripts import End

Key = tuple[str, str, str]  # file, name, target; without a target it is about a whole file
_Script = tuple[str, str]  # file and target


@dataclass
class Found:
    """What one toolchain made of the selected files. ends: how far scripts came, by file and target."""

    sides: dict[Key, Side] = field(default_factory=dict)
    ends: dict[_Script, End] = field(default_factory=dict)

    def captured(self, script: _Script) -> Captured:
        """What a script came to."""
        mine = [(key[1], side) for key, side in self.sides.items() if (key[0], key[2]) == script]
        kernels = sorted((side for name, side in mine if name), key=lambda side: side.result.run.position)
        whole = next((side for name, side in mine if not name), None)
        return Captured(tuple(kernels), self.ends[script], whole)


def paired(old: Found, new: Found, files: int) -> list[Comparison]:
    """One comparison for each case and target, without its outcomes, in the order of the files and their cases.

    files: number of those selected. Raises UsageError for a script that the user named and that compiles nothing.
    """
    scripts = dict.fromkeys([*new.ends, *old.ends])
    found = list(_cases(old.sides, new.sides, scripts))
    for script in scripts:
        found += comparisons(old.captured(script), new.captured(script))
    return sorted(found, key=lambda compared: (_place(compared, files), compared.file, compared.name, compared.target))


def _place(compared: Comparison, files: int) -> tuple[int, ...]:
    """Of a failed file only the number is known."""
    sides = [side for side in (compared.after, compared.before) if side is not None]
    number, *rest = max((side.result.run.position for side in sides), key=len)
    return (number % files, *rest)


def _cases(old: Mapping[Key, Side], new: Mapping[Key, Side], scripts: Mapping[_Script, None]) -> Iterator[Comparison]:
    """A file that does not import has no cases on that side: it fails for each that the other side has."""
    keys = [key for key in dict.fromkeys([*new, *old]) if (key[0], key[2]) not in scripts]
    declared = {file for file, _, target in keys if target}
    before, after = _failed(old), _failed(new)
    for key in keys:
        file, _, target = key
        if target or file not in declared:
            yield Comparison(*key, old.get(key, before.get(file)), new.get(key, after.get(file)))


def _failed(sides: Mapping[Key, Side]) -> dict[str, Side]:
    """The files that do not import."""
    return {file: side for (file, _, target), side in sides.items() if not target}
