"""Small kernels with one atomic each: the forms in which TileLang has lowered additions, right and wrong.

Each kernel adds a source A to a destination B in global memory and is as small as its form allows; each section is one
idea. ``expect`` names the releases in which a form goes wrong; in all others every atomic is to be proved. Sources are
small integers, so that sums are exact in any order and in 16 bits. Other destinations and operations:
``atomic_operations.py``.
"""

from collections.abc import Callable, Mapping
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
    """B + A, in the order that an annotated layout gives to B."""
    result = A.double() + B.double()
    return {"B": arranged(result) if args.get("annotated") == "B" else result}


# ---- a tile added to global memory: vectors are right, unless a layout puts the lanes apart


def annotated_layout(rows):
    """That of an 8x8 accumulator tile: two neighbours of a row are 32 elements apart."""
    return T.Layout((rows, 64), lambda i, j: [i // 8, j // 8, j % 2, 4 * (i % 8) + (j % 8) // 2])


def arranged(B: Tensor) -> Tensor:
    """B in the physical order of ``annotated_layout``, same shape."""
    rows, columns = B.shape
    return B.reshape(rows // 8, 8, columns // 8, 4, 2).permute(0, 2, 4, 1, 3).reshape(B.shape)


def tile(rows=64, dtype="float32", scope="fragment", annotated=""):
    """``rows`` x 64 elements, staged in registers or in shared memory."""
    alloc = {"fragment": T.alloc_fragment, "shared": T.alloc_shared}[scope]

    @T.prim_func
    def main(A: T.Tensor((rows, 64), dtype), B: T.Tensor((rows, 64), dtype)):
        with T.Kernel(1, threads=128) as _:
            staged = alloc((rows, 64), dtype)
            if annotated == "B":
                T.annotate_layout({B: annotated_layout(rows)})
            if annotated == "staged":
                T.annotate_layout({staged: annotated_layout(rows)})
            T.copy(A, staged)
            T.atomic_add(B, staged)

    return main


def split_k(dtype="float32", accum="float32", annotated=""):
    """A matrix product, of which each of two blocks adds one half of K."""

    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), W: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 64), dtype)):
        with T.Kernel(2, threads=128) as k:
            a = T.alloc_shared((64, 64), "float16")
            w = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), accum)
            if annotated == "B":
                T.annotate_layout({B: annotated_layout(64)})
            T.copy(A[0:64, k * 64 : (k + 1) * 64], a)
            T.copy(W[k * 64 : (k + 1) * 64, 0:64], w)
            T.clear(c)
            T.gemm(a, w, c)
            T.atomic_add(B, c)

    return main


def product(args: Args, A: Tensor, W: Tensor, B: Tensor) -> Results:
    return total(args, A.double() @ W.double(), B)


def layout_ignored(*targets: str, rule: str = "TLA001") -> Expect:
    issue = "https://github.com/tile-ai/tilelang/issues/1366"
    return Expect(
        releases=">=0.1.6.post2,<=0.1.7",
        rule=rule,
        buffer="B",
        targets=targets,
        reason=f"vectorized without a look at the annotated layout: {issue}",
    )


ONCE_PER_REPLICA = Expect(
    releases=">=0.1.6.post2,<=0.1.7.post2",
    rule="TLA005",
    buffer="B",
    reason="every thread that holds a replica of an element adds it",
)
# What the device library's headers do not take; `tlcheck explain TLA013`.
NO_HALVES = Expect(
    releases="<0.1.7", rule="TLA013", buffer="B", reason="the device library has no scalar atomics of 16-bit values"
)
NO_PAIRS = Expect(
    releases=">=0.1.7.post3,<=0.1.8",
    rule="TLA013",
    buffer="B",
    reason="pairs of 16-bit values are passed by value, the device library takes their address",
)
HALF = {"dtype": "float16"}
BRAIN = {"dtype": "bfloat16"}
ROW = given(ints(1, 64), zeros(1, 64))
SQUARE = given(ints(64, 64), zeros(64, 64))
MATRICES = given(ints(64, 128, dtype="float16", low=-1, high=2), ints(128, 64, dtype="float16"), zeros(64, 64))
FP16_ACCUM = {"dtype": "float16", "accum": "float16"}
ON_B = {"annotated": "B"}

