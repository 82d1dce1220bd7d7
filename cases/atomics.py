"""Small kernels with one atomic each: the forms in which TileLang has lowered atomics, right and wrong.

A kernel adds (or takes the maximum, ...) of a source into a destination, and is as small as its form
allows; each section is one idea. ``expect`` names the releases in which a form goes wrong: in all others
every atomic is to be proved. Sources are small integers, so that sums are exact in any order and in 16
bits.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tilelang.language as T
import torch

from tlcheck.case import Case, Expect

Args = Mapping[str, Any]
Results = dict[str, torch.Tensor]


# ---- inputs and the commonest references


def ints(*shape: int, dtype: str = "", low: int = -4, high: int = 5) -> Callable[..., torch.Tensor]:
    """Makes integers in [low, high) as values of ``dtype``; default is the case's argument, else float32."""

    def make(args: Args, generator: torch.Generator) -> torch.Tensor:
        values = torch.randint(low, high, shape, generator=generator, device=generator.device)
        return values.to(getattr(torch, dtype or args.get("dtype", "float32")))

    return make


def zeros(*shape: int, dtype: str = "") -> Callable[..., torch.Tensor]:
    return ints(*shape, dtype=dtype, low=0, high=1)


def given(*makers: Callable[..., torch.Tensor]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """The ``inputs`` of a case: one maker for each parameter of its kernel."""

    def inputs(args: Args, generator: torch.Generator, device: Any) -> tuple[torch.Tensor, ...]:
        return tuple(make(args, generator).to(device) for make in makers)

    return inputs


def total(args: Args, A: torch.Tensor, B: torch.Tensor) -> Results:
    """B + A, in the order that an annotated layout gives to B."""
    result = A.double() + B.double()
    return {"B": arranged(result) if args.get("annotated") else result}


# ---- a tile added to global memory: contiguous (vectors are right) or annotated (they are not)


def annotated_layout(shape):
    """An 8x8 accumulator tile; two neighbours of a row are 32 elements apart."""
    return T.Layout(shape, lambda i, j: [i // 8, j // 8, j % 2, 4 * (i % 8) + (j % 8) // 2])


def arranged(B: torch.Tensor) -> torch.Tensor:
    """B in the physical order of ``annotated_layout``, same shape."""
    rows, columns = B.shape
    return B.reshape(rows // 8, 8, columns // 8, 4, 2).permute(0, 2, 4, 1, 3).reshape(B.shape)


def tile(rows=64, dtype="float32", scope="fragment", annotated=False):
    """A tile of ``rows`` x 64 elements, staged in registers or in shared memory."""
    alloc = {"fragment": T.alloc_fragment, "shared": T.alloc_shared}[scope]

    @T.prim_func
    def main(A: T.Tensor((rows, 64), dtype), B: T.Tensor((rows, 64), dtype)):
        with T.Kernel(1, threads=128) as _:
            staged = alloc((rows, 64), dtype)
            if annotated:
                T.annotate_layout({B: annotated_layout((rows, 64))})
            T.copy(A, staged)
            T.atomic_add(B, staged)

    return main


def split_k(dtype="float32", annotated=False):
    """Two blocks, each of which multiplies one half of K."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 128), "float16"),
        W: T.Tensor((128, 64), "float16"),
        B: T.Tensor((64, 64), dtype),
    ):
        with T.Kernel(2, threads=128) as k:
            a = T.alloc_shared((64, 64), "float16")
            w = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), dtype)
            if annotated:
                T.annotate_layout({B: annotated_layout((64, 64))})
            T.copy(A[0:64, k * 64 : (k + 1) * 64], a)
            T.copy(W[k * 64 : (k + 1) * 64, 0:64], w)
            T.clear(c)
            T.gemm(a, w, c)
            T.atomic_add(B, c)

    return main


def product(args: Args, A: torch.Tensor, W: torch.Tensor, B: torch.Tensor) -> Results:
    return total(args, A.double() @ W.double(), B)


def layout_ignored(*targets: str) -> Expect:
    return Expect(
        rule="TLA001",
        releases=">=0.1.6.post2,<=0.1.7",
        buffer="B",
        targets=targets,
        reason="the destination's annotated layout is ignored: https://github.com/tile-ai/tilelang/issues/1366",
    )


SQUARE = given(ints(64, 64), zeros(64, 64))
OPERANDS = given(ints(64, 128, dtype="float16", low=-1, high=2), ints(128, 64, dtype="float16"), zeros(64, 64))

tile_x4 = Case(tile, inputs=SQUARE, reference=total)
tile_x2 = Case(tile, args={"rows": 4}, inputs=given(ints(4, 64), zeros(4, 64)), reference=total)
tile_fp16 = Case(tile, args={"dtype": "float16"}, inputs=SQUARE, reference=total)
tile_bf16 = Case(tile, args={"dtype": "bfloat16"}, inputs=SQUARE, reference=total)
tile_shared = Case(tile, args={"scope": "shared"}, inputs=SQUARE, reference=total)
tile_small = Case(tile, args={"rows": 1}, inputs=given(ints(1, 64), zeros(1, 64)), reference=total)
tile_small_shared = Case(
    tile, args={"rows": 1, "scope": "shared"}, inputs=given(ints(1, 64), zeros(1, 64)), reference=total
)
tile_gemm = Case(split_k, inputs=OPERANDS, reference=product)
tile_gemm_fp16 = Case(split_k, args={"dtype": "float16"}, inputs=OPERANDS, reference=product)

annotated_tile = Case(tile, args={"annotated": True}, inputs=SQUARE, reference=total, expect=[layout_ignored("sm_90")])
annotated_shared = Case(
    tile,
    args={"scope": "shared", "annotated": True},
    inputs=SQUARE,
    reference=total,
    expect=[layout_ignored("sm_90")],
)
annotated_tile_fp16 = Case(
    tile,
    args={"dtype": "float16", "annotated": True},
    inputs=SQUARE,
    reference=total,
    expect=[layout_ignored("sm_80", "sm_90")],
)
annotated_gemm = Case(
    split_k, args={"annotated": True}, inputs=OPERANDS, reference=product, expect=[layout_ignored("sm_90")]
)
annotated_gemm_fp16 = Case(
    split_k,
    args={"dtype": "float16", "annotated": True},
    inputs=OPERANDS,
    reference=product,
    expect=[layout_ignored("sm_80", "sm_90")],
)


# ---- T.Parallel over 512 elements, each with a destination of its own or shared with others

DESTINATIONS: dict[str, Callable[[Any], Any]] = {
    "same": lambda i: i,
    "odd_base": lambda i: i + 1,
    "stride_two": lambda i: 2 * i,
    "reversed": lambda i: 511 - i,
    "transposed": lambda i: i % 16 * 32 + i // 16,
    "swapped_pairs": lambda i: i ^ 1,
    "halved": lambda i: i // 2,
    "one": lambda i: i * 0,
}


def scatter(to, dtype="float32"):
    """B[to(i)] += A[i], with A staged in registers."""
    where = DESTINATIONS[to]

    @T.prim_func
    def main(A: T.Tensor((512,), dtype), B: T.Tensor((1024,), dtype)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((512,), dtype)
            T.copy(A, f)
            for i in T.Parallel(512):
                T.atomic_add(B[where(i)], f[i])

    return main


def scatter_global(to):
    """B[to(i)] += A[i], with A read where it is added."""
    where = DESTINATIONS[to]

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((1024,), "float32")):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(512):
                T.atomic_add(B[where(i)], A[i])

    return main


def scattered(args: Args, A: torch.Tensor, B: torch.Tensor) -> Results:
    where = DESTINATIONS[args["to"]](torch.arange(512, device=A.device))
    return {"B": B.double().index_add(0, where, A.double())}


def gather(n=512):
    """B[I[i]] += A[i]: a destination that depends on data."""

    @T.prim_func
    def main(
        A: T.Tensor((n,), "float32"),
        I: T.Tensor((n,), "int32"),
        B: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(n):
                T.atomic_add(B[I[i]], A[i])

    return main


def gathered(args: Args, A: torch.Tensor, I: torch.Tensor, B: torch.Tensor) -> Results:
    return {"B": B.double().index_add(0, I.long(), A.double())}


def offset(n=512):
    """B[O[0] + i] += A[i]: a base that is known at run time only."""

    @T.prim_func
    def main(
        A: T.Tensor((n,), "float32"),
        O: T.Tensor((1,), "int32"),
        B: T.Tensor((2 * n,), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(n):
                T.atomic_add(B[O[0] + i], A[i])

    return main


def shifted(args: Args, A: torch.Tensor, O: torch.Tensor, B: torch.Tensor) -> Results:
    where = int(O) + torch.arange(len(A), device=A.device)
    return {"B": B.double().index_add(0, where, A.double())}


INVARIANT = Expect(
    rule="TLA001",
    releases=">=0.1.7.post3,<=0.1.14",
    buffer="B",
    targets=("sm_90",),
    reason="lanes with one destination become one vector: https://github.com/tile-ai/tilelang/pull/3219",
)
LINE = given(ints(512), zeros(1024))

scatter_same = Case(scatter, args={"to": "same"}, inputs=LINE, reference=scattered)
scatter_odd_base = Case(scatter, args={"to": "odd_base"}, inputs=LINE, reference=scattered)
scatter_stride_two = Case(scatter, args={"to": "stride_two"}, inputs=LINE, reference=scattered)
scatter_reversed = Case(scatter, args={"to": "reversed"}, inputs=LINE, reference=scattered)
scatter_transposed = Case(scatter, args={"to": "transposed"}, inputs=LINE, reference=scattered)
scatter_swapped_pairs = Case(scatter, args={"to": "swapped_pairs"}, inputs=LINE, reference=scattered)
scatter_halved = Case(scatter, args={"to": "halved"}, inputs=LINE, reference=scattered)
scatter_one = Case(scatter, args={"to": "one"}, inputs=LINE, reference=scattered, expect=[INVARIANT])
scatter_fp16 = Case(scatter, args={"to": "same", "dtype": "float16"}, inputs=LINE, reference=scattered)
scatter_odd_base_fp16 = Case(scatter, args={"to": "odd_base", "dtype": "float16"}, inputs=LINE, reference=scattered)
scatter_one_fp16 = Case(scatter, args={"to": "one", "dtype": "float16"}, inputs=LINE, reference=scattered)
scatter_one_bf16 = Case(scatter, args={"to": "one", "dtype": "bfloat16"}, inputs=LINE, reference=scattered)
global_same = Case(scatter_global, args={"to": "same"}, inputs=LINE, reference=scattered)
global_odd_base = Case(scatter_global, args={"to": "odd_base"}, inputs=LINE, reference=scattered)
global_one = Case(scatter_global, args={"to": "one"}, inputs=LINE, reference=scattered, expect=[INVARIANT])
scatter_gathered = Case(
    gather, inputs=given(ints(512), ints(512, dtype="int32", low=0, high=512), zeros(512)), reference=gathered
)
scatter_offset = Case(
    offset, inputs=given(ints(512), ints(1, dtype="int32", low=0, high=512), zeros(1024)), reference=shifted
)


# ---- two dimensions: row pitches, tails, a sum over columns


def pitched(pitch=None):
    """A 64x32 tile at column 1 - or, with a symbolic pitch, at column 0 - of a wider matrix."""
    width = pitch or T.dynamic("pitch")

    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), B: T.Tensor((64, width), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((64, 32), "float32")
            T.copy(A, f)
            T.atomic_add(B[0:64, 0:32], f)

    return main


def padded(args: Args, A: torch.Tensor, B: torch.Tensor) -> Results:
    result = B.double()
    result[:, :32] += A.double()
    return {"B": result}


def tail_tile(rows=None, columns=None):
    """64x32 tiles over a matrix whose sides they do not divide, added as tiles."""
    m, n = rows or T.dynamic("m"), columns or T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 64), threads=128) as (bx, by):
            f = T.alloc_fragment((64, 32), "float32")
            T.copy(A[by * 64 : (by + 1) * 64, bx * 32 : (bx + 1) * 32], f)
            T.atomic_add(B[by * 64 : (by + 1) * 64, bx * 32 : (bx + 1) * 32], f)

    return main


def tail_parallel(rows=None, columns=None):
    """The same, element by element behind a guard."""
    m, n = rows or T.dynamic("m"), columns or T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 64), threads=128) as (bx, by):
            for i, j in T.Parallel(64, 32):
                if by * 64 + i < m and bx * 32 + j < n:
                    T.atomic_add(B[by * 64 + i, bx * 32 + j], A[by * 64 + i, bx * 32 + j])

    return main


def row_sums(dtype="float32"):
    """B[i] += A[i, j]: one destination for the eight elements that a thread holds."""

    @T.prim_func
    def main(A: T.Tensor((128, 8), dtype), B: T.Tensor((128,), dtype)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((128, 8), dtype)
            T.copy(A, f)
            for i, j in T.Parallel(128, 8):
                T.atomic_add(B[i], f[i, j])

    return main


def summed(args: Args, A: torch.Tensor, B: torch.Tensor) -> Results:
    return {"B": B.double() + A.double().sum(dim=1)}


UNEVEN = given(ints(100, 72), zeros(100, 72))
ODD = given(ints(101, 71), zeros(101, 71))

pitch_even = Case(pitched, args={"pitch": 36}, inputs=given(ints(64, 32), zeros(64, 36)), reference=padded)
pitch_odd = Case(pitched, args={"pitch": 33}, inputs=given(ints(64, 32), zeros(64, 33)), reference=padded)
pitch_symbolic = Case(pitched, inputs=given(ints(64, 32), zeros(64, 33)), reference=padded)
tail_tile_even = Case(tail_tile, args={"rows": 100, "columns": 72}, inputs=UNEVEN, reference=total)
tail_tile_odd = Case(tail_tile, args={"rows": 101, "columns": 71}, inputs=ODD, reference=total)
tail_tile_symbolic = Case(tail_tile, inputs=ODD, reference=total)
tail_parallel_even = Case(tail_parallel, args={"rows": 100, "columns": 72}, inputs=UNEVEN, reference=total)
tail_parallel_odd = Case(tail_parallel, args={"rows": 101, "columns": 71}, inputs=ODD, reference=total)
tail_parallel_symbolic = Case(tail_parallel, inputs=ODD, reference=total)
invariant_rows = Case(row_sums, inputs=given(ints(128, 8), zeros(128)), reference=summed, expect=[INVARIANT])
invariant_rows_fp16 = Case(
    row_sums, args={"dtype": "float16"}, inputs=given(ints(128, 8), zeros(128)), reference=summed
)


# ---- sources: replicated, cast, computed


def reduced(form="tile"):
    """Row sums by T.reduce_sum: each is held by every thread of its row, and is to be added once."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((64, 64), "float32")
            s = T.alloc_fragment((64,), "float32")
            T.copy(A, f)
            T.reduce_sum(f, s, dim=1)
            if form == "tile":
                T.atomic_add(B, s)
            else:
                for i in T.Parallel(64):
                    T.atomic_add(B[i], s[i])

    return main


def cast_tile(dtype):
    """A float32 accumulator added to a 16-bit destination; the cast is the tile op's own."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), W: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), dtype)):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            w = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(W, w)
            T.clear(c)
            T.gemm(a, w, c)
            T.atomic_add(B, c)

    return main


def cast_parallel(dtype):
    """B[i] += cast(A[i])."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), dtype)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((512,), "float32")
            T.copy(A, f)
            for i in T.Parallel(512):
                T.atomic_add(B[i], T.cast(f[i], dtype))

    return main


def expression(n=512):
    """B[i] += 2 * A[i] + C[i]."""

    @T.prim_func
    def main(
        A: T.Tensor((n,), "float32"),
        C: T.Tensor((n,), "float32"),
        B: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((n,), "float32")
            T.copy(A, f)
            for i in T.Parallel(n):
                T.atomic_add(B[i], f[i] * 2.0 + C[i])

    return main


def computed(args: Args, A: torch.Tensor, C: torch.Tensor, B: torch.Tensor) -> Results:
    return {"B": B.double() + 2 * A.double() + C.double()}


REDIRECTED = Expect(
    rule="TLA008",
    releases=">=0.1.9,<=0.1.13",
    buffer="B",
    reason="the cast is decoupled by staging the destination in registers, where the atomic then goes",
)
PRODUCT = given(
    ints(64, 64, dtype="float16", low=-1, high=2), ints(64, 64, dtype="float16", low=-1, high=2), zeros(64, 64)
)

replicated_tile = Case(reduced, inputs=given(ints(64, 64), zeros(64)), reference=summed)
replicated_parallel = Case(reduced, args={"form": "parallel"}, inputs=given(ints(64, 64), zeros(64)), reference=summed)
cast_fp16 = Case(cast_tile, args={"dtype": "float16"}, inputs=PRODUCT, reference=product)
cast_bf16 = Case(cast_tile, args={"dtype": "bfloat16"}, inputs=PRODUCT, reference=product, expect=[REDIRECTED])
cast_parallel_fp16 = Case(
    cast_parallel, args={"dtype": "float16"}, inputs=given(ints(512, dtype="float32"), zeros(512)), reference=total
)
cast_parallel_bf16 = Case(
    cast_parallel, args={"dtype": "bfloat16"}, inputs=given(ints(512, dtype="float32"), zeros(512)), reference=total
)
value_expression = Case(expression, inputs=given(ints(512), ints(512), zeros(512)), reference=computed)


# ---- destinations in shared memory


def shared_tile(dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((512,), dtype), B: T.Tensor((512,), dtype)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((512,), dtype)
            s = T.alloc_shared((512,), dtype)
            T.copy(A, f)
            T.copy(B, s)
            T.atomic_add(s, f)
            T.copy(s, B)

    return main


def shared_parallel(dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((512,), dtype), B: T.Tensor((512,), dtype)):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((512,), dtype)
            T.copy(B, s)
            for i in T.Parallel(512):
                T.atomic_add(s[i], A[i])
            T.copy(s, B)

    return main


def histogram(bins=64):
    """Counted in shared memory, then added to global memory."""

    @T.prim_func
    def main(A: T.Tensor((512,), "int32"), B: T.Tensor((bins,), "int32")):
        with T.Kernel(4, threads=128) as b:
            s = T.alloc_shared((bins,), "int32")
            T.clear(s)
            for i in T.Parallel(128):
                T.atomic_add(s[A[b * 128 + i]], 1)
            T.atomic_add(B, s)

    return main


def counted(args: Args, A: torch.Tensor, B: torch.Tensor) -> Results:
    return {"B": B + torch.bincount(A, minlength=len(B)).int()}


SHARED_VECTOR = Expect(
    rule="TLA004",
    releases=">=0.1.7.post3,<=0.1.14",
    buffer="s",
    targets=("sm_90",),
    reason="float32 vectors exist for global memory only: https://github.com/tile-ai/tilelang/issues/3038",
)

into_shared_tile = Case(shared_tile, inputs=given(ints(512), zeros(512)), reference=total, expect=[SHARED_VECTOR])
into_shared_parallel = Case(
    shared_parallel, inputs=given(ints(512), zeros(512)), reference=total, expect=[SHARED_VECTOR]
)
into_shared_fp16 = Case(shared_tile, args={"dtype": "float16"}, inputs=given(ints(512), zeros(512)), reference=total)
shared_histogram = Case(
    histogram, inputs=given(ints(512, dtype="int32", low=0, high=64), zeros(64, dtype="int32")), reference=counted
)


# ---- other operations: maximum and minimum, previous value, memory order, explicit vectors, TMA


def extreme(op, dtype="float32"):
    """B[i % 64] = op(B[i % 64], A[i]), element by element."""
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


def extremes(args: Args, A: torch.Tensor, B: torch.Tensor) -> Results:
    every = torch.cat([A.double(), B.double()]).reshape(-1, len(B))
    return {"B": every.amax(dim=0) if args["op"] == "atomic_max" else every.amin(dim=0)}


def tickets(n=512):
    """Each positive element draws a ticket, the previous value of a counter, and marks it."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), N: T.Tensor((1,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(n // 128, threads=128) as b:
            tx = T.get_thread_binding()
            if A[b * 128 + tx] > 0:
                ticket = T.atomic_add(N[0], 1, return_prev=True)
                B[ticket] = 1

    return main


def drawn(args: Args, A: torch.Tensor, N: torch.Tensor, B: torch.Tensor) -> Results:
    count = (A > 0).sum().int()
    return {"N": N + count, "B": (torch.arange(len(A), device=A.device) < count).int()}


def ordered(n=256, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((n,), dtype)
            T.copy(A, f)
            T.atomic_add(B, f, memory_order="acq_rel")

    return main


def explicit(width, dtype="float32"):
    """One vector atomic per thread, written as such."""
    atomic = {2: T.atomic_addx2, 4: T.atomic_addx4}[width]

    @T.prim_func
    def main(A: T.Tensor((128 * width,), dtype), B: T.Tensor((128 * width,), dtype)):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            atomic(B[tx * width], A[tx * width])

    return main


def tma(dtype="float32"):
    """A shared tile added by the bulk copy engine."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), dtype)):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((64, 64), dtype)
            T.copy(A, s)
            T.atomic_add(B, s, use_tma=True)

    return main


FEW = given(ints(512), zeros(64))
ORDER_LOST = Expect(
    rule="TLA010",
    releases=">=0.1.7.post3,<=0.1.13",
    buffer="B",
    reason="the vector form drops the memory order: https://github.com/tile-ai/tilelang/issues/2688",
)

maximum = Case(extreme, args={"op": "atomic_max"}, inputs=FEW, reference=extremes)
minimum = Case(extreme, args={"op": "atomic_min"}, inputs=FEW, reference=extremes)
maximum_int = Case(extreme, args={"op": "atomic_max", "dtype": "int32"}, inputs=FEW, reference=extremes)
maximum_fp16 = Case(extreme, args={"op": "atomic_max", "dtype": "float16"}, inputs=FEW, reference=extremes)
maximum_tile = Case(extreme_tile, args={"op": "atomic_max"}, inputs=given(ints(512), zeros(512)), reference=extremes)
minimum_tile = Case(extreme_tile, args={"op": "atomic_min"}, inputs=given(ints(512), zeros(512)), reference=extremes)
previous_value = Case(
    tickets, inputs=given(ints(512), zeros(1, dtype="int32"), zeros(512, dtype="int32")), reference=drawn
)
memory_order_fp16 = Case(
    ordered, args={"dtype": "float16"}, inputs=given(ints(256), zeros(256)), reference=total, expect=[ORDER_LOST]
)
memory_order = Case(ordered, args={"n": 512, "dtype": "float32"}, inputs=given(ints(512), zeros(512)), reference=total)
explicit_x2 = Case(
    explicit, args={"width": 2, "dtype": "float16"}, inputs=given(ints(256), zeros(256)), reference=total
)
explicit_x4 = Case(
    explicit, args={"width": 4}, targets=("sm_90",), inputs=given(ints(512), zeros(512)), reference=total
)
tma_tile = Case(tma, targets=("sm_90",), inputs=SQUARE, reference=total)


# ---- atomics inside loops


def pipelined(stages=2):
    """One product per step of a software pipeline, whose copies are peeled off its first steps."""

    @T.prim_func
    def main(
        A: T.Tensor((256, 64), "float16"),
        W: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            w = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(W, w)
            for k in T.Pipelined(4, num_stages=stages):
                T.copy(A[k * 64 : (k + 1) * 64, 0:64], a)
                T.clear(c)
                T.gemm(a, w, c)
                T.atomic_add(B, c)

    return main


def serial(steps=4):
    """A tile added at another place in every step of a loop."""

    @T.prim_func
    def main(A: T.Tensor((steps * 32, 64), "float32"), B: T.Tensor((steps * 32, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((32, 64), "float32")
            for k in T.serial(steps):
                T.copy(A[k * 32 : (k + 1) * 32, 0:64], f)
                T.atomic_add(B[k * 32 : (k + 1) * 32, 0:64], f)

    return main


def products(args: Args, A: torch.Tensor, W: torch.Tensor, B: torch.Tensor) -> Results:
    return product(args, A.double().reshape(4, 64, 64).sum(dim=0), W, B)


loop_pipelined = Case(
    pipelined,
    inputs=given(
        ints(256, 64, dtype="float16", low=-1, high=2),
        ints(64, 64, dtype="float16"),
        zeros(64, 64),
    ),
    reference=products,
)
loop_serial = Case(serial, inputs=given(ints(128, 64), zeros(128, 64)), reference=total)
