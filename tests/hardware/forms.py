"""One small kernel for each form of wgmma and of the tensor memory accelerator (TMA) that TileLang emits for sm_90.

`record.py` runs them on a GPU and keeps what they leave; the CPU's execution has to leave the same, element by
element. Inputs are small integers, so that every sum is exact in every dtype and in any order.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case

Args = Mapping[str, Any]


def integers(*shapes: tuple[Any, ...]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """The ``inputs`` of a case: for each (dtype, *shape) integers of [-4, 4]; zeros where the dtype begins with 0."""

    def inputs(args: Args, generator: torch.Generator, device: Any) -> tuple[torch.Tensor, ...]:
        random = np.random.default_rng(generator.initial_seed())
        made = []
        for dtype, *shape in shapes:
            low, high = (0, 1) if dtype[0] == "0" else (-4, 5)
            values = torch.from_numpy(random.integers(low, high, shape).astype(np.float32))
            made.append(values.to(getattr(torch, dtype.lstrip("0"))).to(device))
        return tuple(made)

    return inputs


# ---- wgmma: operands in shared memory or registers, K- and MN-major, every input dtype, every swizzle


TORCH = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
TILELANG = {"e4m3": "float8_e4m3", "e5m2": "float8_e5m2"}


@tilelang.jit
def gemm(m, n, k, block_k, dtype, acc, trans_a, trans_b, registers, stages, threads, out):
    """C = A @ B in one block. registers: A is multiplied from a fragment. out: dtype of C, stored by way of shared."""
    dtype = TILELANG.get(dtype, dtype)

    @T.prim_func
    def main(
        A: T.Tensor((k, m) if trans_a else (m, k), dtype),
        B: T.Tensor((n, k) if trans_b else (k, n), dtype),
        C: T.Tensor((m, n), out or acc),
    ):
        with T.Kernel(1, threads=threads) as _:
            a = T.alloc_shared((block_k, m) if trans_a else (m, block_k), dtype)
            b = T.alloc_shared((n, block_k) if trans_b else (block_k, n), dtype)
            f = T.alloc_fragment((m, block_k), dtype)
            c = T.alloc_fragment((m, n), acc)
            T.clear(c)
            for i in T.Pipelined(k // block_k, num_stages=stages):
                if trans_a:
                    T.copy(A[i * block_k, 0], a)
                else:
                    T.copy(A[0, i * block_k], a)
                if trans_b:
                    T.copy(B[0, i * block_k], b)
                else:
                    T.copy(B[i * block_k, 0], b)
                if registers:
                    T.copy(a, f)
                    T.gemm(f, b, c, transpose_B=trans_b)
                else:
                    T.gemm(a, b, c, transpose_A=trans_a, transpose_B=trans_b)
            if out:
                staged = T.alloc_shared((m, n), out)
                T.copy(c, staged)
                T.copy(staged, C)
            else:
                T.copy(c, C)

    return main


def gemm_case(m=64, n=64, k=128, block_k=64, dtype="float16", acc="float32", form="nn", out="", **more):
    """A case of `gemm`; `form`: n or t for each operand."""
    ta, tb = (letter == "t" for letter in form)
    args = dict(m=m, n=n, k=k, block_k=block_k, dtype=dtype, acc=acc, trans_a=ta, trans_b=tb)
    args |= dict(registers=False, stages=2, threads=128, out=out) | more
    name = TORCH.get(dtype, dtype)
    shapes = (name, *((k, m) if ta else (m, k))), (name, *((n, k) if tb else (k, n))), ("0" + (out or acc), m, n)
    return Case(gemm, args, targets=("sm_90",), inputs=integers(*shapes))


gemm_nn = gemm_case()
gemm_nt = gemm_case(form="nt")
gemm_tn = gemm_case(form="tn")
gemm_tt = gemm_case(form="tt")
gemm_bf16 = gemm_case(dtype="bfloat16", form="nt")
gemm_fp16_sum = gemm_case(acc="float16", form="nt", k=64)
gemm_tf32 = gemm_case(dtype="float32", form="nt", block_k=32, k=64)
gemm_int8 = gemm_case(dtype="int8", acc="int32", form="nt", block_k=128, k=256)
gemm_e4m3 = gemm_case(dtype="e4m3", form="nt", block_k=128, k=256)
gemm_e5m2 = gemm_case(dtype="e5m2", form="nt", block_k=128, k=256)
gemm_swizzle_64 = gemm_case(form="nt", block_k=32, k=64)
gemm_swizzle_32 = gemm_case(form="nt", block_k=16, k=32)
gemm_mn_swizzle_64 = gemm_case(form="tn", m=64, n=32)
gemm_mn_swizzle_32 = gemm_case(form="nn", n=16)
gemm_n8 = gemm_case(form="nt", n=8)
gemm_n24 = gemm_case(form="nt", n=24)
gemm_n256 = gemm_case(form="nt", n=256, k=64)
gemm_nn_n128 = gemm_case(form="nn", n=128)
gemm_tn_m128 = gemm_case(form="tn", m=128, n=64)
gemm_wide = gemm_case(form="nt", m=128, n=128, threads=256)
gemm_k256 = gemm_case(form="nt", block_k=128, k=256)
gemm_stmatrix = gemm_case(form="nt", out="float16")
gemm_stmatrix_n128 = gemm_case(form="nt", n=128, out="bfloat16")
gemm_store_fp32 = gemm_case(form="nt", out="float32")
gemm_three_stages = gemm_case(form="nt", k=256, stages=3)
rs_fp16 = gemm_case(form="nt", registers=True)
rs_fp16_nn = gemm_case(form="nn", registers=True)
rs_bf16 = gemm_case(form="nt", dtype="bfloat16", registers=True)
rs_int8 = gemm_case(dtype="int8", acc="int32", form="nt", block_k=128, k=256, registers=True)
rs_e4m3 = gemm_case(dtype="e4m3", form="nt", block_k=128, k=256, registers=True)
rs_tf32 = gemm_case(dtype="float32", form="nt", block_k=32, k=64, registers=True)


# ---- TMA: loads and stores of ranks 1 to 4, with every swizzle, over edges, reductions, im2col


@tilelang.jit
def tiles(shape, box, dtype):
    """B = A + 1, tile by tile through shared memory: a loop over the first axis, blocks over the others."""
    rank, steps = len(shape), -(-shape[0] // box[0])
    grid = [-(-s // b) for s, b in zip(shape[1:], box[1:], strict=True)] + [1, 1, 1]

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(grid[0], grid[1], grid[2], threads=128) as (x, y, z):
            a = T.alloc_shared(box, dtype)
            b = T.alloc_shared(box, dtype)
            for i in T.Pipelined(steps, num_stages=2):
                if rank == 1:
                    T.copy(A[i * box[0]], a)
                    for p in T.Parallel(box[0]):
                        b[p] = a[p] + 1
                    T.copy(b, B[i * box[0]])
                elif rank == 2:
                    T.copy(A[i * box[0], x * box[1]], a)
                    for p, q in T.Parallel(box[0], box[1]):
                        b[p, q] = a[p, q] + 1
                    T.copy(b, B[i * box[0], x * box[1]])
                elif rank == 3:
                    T.copy(A[i * box[0], x * box[1], y * box[2]], a)
                    for p, q, r in T.Parallel(box[0], box[1], box[2]):
                        b[p, q, r] = a[p, q, r] + 1
                    T.copy(b, B[i * box[0], x * box[1], y * box[2]])
                else:
                    T.copy(A[i * box[0], x * box[1], y * box[2], z * box[3]], a)
                    for p, q, r, s in T.Parallel(box[0], box[1], box[2], box[3]):
                        b[p, q, r, s] = a[p, q, r, s] + 1
                    T.copy(b, B[i * box[0], x * box[1], y * box[2], z * box[3]])

    return main


def tiles_case(shape, box, dtype="float16"):
    args = dict(shape=shape, box=box, dtype=dtype)
    return Case(tiles, args, targets=("sm_90",), inputs=integers((dtype, *shape), ("0" + dtype, *shape)))


tma_1d = tiles_case((1024,), (256,))
tma_2d = tiles_case((64, 64), (16, 32))
tma_2d_fp32 = tiles_case((64, 64), (16, 32), "float32")
tma_2d_bf16 = tiles_case((64, 64), (16, 64), "bfloat16")
tma_2d_int8 = tiles_case((64, 64), (16, 32), "int8")
tma_2d_rows = tiles_case((70, 64), (16, 32))
tma_2d_columns = tiles_case((64, 72), (16, 32))
tma_2d_edges = tiles_case((70, 72), (16, 32))
tma_3d = tiles_case((4, 16, 64), (2, 8, 32))
tma_3d_edges = tiles_case((5, 18, 72), (2, 8, 32))
tma_4d = tiles_case((4, 4, 8, 32), (1, 2, 4, 32))
tma_4d_edges = tiles_case((3, 3, 9, 40), (2, 2, 4, 32))


@tilelang.jit
def reduction(m, n, dtype, operation):
    """B op= A by a bulk reduction of each tile."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(m // 32, threads=128) as x:
            a = T.alloc_shared((32, n), dtype)
            T.copy(A[x * 32, 0], a)
            if operation == "add":
                T.atomic_add(B[x * 32, 0], a, use_tma=True)
            elif operation == "max":
                T.atomic_max(B[x * 32, 0], a, use_tma=True)
            else:
                T.atomic_min(B[x * 32, 0], a, use_tma=True)

    return main


