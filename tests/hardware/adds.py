"""Kernels that add, each with another call of TileLang's device library: `adds_record.py` runs them on a GPU.

Numbers are small integers, so that every sum is exact in every dtype and in any order.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case

Args = Mapping[str, Any]
N = 512


def integers(args: Args, generator: torch.Generator, device: Any) -> tuple[torch.Tensor, ...]:
    """Values, destination and, where a kernel has it, what is returned: integers of [1, 6], for min and max too."""
    random = np.random.default_rng(generator.initial_seed())
    made = []
    for dtype in (args["value"], args["to"], *([args["to"]] if args.get("returns") else [])):
        values = torch.from_numpy(random.integers(1, 7, N).astype(np.int64))
        made.append(values.to(getattr(torch, dtype)).to(device))
    return tuple(made)


def reference(args: Args, A: torch.Tensor, B: torch.Tensor, *rest: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return what has to be in B afterwards."""
    values, before = A.cpu().to(torch.float64), B.cpu().to(torch.float64)
    if args.get("operation", "add") != "add":
        return {"B": torch.maximum(values, before) if args["operation"] == "max" else torch.minimum(values, before)}
    if args.get("times", 1) > 1:
        return {"B": before + args["times"] * values}
    return {"B": before + values}


@tilelang.jit
def threads(to, value, order=None, operation="add", times=1):
    """Each thread adds one value; `times` blocks add the same."""
    atomic = {"add": T.atomic_add, "max": T.atomic_max, "min": T.atomic_min}[operation]
    ordered = {} if order is None else {"memory_order": order}

    @T.prim_func
    def main(A: T.Tensor((N,), value), B: T.Tensor((N,), to)):
        with T.Kernel(times, threads=128) as _:
            tx = T.get_thread_binding()
            for k in T.serial(4):
                atomic(B[k * 128 + tx], A[k * 128 + tx], **ordered)

    return main


@tilelang.jit
def returned(to, value, returns=True, order=None):
    """The previous value is kept."""
    ordered = {} if order is None else {"memory_order": order}

    @T.prim_func
    def main(A: T.Tensor((N,), value), B: T.Tensor((N,), to), P: T.Tensor((N,), to)):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            for k in T.serial(4):
                P[k * 128 + tx] = T.atomic_add(B[k * 128 + tx], A[k * 128 + tx], return_prev=True, **ordered)

    return main


