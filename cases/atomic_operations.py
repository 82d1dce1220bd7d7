"""Small kernels with one atomic each, continued: other destinations and operations than sums in global memory.

Atomics into shared memory, maximum and minimum, the previous value, a memory order, vectors written as such, and the
bulk copy engine. As in ``atomics.py``, ``expect`` names the releases in which a form goes wrong, and sources are small
integers, so that every result is exact.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import tilelang.language as T
import torch

from tlcheck.case import Case, Expect

Args = Mapping[str, Any]
Results = dict[str, torch.Tensor]
Tensor = torch.Tensor


# ---- inputs, and the commonest reference


def ints(*shape: int, dtype: str = "", low: int = -4, high: int = 5) -> Callable[..., Tensor]:
    """Makes integers in [low, high) as values of ``dtype``; by default of the case's argument, else float32."""

    def make(args: Args, generator: torch.Generator) -> Tensor:
        values = torch.randint(low, high, shape, generator=generator, device=generator.device)
        return values.to(getattr(torch, dtype or args.get("dtype", "float32")))

    return make


def zeros(*shape: int, dtype: str = "") -> Callable[..., Tensor]:
    return ints(*shape, dtype=dtype, low=0, high=1)


def given(*makers: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, ...]]:
    """The ``inputs`` of a case: one maker for each parameter of its kernel."""

    def inputs(args: Args, generator: torch.Generator, device: Any) -> tuple[Tensor, ...]:
        return tuple(make(args, generator).to(device) for make in makers)

    return inputs


def total(args: Args, A: Tensor, B: Tensor) -> Results:
    return {"B": A.double() + B.double()}


# ---- destinations in shared memory


