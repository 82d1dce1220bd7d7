"""T.any_of and T.all_of: whether any or all elements of a run of memory are true (TileLang, language/logical.py; as
lowered tl::Any and tl::All, tl_templates/cuda/common.h).

Arguments: a pointer to the first element, the number of elements.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call, extern
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr


@call("any_of")
@extern("tl::Any")
def any_of(e: Expr, program: KernelProgram) -> Computation:
    """Whether an element is not 0."""
    return _over(e, program, np.logical_or)


@call("all_of")
@extern("tl::All")
def all_of(e: Expr, program: KernelProgram) -> Computation:
    """Whether no element is 0."""
    return _over(e, program, np.logical_and)


def _over(e: Expr, program: KernelProgram, join: np.ufunc) -> Computation:
    count = e.args[1].value
    if e.args[1].op != "int" or not isinstance(count, int):
        raise NotModelled(f"{e.value} of a varying number of elements")
    place = program.pointer(e.args[0], count)

    def run(frame: Frame) -> Array:
        found = place.load(frame)
        return np.asarray(join.reduce(found.reshape(-1, *found.shape[-2:]) != 0, axis=0))

    return run
