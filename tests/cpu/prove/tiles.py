"""Footprints of one large tile, made by hand: for tests and benchmarks of the comparison itself."""

from __future__ import annotations

from tlcheck.algebra.algebra import Algebra, unread
from tlcheck.algebra.evaluate import Dimension
from tlcheck.algebra.polynomial import Poly, add, constant, scale
from tlcheck.program.atomics import Pointer, Site
from tlcheck.program.walk import Placed, Scope
from tlcheck.prove.footprints import TAGS, Footprint, Leaf
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr

BLOCK, THREAD = TAGS["blockIdx.x"], TAGS["threadIdx.x"]
THREADS, WIDTH = 256, 4


def whole(lanes: int) -> tuple[Algebra, Footprint]:
    """Return what is meant: each of the block's `lanes` elements of A is added to the same element of B, once."""
    algebra = Algebra(unread)
    algebra.ranges.update({BLOCK: (0, 63), 1: (0, lanes - 1)})
    element = add(scale(algebra.variable(BLOCK), lanes), algebra.variable(1))
    return algebra, _footprint([Dimension(1, 0, lanes)], element, element)


def spread(algebra: Algebra, lanes: int, skew: int = 0) -> Footprint:
    """The same, a loop of 256 threads with 4 lanes each; `skew` moves the last thread's destination by so much."""
    loops = -(-lanes // (THREADS * WIDTH))
    algebra.ranges.update({2: (0, loops - 1), THREAD: (0, THREADS - 1), 3: (0, WIDTH - 1)})
    inner = add(scale(algebra.variable(2), THREADS * WIDTH), scale(algebra.variable(THREAD), WIDTH))
    element = add(add(scale(algebra.variable(BLOCK), lanes), inner), algebra.variable(3))
    target = add(element, scale(algebra.floordiv(add(algebra.variable(THREAD), constant(1)), THREADS), skew))
    space = [Dimension(2, 0, loops), Dimension(THREAD, 0, THREADS), Dimension(3, 0, WIDTH)]
    inside = add(constant(lanes - 1), add(inner, algebra.variable(3)), -1)
    conditions = (inside,) if lanes % (THREADS * WIDTH) else ()
    return _footprint(space, target, element, conditions)


def _footprint(space: list[Dimension], target: Poly, element: Poly, conditions: tuple[Poly, ...] = ()) -> Footprint:
    data = Expr("var", "handle", value="B", uid=900)
    buffer = Buffer("B", "float32", (), "global", data)
    call = Expr("call", "handle", value="atomic_add_elem_op")
    scope = Scope()
    site = Site(
        "add", "atomic_add_elem_op", 1, False, Pointer("B", buffer, "float32", ()), call, None, False, scope,
        Placed(Evaluate(call), scope, 0), call,
    )  # fmt: skip
    leaf = Leaf("A", "global", element)
    return Footprint(site, tuple(space), {}, target, (), conditions, (), (), "@", (leaf,), (target,))
