"""Whether outputs are the same formulas at both levels, for all inputs (`execute.field`).

Both levels run once more, in the blocks that ran, with two sets of random elements of a finite field as floats. No
integer of a tensor may be read and no float decides anything, so that every input takes the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tlcheck.errors import fault
from tlcheck.execute.field import Field
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import World
from tlcheck.execute.schedule.launches import kernels
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds.inputs import Draw
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.snapshot.ir import Function

_SEEDS = (0, 1)


@dataclass(frozen=True, slots=True)
class Formulas:
    """The outputs that are equal for all inputs. reason, line: why others may not be; 0: the line is not known."""

    equal: frozenset[str]
    reason: str = ""
    line: int = 0


def formulas_of(levels: BothLevels, draw: Draw) -> Formulas:
    """Run both levels over a field and compare all outputs."""
    if any(len(kernels(function)) > 1 for function in (levels.source, levels.lowered)):
        return Formulas(frozenset(), "the function has several kernels")
    levels, draw = levels.of_representatives(), draw.in_field()
    together = _batches(levels, levels.source), _batches(levels, levels.lowered)
    sides: list[Mapping[str, Pages]] = []
    for make, batches in zip((levels.source_invocation, levels.lowered_invocation), together, strict=True):
        drawn = sides[0] if sides else {}
        invocation = make(draw, batches=batches, before=drawn, exact=Field())
        try:
            invocation.run()
        except (Stopped, RecursionError) as stopped:
            return Formulas(frozenset(), str(stopped), _line(invocation))
        except Exception as error:  # a fault of ours: it says nothing against what agreed
            return Formulas(frozenset(), fault(error), _line(invocation))
        sides.append(invocation.left)
    seeds = dict.fromkeys(world.seed for batch in together[0] for world in batch)
    equal = frozenset(
        name
        for name in levels.outputs
        if name in sides[1] and all(_are_equal(sides[0][name], sides[1][name], seed) for seed in seeds)
    )
    return Formulas(equal, "" if len(equal) == len(levels.outputs) else "values agree, formulas may differ")


def _batches(levels: BothLevels, function: Function) -> list[list[World]]:
    """The blocks that ran, with two sets of numbers; those together that ran together."""
    parts = levels.parts(function)
    order = {block: n for n, block in enumerate(dict.fromkeys(world.block for world in levels.worlds))}
    apart = len(order) if levels.roles.float_atomics else 1  # each block by itself: others might make up for a sum
    return [[World(seed * apart + order[block] % apart, block) for seed in _SEEDS for block in part] for part in parts]


def _line(invocation: Invocation) -> int:
    """The source line at which an invocation has stopped."""
    machine = getattr(invocation, "machine", None)
    return 0 if machine is None else machine.state.line


def _are_equal(source: Pages, lowered: Pages, seed: int) -> bool:
    """Whether both levels wrote the same elements of an output, with equal numbers in them."""
    expected, got = source.outcome(seed), lowered.outcome(seed)
    if not np.array_equal(expected.elements, got.elements) or not np.array_equal(expected.values, got.values):
        return False
    return bool(np.isfinite(expected.values).all())