@tilelang.jit
def parallel(to, value, order=None):
    """A fragment, element by element: becomes vectors where the release makes them."""
    ordered = {} if order is None else {"memory_order": order}

    @T.prim_func
    def main(A: T.Tensor((N,), value), B: T.Tensor((N,), to)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((N,), value)
            T.copy(A, f)
            for i in T.Parallel(N):
                T.atomic_add(B[i], f[i], **ordered)

    return main


@tilelang.jit
def tile(to, value, order=None):
    """A fragment as one tile."""
    ordered = {} if order is None else {"memory_order": order}

    @T.prim_func
    def main(A: T.Tensor((N,), value), B: T.Tensor((N,), to)):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((N,), value)
            T.copy(A, f)
            T.atomic_add(B, f, **ordered)

    return main


@tilelang.jit
def shared(to, value, order=None):
    """The destination is in shared memory."""
    ordered = {} if order is None else {"memory_order": order}

    @T.prim_func
    def main(A: T.Tensor((N,), value), B: T.Tensor((N,), to)):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((N,), to)
            tx = T.get_thread_binding()
            T.copy(B, s)
            for k in T.serial(4):
                T.atomic_add(s[k * 128 + tx], A[k * 128 + tx], **ordered)
            T.copy(s, B)

    return main


@tilelang.jit
def vectors(to, value, width):
    """A vector written as such: the values are given by pointer."""
    atomic = {2: T.atomic_addx2, 4: T.atomic_addx4}[width]

    @T.prim_func
    def main(A: T.Tensor((N,), value), B: T.Tensor((N,), to)):
        with T.Kernel(1, threads=N // width) as _:
            tx = T.get_thread_binding()
            atomic(B[tx * width], A[tx * width])

    return main


@tilelang.jit
def bulk(to, value):
    """A reduction by TMA, from shared memory."""

    @T.prim_func
    def main(A: T.Tensor((N,), value), B: T.Tensor((N,), to)):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((N,), value)
            T.copy(A, s)
            T.atomic_add(B, s, use_tma=True)

    return main


def case(kernel: Callable[..., Any], to: str, value: str, **more: Any) -> Case:
    """A case of sm_90."""
    args = {"to": to, "value": value, **more}
    return Case(kernel, args=args, targets=("sm_90",), inputs=integers, reference=reference)


threads_f32 = case(threads, "float32", "float32", times=4)
threads_f32_acq_rel = case(threads, "float32", "float32", order="acq_rel")
threads_f32_from_f16 = case(threads, "float32", "float16", times=4)
threads_f32_from_i32 = case(threads, "float32", "int32", times=4)
threads_f64 = case(threads, "float64", "float64", times=4)
threads_f64_release = case(threads, "float64", "float64", order="release")
threads_f64_from_f32 = case(threads, "float64", "float32", times=4)
threads_f16 = case(threads, "float16", "float16", times=4)
threads_f16_from_f32 = case(threads, "float16", "float32", times=4)
threads_f16_from_bf16 = case(threads, "float16", "bfloat16", times=4)
threads_f16_seq_cst = case(threads, "float16", "float16", order="seq_cst")
threads_f16_from_f32_acq_rel = case(threads, "float16", "float32", order="acq_rel")
threads_bf16 = case(threads, "bfloat16", "bfloat16", times=4)
threads_bf16_from_f32 = case(threads, "bfloat16", "float32", times=4)
threads_bf16_acquire = case(threads, "bfloat16", "bfloat16", order="acquire")
threads_i32 = case(threads, "int32", "int32", times=4)
threads_i32_relaxed = case(threads, "int32", "int32", order="relaxed")
threads_i32_acq_rel = case(threads, "int32", "int32", order="acq_rel")
threads_i32_from_f32 = case(threads, "int32", "float32", times=4)
threads_i64 = case(threads, "int64", "int64", times=4)
threads_u32 = case(threads, "uint32", "uint32", times=4)
threads_u64 = case(threads, "uint64", "uint64", times=4)
threads_i16 = case(threads, "int16", "int16")
threads_i8 = case(threads, "int8", "int8")
max_f32 = case(threads, "float32", "float32", operation="max")
max_f16 = case(threads, "float16", "float16", operation="max")
max_f16_from_f32 = case(threads, "float16", "float32", operation="max")
max_i32 = case(threads, "int32", "int32", operation="max")
min_bf16_from_f32 = case(threads, "bfloat16", "float32", operation="min")
min_i64 = case(threads, "int64", "int64", operation="min")
returned_f32 = case(returned, "float32", "float32", returns=True)
returned_i32 = case(returned, "int32", "int32", returns=True)
returned_f16 = case(returned, "float16", "float16", returns=True)
returned_i32_acq_rel = case(returned, "int32", "int32", returns=True, order="acq_rel")
parallel_f32 = case(parallel, "float32", "float32")
parallel_f32_from_f16 = case(parallel, "float32", "float16")
parallel_f32_from_bf16 = case(parallel, "float32", "bfloat16")
parallel_f32_from_i32 = case(parallel, "float32", "int32")
parallel_f32_acq_rel = case(parallel, "float32", "float32", order="acq_rel")
parallel_f16 = case(parallel, "float16", "float16")
parallel_f16_from_f32 = case(parallel, "float16", "float32")
parallel_f16_from_bf16 = case(parallel, "float16", "bfloat16")
parallel_f16_acq_rel = case(parallel, "float16", "float16", order="acq_rel")
parallel_bf16 = case(parallel, "bfloat16", "bfloat16")
parallel_bf16_from_f32 = case(parallel, "bfloat16", "float32")
parallel_bf16_from_f16 = case(parallel, "bfloat16", "float16")
parallel_f64 = case(parallel, "float64", "float64")
parallel_i32 = case(parallel, "int32", "int32")
parallel_i32_from_f32 = case(parallel, "int32", "float32")
tile_f32 = case(tile, "float32", "float32")
tile_f16 = case(tile, "float16", "float16")
tile_bf16 = case(tile, "bfloat16", "bfloat16")
tile_f16_from_f32 = case(tile, "float16", "float32")
tile_bf16_from_f32 = case(tile, "bfloat16", "float32")
tile_i32 = case(tile, "int32", "int32")
tile_f64 = case(tile, "float64", "float64")
tile_bf16_acq_rel = case(tile, "bfloat16", "bfloat16", order="acq_rel")
shared_f32 = case(shared, "float32", "float32")
shared_i32 = case(shared, "int32", "int32")
shared_f16 = case(shared, "float16", "float16")
shared_f32_acq_rel = case(shared, "float32", "float32", order="acq_rel")
vectors_f16_x2 = case(vectors, "float16", "float16", width=2)
vectors_bf16_x2 = case(vectors, "bfloat16", "bfloat16", width=2)
vectors_f32_x2 = case(vectors, "float32", "float32", width=2)
vectors_f32_x4 = case(vectors, "float32", "float32", width=4)
vectors_f16_x4 = case(vectors, "float16", "float16", width=4)
bulk_f32 = case(bulk, "float32", "float32")
bulk_f16 = case(bulk, "float16", "float16")
bulk_i32 = case(bulk, "int32", "int32")
