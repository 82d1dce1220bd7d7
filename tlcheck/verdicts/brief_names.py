"""Shortens the names of captured kernels, which hold all arguments of a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

_LONGEST = 120  # characters of `FILE::NAME` that are shown as they are
_LEFT_OUT = "..."


def brief_names(names: Iterable[str]) -> dict[str, str]:
    """Return each long name with the arguments alone in which kernels of its function differ.

    `f.py::scale[n=64,dtype=float16]` beside `f.py::scale[n=64,dtype=float32]` becomes `f.py::scale[dtype=float16,...]`.
    Short names, and those that would no longer differ, are left out.
    """
    alike: dict[str, dict[str, Mapping[str, str]]] = {}
    for name in names:
        function, bracket, said = name.partition("[")
        if bracket and said.endswith("]"):
            alike.setdefault(function, {})[name] = dict(_arguments(said[:-1]))
    found = {
        name: _brief(function, arguments, _differing(kernels.values()))
        for function, kernels in alike.items()
        for name, arguments in kernels.items()
        if len(name) > _LONGEST
    }
    times = Counter(found.values())
    return {name: brief for name, brief in found.items() if times[brief] == 1 and len(brief) < len(name)}


def _brief(function: str, arguments: Mapping[str, str], differing: set[str]) -> str:
    kept = [f"{key}={value}" for key, value in arguments.items() if key in differing]
    return f"{function}[{','.join([*kept, _LEFT_OUT])}]"


def _differing(kernels: Iterable[Mapping[str, str]]) -> set[str]:
    first, *others = kernels
    keys = first.keys() | {key for other in others for key in other}
    return {key for key in keys if any(other.get(key) != first.get(key) for other in others)}


def _arguments(text: str) -> Iterable[tuple[str, str]]:
    """Split at the commas that stand in no bracket."""
    begin = depth = 0
    for place, letter in enumerate(f"{text},"):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            key, _, value = text[begin:place].partition("=")
            yield key, value
            begin = place + 1