tile_x4 = Case(tile, inputs=SQUARE, reference=total)
tile_x2 = Case(tile, {"rows": 4}, inputs=given(ints(4, 64), zeros(4, 64)), reference=total)
tile_fp16 = Case(tile, HALF, inputs=SQUARE, reference=total, expect=[NO_PAIRS])
tile_bf16 = Case(tile, BRAIN, inputs=SQUARE, reference=total, expect=[NO_PAIRS])
tile_int32 = Case(tile, {"dtype": "int32"}, inputs=SQUARE, reference=total)
tile_fp64 = Case(tile, {"dtype": "float64"}, inputs=SQUARE, reference=total)
tile_shared = Case(tile, {"scope": "shared"}, inputs=SQUARE, reference=total)
tile_small = Case(tile, {"rows": 1}, inputs=ROW, reference=total, expect=[ONCE_PER_REPLICA])
tile_small_shared = Case(tile, {"rows": 1, "scope": "shared"}, inputs=ROW, reference=total)
tile_gemm = Case(split_k, inputs=MATRICES, reference=product)
tile_gemm_fp16 = Case(split_k, FP16_ACCUM, inputs=MATRICES, reference=product, expect=[NO_PAIRS])

annotated_tile = Case(tile, ON_B, inputs=SQUARE, reference=total, expect=[layout_ignored("sm_90")])
annotated_tile_fp16 = Case(tile, {**ON_B, **HALF}, inputs=SQUARE, reference=total, expect=[layout_ignored()])
annotated_shared = Case(
    tile, {**ON_B, "scope": "shared"}, inputs=SQUARE, reference=total, expect=[layout_ignored("sm_90")]
)
annotated_gemm = Case(split_k, ON_B, inputs=MATRICES, reference=product, expect=[layout_ignored("sm_90")])
annotated_gemm_fp16 = Case(
    split_k, {**ON_B, **FP16_ACCUM}, inputs=MATRICES, reference=product, expect=[layout_ignored()]
)
annotated_source = Case(
    tile,
    {"annotated": "staged", "scope": "shared"},
    inputs=SQUARE,
    reference=total,
    expect=[layout_ignored("sm_90", rule="TLA003")],
)


# ---- element by element, each of 512 with a destination of its own or shared with others

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


def scattered(args: Args, A: Tensor, B: Tensor) -> Results:
    where = DESTINATIONS[args["to"]](torch.arange(512, device=A.device))
    return {"B": B.double().index_add(0, where, A.double())}


def gather():
    """B[I[i]] += A[i]: a destination that depends on data."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), I: T.Tensor((512,), "int32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(512):
                T.atomic_add(B[I[i]], A[i])

    return main


def gathered(args: Args, A: Tensor, I: Tensor, B: Tensor) -> Results:
    return {"B": B.double().index_add(0, I.long(), A.double())}


def offset():
    """B[I[0] + i] += A[i]: a base that is known at run time only."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), I: T.Tensor((1,), "int32"), B: T.Tensor((1024,), "float32")):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(512):
                T.atomic_add(B[I[0] + i], A[i])

    return main


def shifted(args: Args, A: Tensor, I: Tensor, B: Tensor) -> Results:
    return gathered(args, A, I + torch.arange(len(A), device=A.device), B)