def shared(form="tile", dtype="float32"):
    """B is added to in shared memory and copied back."""

    @T.prim_func
    def main(A: T.Tensor((512,), dtype), B: T.Tensor((512,), dtype)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((512,), dtype)
            s = T.alloc_shared((512,), dtype)
            T.copy(A, f)
            T.copy(B, s)
            if form == "tile":
                T.atomic_add(s, f)
            else:
                for i in T.Parallel(512):
                    T.atomic_add(s[i], f[i])
            T.copy(s, B)

    return main


def histogram():
    """Counted in shared memory by each of four blocks, then added up."""

    @T.prim_func
    def main(A: T.Tensor((512,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(4, threads=128) as b:
            s = T.alloc_shared((64,), "int32")
            T.clear(s)
            T.sync_threads()  # up to 0.1.7.post2 no barrier is put between atomics and other uses of shared memory
            for i in T.Parallel(128):
                T.atomic_add(s[A[b * 128 + i]], 1)
            T.sync_threads()
            T.atomic_add(B, s)

    return main


def counted(args: Args, A: Tensor, B: Tensor) -> Results:
    return {"B": B + torch.bincount(A, minlength=len(B)).int()}


def shared_vector(releases: str) -> Expect:
    issue = "https://github.com/tile-ai/tilelang/issues/3038"
    return Expect(
        releases=releases,
        rule="TLA004",
        buffer="s",
        targets=("sm_90",),
        reason=f"vectors of float32 exist for global memory only: {issue}",
    )


NO_HALVES = Expect(
    releases="<0.1.7", rule="TLA013", buffer="B", reason="the device library has no scalar atomics of 16-bit values"
)
NO_PAIRS = Expect(
    releases=">=0.1.7.post3,<=0.1.8",
    rule="TLA013",
    buffer="s",
    reason="pairs of 16-bit values are passed by value, the device library takes their address",
)
HALF = {"dtype": "float16"}
VECTOR = given(ints(512), zeros(512))

UNORDERED = Expect(
    releases="<=0.1.7",
    rule="TLR001",
    buffer="s",
    targets=("sm_90",),
    reason="one thread starts the bulk copy to B with no barrier behind the atomics of the others",
)

shared_tile = Case(
    shared,
    inputs=VECTOR,
    reference=total,
    expect=[shared_vector(">=0.1.6.post2,<=0.1.7"), shared_vector(">=0.1.7.post3,<=0.1.14")],
)
shared_tile_fp16 = Case(shared, HALF, inputs=VECTOR, reference=total, expect=[NO_PAIRS, UNORDERED])
shared_parallel = Case(
    shared,
    {"form": "parallel"},
    inputs=VECTOR,
    reference=total,
    expect=[shared_vector(">=0.1.7.post3,<=0.1.14"), UNORDERED],
)
shared_histogram = Case(
    histogram, inputs=given(ints(512, dtype="int32", low=0, high=64), zeros(64, dtype="int32")), reference=counted
)


# ---- other operations: maximum and minimum, previous value, memory order, vectors written as such, TMA


def extreme(op, dtype="float32"):
    """B[i % 64] = op(B[i % 64], A[i])."""
    atomic = getattr(T, op)

    @T.prim_func
    def main(A: T.Tensor((512,), dtype), B: T.Tensor((64,), dtype)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((512,), dtype)
            T.copy(A, f)
            for i in T.Parallel(512):
                atomic(B[i % 64], f[i])

    return main


def extreme_tile(op):
    """B = op(B, A), as tiles."""
    atomic = getattr(T, op)

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((512,), "float32")
            T.copy(A, f)
            atomic(B, f)

    return main


def extremes(args: Args, A: Tensor, B: Tensor) -> Results:
    every = torch.cat([A.double(), B.double()]).reshape(-1, len(B))
    return {"B": every.amax(dim=0) if args["op"] == "atomic_max" else every.amin(dim=0)}


def tickets():
    """Each positive element draws a ticket, the previous value of a counter N, and marks it in B."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), N: T.Tensor((1,), "int32"), B: T.Tensor((512,), "int32")):
        with T.Kernel(4, threads=128) as b:
            tx = T.get_thread_binding()
            if A[b * 128 + tx] > 0:
                ticket = T.atomic_add(N[0], 1, return_prev=True)
                B[ticket] = 1

    return main


def drawn(args: Args, A: Tensor, N: Tensor, B: Tensor) -> Results:
    count = (A > 0).sum().int()
    return {"N": N + count, "B": (torch.arange(len(A), device=A.device) < count).int()}


def ordered(dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((512,), dtype), B: T.Tensor((512,), dtype)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((512,), dtype)
            T.copy(A, f)
            T.atomic_add(B, f, memory_order="acq_rel")

    return main


def explicit(width, dtype="float32"):
    """One vector atomic of ``width`` elements per thread."""
    atomic = {2: T.atomic_addx2, 4: T.atomic_addx4}[width]

    @T.prim_func
    def main(A: T.Tensor((128 * width,), dtype), B: T.Tensor((128 * width,), dtype)):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            atomic(B[tx * width], A[tx * width])

    return main


def tma():
    """A tile in shared memory, added by the bulk copy engine."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((64, 64), "float32")
            T.copy(A, s)
            T.atomic_add(B, s, use_tma=True)

    return main


def order_lost(releases: str, *targets: str) -> Expect:
    issue = "https://github.com/tile-ai/tilelang/issues/2688"
    return Expect(
        releases=releases, rule="TLA010", buffer="B", targets=targets, reason=f"the memory order is dropped: {issue}"
    )


NO_TILES = [
    Expect(
        releases="<=0.1.7.post2",
        error="Mismatched type on argument|error diagnostics were emitted",
        reason="atomic_max and atomic_min take no tiles before 0.1.7.post3",
    )
]
DRAWN_AGAIN = Expect(
    releases=">=0.1.11,<=0.1.12",
    rule="TLA005",
    buffer="N",
    reason="the ticket is substituted into both bounds checks of B[ticket], so each thread draws three",
)
FEW = given(ints(512), zeros(64))

maximum = Case(extreme, {"op": "atomic_max"}, inputs=FEW, reference=extremes)
minimum = Case(extreme, {"op": "atomic_min"}, inputs=FEW, reference=extremes)
maximum_int32 = Case(extreme, {"op": "atomic_max", "dtype": "int32"}, inputs=FEW, reference=extremes)
maximum_fp16 = Case(extreme, {"op": "atomic_max", **HALF}, inputs=FEW, reference=extremes, expect=[NO_HALVES])
maximum_tile = Case(extreme_tile, {"op": "atomic_max"}, inputs=VECTOR, reference=extremes, expect=NO_TILES)
minimum_tile = Case(extreme_tile, {"op": "atomic_min"}, inputs=VECTOR, reference=extremes, expect=NO_TILES)
previous_value = Case(
    tickets,
    inputs=given(ints(512), zeros(1, dtype="int32"), zeros(512, dtype="int32")),
    reference=drawn,
    expect=[DRAWN_AGAIN, replace(DRAWN_AGAIN, rule="TLL001", buffer="B")],
    updates=("N", "B"),
)
memory_order = Case(
    ordered,
    inputs=VECTOR,
    reference=total,
    expect=[
        order_lost(">=0.1.7", "sm_80"),
        order_lost("==0.1.7.post2", "sm_90"),
        order_lost(">=0.1.7.post3,<=0.1.13", "sm_90"),
    ],
)
memory_order_fp16 = Case(
    ordered,
    HALF,
    inputs=VECTOR,
    reference=total,
    expect=[
        Expect(
            releases="<=0.1.7",
            rule="TLA013",
            buffer="B",
            targets=("sm_80",),
            reason="the device library adds such pairs with an instruction that sm_90 brings, and does not compile",
        ),
        order_lost("==0.1.7.post1", "sm_80"),
        order_lost(">=0.1.7.post2,<=0.1.13"),
    ],
)
explicit_x2 = Case(explicit, {"width": 2, **HALF}, inputs=given(ints(256), zeros(256)), reference=total)
explicit_x4 = Case(explicit, {"width": 4}, targets=("sm_90",), inputs=VECTOR, reference=total)
tma_tile = Case(tma, targets=("sm_90",), inputs=given(ints(64, 64), zeros(64, 64)), reference=total)
explicit_x4_fp16 = Case(
    explicit,
    {"width": 4, **HALF},
    inputs=VECTOR,
    reference=total,
    expect=[
        Expect(
            releases="<0.1.7.post3",
            rule="TLA013",
            buffer="B",
            reason="the device library has 4 lanes for float32 only, and does not compile",
        ),
        Expect(
            releases=">=0.1.7.post3,<0.1.12",
            rule="TLA013",
            buffer="B",
            targets=("sm_80",),
            reason="the device library has 4 lanes for float32 on sm_90 only, and does not compile",
        ),
        Expect(
            releases=">=0.1.7.post3,<0.1.12",
            rule="TLA014",
            buffer="B",
            targets=("sm_90",),
            reason="the device library has 4 lanes for float32 only, and adds 16 bytes as such",
        ),
    ],
)