def reduction_case(dtype, operation="add"):
    args = dict(m=64, n=64, dtype=dtype, operation=operation)
    return Case(reduction, args, targets=("sm_90",), inputs=integers((dtype, 64, 64), (dtype, 64, 64)))


reduce_fp32 = reduction_case("float32")
reduce_fp16 = reduction_case("float16")
reduce_bf16 = reduction_case("bfloat16")


@tilelang.jit
def convolution(n, c, h, w, f, kernel, stride, dilation, padding, block_m, block_n, block_k):
    """out = conv2d(data, weight) in NHWC, its tiles of data loaded by im2col."""
    kh = kw = kernel
    oh = (h + 2 * padding - dilation * (kh - 1) - 1) // stride + 1
    ow = (w + 2 * padding - dilation * (kw - 1) - 1) // stride + 1

    @T.prim_func
    def main(
        data: T.Tensor((n, h, w, c), "float16"),
        weight: T.Tensor((kh, kw, c, f), "float16"),
        out: T.Tensor((n, oh, ow, f), "float32"),
    ):
        with T.Kernel(T.ceildiv(f, block_n), T.ceildiv(n * oh * ow, block_m), threads=128) as (bx, by):
            a = T.alloc_shared((block_m, block_k), "float16")
            b = T.alloc_shared((block_k, block_n), "float16")
            s = T.alloc_fragment((block_m, block_n), "float32")
            flat = T.Tensor((kh * kw * c, f), "float16", weight.data)
            result = T.Tensor((n * oh * ow, f), "float32", out.data)
            T.clear(s)
            for k in T.Pipelined(T.ceildiv(kh * kw * c, block_k), num_stages=2):
                T.c2d_im2col(data, a, by, k, kh, stride, dilation, padding)
                T.copy(flat[k * block_k, bx * block_n], b)
                T.gemm(a, b, s)
            T.copy(s, result[by * block_m, bx * block_n])

    return main


def convolution_case(stride=1, dilation=1, padding=1):
    args = dict(n=1, c=64, h=8, w=8, f=64, kernel=3, stride=stride, dilation=dilation, padding=padding)
    size = (8 + 2 * padding - dilation * 2 - 1) // stride + 1
    shapes = ("float16", 1, 8, 8, 64), ("float16", 3, 3, 64, 64), ("0float32", 1, size, size, 64)
    args |= {"block_m": 64, "block_n": 64, "block_k": 64}
    return Case(convolution, args, targets=("sm_90",), inputs=integers(*shapes))


im2col = convolution_case()
im2col_stride = convolution_case(stride=2)
im2col_dilation = convolution_case(dilation=2, padding=2)