def guarded():
    """B[i] += A[i] where A[i] > 0: lanes of one vector may differ in it."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((512,), "float32")
            T.copy(A, f)
            for i in T.Parallel(512):
                if f[i] > 0:
                    T.atomic_add(B[i], f[i])

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


def summed(args: Args, A: Tensor, B: Tensor) -> Results:
    return {"B": B.double() + A.double().sum(dim=1)}


def invariant(*targets: str) -> Expect:
    pull = "https://github.com/tile-ai/tilelang/pull/3219"
    return Expect(
        releases=">=0.1.7.post3,<=0.1.14",
        rule="TLA001",
        buffer="B",
        targets=targets,
        reason=f"lanes with one destination are taken for neighbours: {pull}",
    )


LINE = given(ints(512), zeros(1024))
ROWS = given(ints(128, 8), zeros(128))

scatter_same = Case(scatter, {"to": "same"}, inputs=LINE, reference=scattered)
scatter_same_fp16 = Case(
    scatter, {"to": "same", **HALF}, inputs=LINE, reference=scattered, expect=[NO_HALVES, NO_PAIRS]
)
scatter_odd_base = Case(scatter, {"to": "odd_base"}, inputs=LINE, reference=scattered)
scatter_odd_base_fp16 = Case(scatter, {"to": "odd_base", **HALF}, inputs=LINE, reference=scattered, expect=[NO_HALVES])
scatter_stride_two = Case(scatter, {"to": "stride_two"}, inputs=LINE, reference=scattered)
scatter_reversed = Case(scatter, {"to": "reversed"}, inputs=LINE, reference=scattered)
scatter_transposed = Case(scatter, {"to": "transposed"}, inputs=LINE, reference=scattered)
scatter_swapped_pairs = Case(scatter, {"to": "swapped_pairs"}, inputs=LINE, reference=scattered)
scatter_guarded = Case(
    guarded, inputs=given(ints(512), zeros(512)), reference=lambda args, A, B: total(args, A.relu(), B)
)
scatter_gathered = Case(
    gather, inputs=given(ints(512), ints(512, dtype="int32", low=0, high=512), zeros(512)), reference=gathered
)
scatter_offset = Case(
    offset, inputs=given(ints(512), ints(1, dtype="int32", low=0, high=512), zeros(1024)), reference=shifted
)
global_same = Case(scatter_global, {"to": "same"}, inputs=LINE, reference=scattered)
global_odd_base = Case(scatter_global, {"to": "odd_base"}, inputs=LINE, reference=scattered)

invariant_one = Case(scatter, {"to": "one"}, inputs=LINE, reference=scattered, expect=[invariant("sm_90")])
invariant_one_fp16 = Case(
    scatter, {"to": "one", **HALF}, inputs=LINE, reference=scattered, expect=[invariant(), NO_HALVES]
)
invariant_one_bf16 = Case(
    scatter, {"to": "one", **BRAIN}, inputs=LINE, reference=scattered, expect=[invariant(), NO_HALVES]
)
invariant_global = Case(scatter_global, {"to": "one"}, inputs=LINE, reference=scattered, expect=[invariant("sm_90")])
invariant_halved = Case(scatter, {"to": "halved"}, inputs=LINE, reference=scattered, expect=[invariant("sm_90")])
invariant_rows = Case(row_sums, inputs=ROWS, reference=summed, expect=[invariant("sm_90")])
invariant_rows_fp16 = Case(row_sums, HALF, inputs=ROWS, reference=summed, expect=[invariant(), NO_HALVES])


# ---- bounds and pitches: a tile in a wider matrix, tiles that do not divide their matrix


def pitched(pitch=None, column=0, dtype="float32"):
    """64 rows of 32 elements, from ``column`` on, of a matrix with rows of ``pitch`` elements; None: symbolic."""
    width = pitch or T.dynamic("pitch")

    @T.prim_func
    def main(A: T.Tensor((64, 32), dtype), B: T.Tensor((64, width), dtype)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((64, 32), dtype)
            T.copy(A, f)
            T.atomic_add(B[0:64, column : column + 32], f)

    return main


def padded(args: Args, A: Tensor, B: Tensor) -> Results:
    result, column = B.double(), args.get("column", 0)
    result[:, column : column + 32] += A.double()
    return {"B": result}


def tail_tile(rows=None, columns=None):
    """64x32 tiles over a matrix whose sides they do not divide, added as tiles; None: a symbolic size."""
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


EVEN = given(ints(100, 72), zeros(100, 72))
ODD = given(ints(101, 71), zeros(101, 71))
PITCH_33 = given(ints(64, 32), zeros(64, 33))
PITCH_34 = given(ints(64, 32), zeros(64, 34))
PITCH_36 = given(ints(64, 32), zeros(64, 36))

pitch_36 = Case(pitched, {"pitch": 36}, inputs=PITCH_36, reference=padded)
pitch_36_column_1 = Case(pitched, {"pitch": 36, "column": 1}, inputs=PITCH_36, reference=padded)
pitch_36_column_2 = Case(pitched, {"pitch": 36, "column": 2}, inputs=PITCH_36, reference=padded)
pitch_34 = Case(pitched, {"pitch": 34}, inputs=PITCH_34, reference=padded)
pitch_33 = Case(pitched, {"pitch": 33}, inputs=PITCH_33, reference=padded)
pitch_33_fp16 = Case(pitched, {"pitch": 33, **HALF}, inputs=PITCH_33, reference=padded, expect=[NO_HALVES])
pitch_symbolic = Case(pitched, inputs=PITCH_33, reference=padded)
tail_tile_even = Case(tail_tile, {"rows": 100, "columns": 72}, inputs=EVEN, reference=total)
tail_tile_odd = Case(tail_tile, {"rows": 101, "columns": 71}, inputs=ODD, reference=total)
tail_tile_symbolic = Case(tail_tile, inputs=ODD, reference=total)
tail_parallel_even = Case(tail_parallel, {"rows": 100, "columns": 72}, inputs=EVEN, reference=total)
tail_parallel_odd = Case(tail_parallel, {"rows": 101, "columns": 71}, inputs=ODD, reference=total)
tail_parallel_symbolic = Case(tail_parallel, inputs=ODD, reference=total)


# ---- values: replicated, cast, computed


def reduced(form="tile"):
    """Row sums by T.reduce_sum: every thread of a row holds its sum, which is to be added once."""

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


def expression():
    """B[i] += 2 * A[i] + C[i]."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), C: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((512,), "float32")
            T.copy(A, f)
            for i in T.Parallel(512):
                T.atomic_add(B[i], f[i] * 2.0 + C[i])

    return main


