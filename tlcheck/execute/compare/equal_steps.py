"""Steps of two traces compared."""

from __future__ import annotations

from tlcheck.execute.compare.output_outcome import RELATIVE
from tlcheck.execute.compare.provenance import TracedStep
from tlcheck.snapshot.ir import Stmt


def stmt_of(step: TracedStep | None) -> Stmt | None:
    """The statement that makes a step; None where none does."""
    return None if step is None or step.origin is None else step.origin.stmt


def loops_of(step: TracedStep) -> tuple[tuple[str, int], ...]:
    """The loops around a step's write, with the values of their variables."""
    return step.origin.loops if step.origin is not None else ()


def unlike(step: TracedStep, other: TracedStep) -> list[TracedStep]:
    """The sources of a step that have another value than all of the other's, each of which has but one equal.

    Sources of one buffer are equal to those of it alone: small numbers occur in several. Of as many on both sides,
    those in the same place go together first.
    """
    ours, theirs = ({buffer_of(source) for source in each.sources} for each in (step, other))

    def is_alike(own: TracedStep, source: TracedStep) -> bool:
        one, two = buffer_of(own), buffer_of(source)
        return (one == two or not (one in theirs or two in ours)) and equal(own.value, source.value)

    paired = zip(step.sources, other.sources, strict=False) if len(step.sources) == len(other.sources) else ()
    same = {place for place, pair in enumerate(paired) if is_alike(*pair)}
    left = [source for place, source in enumerate(other.sources) if place not in same]
    found = []
    for own in [own for place, own in enumerate(step.sources) if place not in same]:
        match = next((place for place, source in enumerate(left) if is_alike(own, source)), None)
        if match is None:
            found.append(own)
        else:
            left.pop(match)
    return found


def buffer_of(step: TracedStep) -> str:
    """The buffer of a step."""
    return step.element.partition("[")[0]


def equal(one: str, other: str) -> bool:
    """Whether two values, as steps say them, are the same but for rounding."""
    try:
        a, b = float(one), float(other)
    except ValueError:
        return one == other
    return a == b or abs(a - b) <= RELATIVE * abs(a)
