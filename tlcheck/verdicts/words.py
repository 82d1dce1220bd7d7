"""Results in words, the same in every format for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tlcheck.prove.difference import Witness
from tlcheck.verdicts.results import AtomicResult, Result

VERDICTS = ("proved", "refuted", "undecided", "expected", "accepted")
_BLOCK = "blockIdx."


def witness_in_words(witness: Witness, buffer: str) -> str:
    """`block (0, 0, 0), k = 0, thread 0, lane 1: element dQ[0, 1] belongs at offset 32, is added at offset 1`."""
    place = ", ".join(_place(witness))
    return f"{place}: {_addition(witness, buffer)}" if place else _addition(witness, buffer)


def _place(witness: Witness) -> Iterable[str]:
    blocks = sorted((name, value) for name, value in witness.instance if name.startswith(_BLOCK))
    if blocks:
        yield f"block ({', '.join(str(value) for _, value in blocks)})"
    for name, value in (*witness.instance, *witness.iteration):
        if not name.startswith(_BLOCK):
            yield f"{name} = {value}"
    if witness.thread is not None:
        yield f"thread {witness.thread}"
    if witness.lane is not None:
        yield f"lane {witness.lane}"


def _addition(witness: Witness, buffer: str) -> str:
    element = "" if witness.element is None else f"element {buffer}[{', '.join(map(str, witness.element))}]"
    if witness.intended is None or not element:
        return f"something is added at offset {witness.written} of {buffer}, where nothing belongs"
    if witness.written is None or witness.written == witness.intended:
        return f"{element}, offset {witness.intended}"
    return f"{element} belongs at offset {witness.intended}, is added at offset {witness.written}"


def element_in_words(buffer: str, element: Mapping[str, Any]) -> str:
    """`B[0] is 128, expected 512`."""
    index = ", ".join(map(str, element["index"]))
    return f"{buffer}[{index}] is {element['got']}, expected {element['expected']}"


def counts_in_words(results: Iterable[Result]) -> str:
    """`3 atomics: 2 proved, 1 refuted`; `no atomics`."""
    counted = list(results)
    numbers = [(sum(r.count(verdict) for r in counted), verdict) for verdict in VERDICTS]
    total = sum(number for number, _ in numbers)
    if not total:
        return "no atomics"
    return f"{plural(total, 'atomic')}: {', '.join(f'{number} {verdict}' for number, verdict in numbers if number)}"


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def summary_in_words(results: list[Result]) -> str:
    """The last line of a report."""
    cases = len({(r.run.case, r.saved) for r in results})
    head = plural(cases, "case") + (f" ({len(results)} runs)" if len(results) > cases else "")
    failures = [r for r in results if r.failure is not None]
    parts = [f"{head}, {counts_in_words(results)}" if len(failures) < len(results) else head]
    expected = sum(1 for r in failures if r.excuse is not None)
    broken = sum(len(r.broken) for r in results)
    parts += [f"{len(failures) - expected} not checked"] if len(failures) > expected else []
    parts += [f"{plural(expected, 'expected error')}"] if expected else []
    parts += [f"{broken} unexpectedly fine"] if broken else []
    return "; ".join(parts)


def place_in_words(atomic: AtomicResult) -> str:
    """`FILE:LINE`, and that it is only where the kernel begins."""
    source = atomic.source
    return f"{source.file}:{source.number}" + ("" if source.exact else " (the kernel; the atomic's line is not known)")