def computed(args: Args, A: Tensor, C: Tensor, B: Tensor) -> Results:
    return {"B": B.double() + 2 * A.double() + C.double()}


SHORTENED = Expect(
    releases=">=0.1.6.post2,<=0.1.7",
    rule="TLA006",
    buffer="B",
    reason="the loop is shortened for vectors, but scalars are emitted: only the first lane of each is added",
)
REDIRECTED = Expect(
    releases=">=0.1.9,<=0.1.13",
    rule="TLA008",
    buffer="B",
    reason="the cast is decoupled by staging the destination in registers, and the atomic goes there",
)
FLOATS = given(ints(512, dtype="float32"), zeros(512))

replicated_tile = Case(reduced, inputs=given(ints(64, 64), zeros(64)), reference=summed, expect=[ONCE_PER_REPLICA])
replicated_parallel = Case(reduced, {"form": "parallel"}, inputs=given(ints(64, 64), zeros(64)), reference=summed)
cast_fp16 = Case(split_k, HALF, inputs=MATRICES, reference=product, expect=[SHORTENED, REDIRECTED, NO_PAIRS])
cast_bf16 = Case(split_k, BRAIN, inputs=MATRICES, reference=product, expect=[SHORTENED, REDIRECTED, NO_PAIRS])
cast_parallel_fp16 = Case(cast_parallel, HALF, inputs=FLOATS, reference=total, expect=[REDIRECTED, NO_HALVES, NO_PAIRS])
cast_parallel_bf16 = Case(
    cast_parallel, BRAIN, inputs=FLOATS, reference=total, expect=[REDIRECTED, NO_HALVES, NO_PAIRS]
)
value_expression = Case(expression, inputs=given(ints(512), ints(512), zeros(512)), reference=computed)


# ---- atomics inside loops


def pipelined():
    """One product per step of a software pipeline, which peels its first copies and its last steps."""

    @T.prim_func
    def main(A: T.Tensor((256, 64), "float16"), W: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            w = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(W, w)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 64 : (k + 1) * 64, 0:64], a)
                T.clear(c)
                T.gemm(a, w, c)
                T.atomic_add(B, c)

    return main


