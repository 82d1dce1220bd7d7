"""T.rng_init, T.rng_rand and T.rng_rand_float: random numbers of each thread (TileLang, language/random.py).

What cuRAND gives is no property of the kernel: here a draw is a function of the seed, the sequence, the offset and the
number of draws before it, the same at every level of execution. Integers are uniform over 32 bits, floats uniform over
(0, 1] or normal. Within a T.Parallel the order of draws is the compiler's business: in a kernel that draws there, all
draws of a block are the same number, so that nothing hangs on which of them an element gets (`Options.alike`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.field import mixed
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr


@dataclass(slots=True)
class Generators:
    """The generator of every thread, (worlds, threads): what it began from, and how often it was drawn from."""

    start: Array
    draws: Array


_OF: WeakKeyDictionary[KernelProgram, Generators] = WeakKeyDictionary()


@call("rng_init")
def rng_init(e: Expr, program: KernelProgram) -> Computation:
    """The threads' generators begin from a seed, a sequence and an offset."""
    _check(program)
    parts = [program.code(a) for a in e.args[:3]]

    def run(frame: Frame) -> int:
        if program.options.alike:
            return 0
        found = _generators(frame, program)
        start: Array = np.zeros(found.start.shape, np.uint64)
        for part in parts:
            start = mixed(start ^ np.asarray(part.run(frame)).astype(np.int64).view(np.uint64))
        mask = frame.mask()
        np.copyto(found.start, start, where=mask)
        np.copyto(found.draws, np.uint64(0), where=mask)
        return 0

    return run


@call("rng_rand")
def rng_rand(e: Expr, program: KernelProgram) -> Computation:
    """A uniform integer of 32 bits."""
    _check(program)
    return lambda frame: (_drawn(frame, program) >> np.uint64(32)).astype(np.uint32)


@call("rng_rand_float")
def rng_rand_float(e: Expr, program: KernelProgram) -> Computation:
    """A uniform or normal number."""
    _check(program)
    shape = _SHAPES.get(str(e.args[0].value))
    if shape is None:
        raise NotModelled(f"random numbers {e.args[0].value}")
    return lambda frame: shape(_uniform(_drawn(frame, program)))


def _drawn(frame: Frame, program: KernelProgram) -> Array:
    if program.options.alike:
        # a number for each world, (worlds, 1)
        parts = np.array([(world.seed, *world.block) for world in program.state.worlds], np.uint64)
        words: Array = np.zeros(len(parts), np.uint64)
        for part in parts.T:
            words = mixed(words ^ part)
        return words[:, None]
    found = _generators(frame, program)
    words = mixed(found.start ^ mixed(found.draws))
    found.draws += frame.mask()
    return words


def _generators(frame: Frame, program: KernelProgram) -> Generators:
    if program not in _OF:
        shape = (frame.worlds, frame.lanes)
        _OF[program] = Generators(np.zeros(shape, np.uint64), np.zeros(shape, np.uint64))
    return _OF[program]


def _check(program: KernelProgram) -> None:
    if program.iterating and not program.options.alike:
        raise NotModelled("random numbers in T.Parallel")


def _uniform(words: Array) -> Array:
    """Numbers in (0, 1] with 24 bits."""
    return np.asarray(((words >> np.uint64(40)).astype(np.float64) + 1.0) / (1 << 24))


def _normal(uniform: Array) -> Array:
    """Normal numbers by the method of Box and Muller, the angle from the same bits."""
    angle = mixed((uniform * (1 << 24)).astype(np.uint64))
    return np.asarray(np.sqrt(-2.0 * np.log(uniform)) * np.cos(2.0 * np.pi * _uniform(angle)))


_SHAPES: dict[str, Callable[[Any], Any]] = {"uniform": lambda uniform: uniform, "normal": _normal}
