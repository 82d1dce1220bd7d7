"""Shortens the names of captured kernels, which hold all arguments of a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

_LONGEST = 120  # characters of `FILE::NAME` that are shown as they are
_LEFT_OUT = "..."


def brief_names(names: Iterable[str]) -> dict[str, str]:
    """Return each long name with the arguments alone that tell the kernels of its function apart.

    `f.py::scale[n=64,dtype=float16]` beside `f.py::scale[n=64,dtype=float32]` becomes `f.py::scale[dtype=float16,...]`.
    Short names, and those that would no longer differ, are left out.
    """
    alike: dict[str, dict[str, Mapping[str, str]]] = {}
    for name in names:
        function, bracket, said = name.partition("[")
        if bracket and said.endswith("]"):
            alike.setdefault(function, {})[name] = dict(_arguments(said[:-1]))
    found: dict[str, str] = {}
    for function, kernels in alike.items():
        if any(len(name) > _LONGEST for name in kernels):
            telling = _telling(list(kernels.values()))
            found |= {name: _brief(function, a, telling) for name, a in kernels.items() if len(name) > _LONGEST}
    times = Counter(found.values())
    return {name: brief for name, brief in found.items() if times[brief] == 1 and len(brief) < len(name)}


def _brief(function: str, arguments: Mapping[str, str], telling: set[str]) -> str:
    kept = [f"{key}={value}" for key, value in arguments.items() if key in telling]
    return f"{function}[{','.join([*kept, _LEFT_OUT])}]"


def _telling(kernels: Sequence[Mapping[str, str]]) -> set[str]:
    """Return arguments that tell the kernels apart: the one that tells most first, of equal ones the shortest."""
    keys = {key: sum(len(kernel.get(key, "")) for kernel in kernels) for kernel in kernels for key in kernel}
    chosen: set[str] = set()
    groups = [list(kernels)]
    while len(groups) < len(kernels):
        split = {key: _split(groups, key) for key in keys}
        best = max(keys, key=lambda key: (len(split[key]), -keys[key]))
        if len(split[best]) == len(groups):
            break  # the rest are alike
        chosen.add(best)
        groups = split[best]
    return chosen


def _split(groups: Sequence[Sequence[Mapping[str, str]]], key: str) -> list[list[Mapping[str, str]]]:
    found: dict[tuple[int, str | None], list[Mapping[str, str]]] = {}
    for number, group in enumerate(groups):
        for kernel in group:
            found.setdefault((number, kernel.get(key)), []).append(kernel)
    return list(found.values())


def _arguments(text: str) -> Iterable[tuple[str, str]]:
    """Split at the commas that stand in no bracket."""
    begin = depth = 0
    for place, letter in enumerate(f"{text},"):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            key, _, value = text[begin:place].partition("=")
            yield key, value
            begin = place + 1