def serial():
    """A tile added at another place in every step of a loop."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float32"), B: T.Tensor((128, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((32, 64), "float32")
            for k in T.serial(4):
                T.copy(A[k * 32 : (k + 1) * 32, 0:64], f)
                T.atomic_add(B[k * 32 : (k + 1) * 32, 0:64], f)

    return main


def products(args: Args, A: Tensor, W: Tensor, B: Tensor) -> Results:
    return product(args, A.double().reshape(4, 64, 64).sum(dim=0), W, B)


STEPS = given(ints(256, 64, dtype="float16"), ints(64, 64, dtype="float16"), zeros(64, 64))

loop_pipelined = Case(pipelined, inputs=STEPS, reference=products)
loop_serial = Case(serial, inputs=given(ints(128, 64), zeros(128, 64)), reference=total)


# ---- a tile of one element


def element():
    """One element, added by each of four blocks."""

    @T.prim_func
    def main(A: T.Tensor((1,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(4, threads=128) as _:
            f = T.alloc_fragment((1,), "float32")
            T.copy(A, f)
            T.atomic_add(B, f)

    return main


def four_times(args: Args, A: Tensor, B: Tensor) -> Results:
    return {"B": B.double() + 4 * A.double()}


tile_element = Case(
    element,
    inputs=given(ints(1, low=1), zeros(1)),
    reference=four_times,
    expect=[
        Expect(releases="<=0.1.7.post3", rule="TLA009", buffer="B", reason="it becomes the plain store B[0] = f[0]")
    ],
)


# ---- loops whose bounds are read from memory


def ragged(form="serial"):
    """Each block adds a tile at the rows of its own sequence, from one offset in L to the next."""

    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), L: T.Tensor((5,), "int32"), B: T.Tensor((64, 32), "float32")):
        with T.Kernel(4, threads=64) as b:
            if form == "serial":
                f = T.alloc_fragment((16, 32), "float32")
                T.copy(A[0, 0], f)
                for k in T.serial(L[b], L[b + 1]):
                    T.atomic_add(B[k, 0], f)
            else:
                s = T.alloc_shared((16, 32), "float32")
                for k in T.Pipelined(T.ceildiv(L[b], 16), num_stages=2):
                    T.copy(A[k * 16, 0], s)
                    T.atomic_add(B[k * 16, 0], s)

    return main


def offsets(args: Args, generator: torch.Generator) -> Tensor:
    """Five offsets that rise from 0 to 64; the last tiles reach beyond the rows of B."""
    inner = torch.randint(0, 65, (3,), generator=generator, device=generator.device).sort().values
    return torch.cat([inner.new_zeros(1), inner, inner.new_full((1,), 64)]).int()


def by_rows(args: Args, A: Tensor, L: Tensor, B: Tensor) -> Results:
    result = torch.cat([B.double(), B.new_zeros(16, 32).double()])
    for k in range(64):
        result[k : k + 16] += A[:16].double()
    return {"B": result[:64]}


def by_tiles(args: Args, A: Tensor, L: Tensor, B: Tensor) -> Results:
    result = B.double()
    for length in L[:4].tolist():
        rows = 16 * -(-length // 16)
        result[:rows] += A[:rows].double()
    return {"B": result}


RAGGED = given(ints(64, 32), offsets, zeros(64, 32))

loop_ragged = Case(ragged, inputs=RAGGED, reference=by_rows)
loop_ragged_pipelined = Case(
    ragged,
    {"form": "pipelined"},
    inputs=RAGGED,
    reference=by_tiles,
    expect=[
        Expect(
            releases="==0.1.7.post3",
            rule="TLR001",
            buffer="s",
            targets=("sm_80",),
            reason="no barrier stands between the reads of a stage and the copy of the next step into it",
        ),
    ],
)


# ---- sizes of which the author promises something: newer releases drop guards on the strength of it


def promised(of="rows"):
    """A tile whose guard follows from T.assume: of a number of rows that it divides, or of a pitch that has room."""
    n = T.dynamic("n")
    shape = (n, 32) if of == "rows" else (64, n)

    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), B: T.Tensor(shape, "float32")):
        with T.Kernel(T.ceildiv(n, 64) if of == "rows" else 1, threads=128) as b:
            f = T.alloc_fragment((64, 32), "float32")
            T.assume(n % 64 == 0)
            T.copy(A, f)
            T.atomic_add(B[b * 64, 0], f)

    return main


def each_tile(args: Args, A: Tensor, B: Tensor) -> Results:
    return {"B": B.double() + A.double().repeat(B.shape[0] // 64, 1)}


def first_columns(args: Args, A: Tensor, B: Tensor) -> Results:
    result = B.double()
    result[:, :32] += A.double()
    return {"B": result}


assumed_rows = Case(promised, inputs=given(ints(64, 32), zeros(192, 32)), reference=each_tile)
assumed_pitch = Case(promised, {"of": "pitch"}, inputs=given(ints(64, 32), zeros(64, 128)), reference=first_columns)


def packed():
    """Sequences of different lengths behind one another in B: each block adds a tile, cut where its sequence ends."""
    total, count = T.dynamic("total"), T.dynamic("count")

    @T.prim_func
    def main(A: T.Tensor((total, 64), "float32"), L: T.Tensor((count,), "int32"), B: T.Tensor((total, 64), "float32")):
        with T.Kernel(4, count - 1, threads=128) as (x, y):
            f = T.alloc_fragment((32, 64), "float32")
            first, end = L[y], L[y + 1]
            for i, j in T.Parallel(32, 64):
                f[i, j] = T.if_then_else(first + x * 32 + i < end, A[first + x * 32 + i, j], 0)
            for i, j in T.Parallel(32, 64):
                if first + x * 32 + i < end:
                    T.atomic_add(B[first + x * 32 + i, j], f[i, j])

    return main


loop_packed = Case(
    packed, inputs=given(ints(64, 64), offsets, zeros(64, 64)), reference=lambda args, A, L, B: total(args, A, B)
)
