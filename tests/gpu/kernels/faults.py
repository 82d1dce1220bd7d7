# ruff: noqa: N803, N812
# mypy: ignore-errors
"""Deliberately wrong kernels, one for each kind of fault, beside the right one."""

from collections.abc import Callable, Mapping
from typing import Any

import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case, Variant

SIZE = 4096
UNGUARDED = {tilelang.PassConfigKey.TL_DISABLE_SAFE_MEMORY_ACCESS: True}


def inputs(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> Any:
    a = torch.randint(1, 9, (SIZE,), generator=generator, device=generator.device).to(device, torch.float32)
    return a, torch.zeros_like(a)


def scaled(factor: float, size: int = SIZE) -> Callable[..., Any]:
    def make(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> Any:
        a, _ = inputs(args, generator, device)
        a = factor * a[:size]
        return a, torch.zeros_like(a)

    return make


def doubled(args: Mapping[str, Any], A: torch.Tensor, C: torch.Tensor) -> Any:
    return {"C": 2 * A.double()}


def copy(source=lambda i: i, tiles=SIZE // 512):
    """C = 2 A by tiles of 512; with a wrong source, or not all tiles."""

    @T.prim_func
    def main(A: T.Tensor((SIZE,), "float32"), C: T.Tensor((SIZE,), "float32")):
        with T.Kernel(tiles, threads=128) as b:
            for i in T.Parallel(512):
                C[b * 512 + i] = A[source(b * 512 + i)] * 2.0

    return main


@tilelang.jit(pass_configs=UNGUARDED)
def too_far(beyond=32):
    """Writes on behind the end of C."""

    @T.prim_func
    def main(A: T.Tensor((SIZE,), "float32"), C: T.Tensor((SIZE,), "float32")):
        with T.Kernel(SIZE // 512 + 1, threads=128) as b:
            tx = T.get_thread_binding()
            for k in T.serial(4):
                if b * 512 + k * 128 + tx < SIZE + beyond:
                    C[b * 512 + k * 128 + tx] = A[(b * 512 + k * 128 + tx) % SIZE] * 2.0

    return main


def racing():
    """B += sums of A, without atomics."""

    @T.prim_func
    def main(A: T.Tensor((SIZE,), "float32"), C: T.Tensor((SIZE,), "float32")):
        with T.Kernel(SIZE // 128, threads=128) as b:
            tx = T.get_thread_binding()
            C[tx] = C[tx] + A[b * 128 + tx]

    return main


def racing_shared():
    """The same in shared memory, between the threads of a block."""

    @T.prim_func
    def main(A: T.Tensor((SIZE,), "float32"), C: T.Tensor((SIZE,), "float32")):
        with T.Kernel(SIZE // 128, threads=128) as b:
            s = T.alloc_shared((2,), "float32")
            tx = T.get_thread_binding()
            s[tx % 2] = A[b * 128 + tx]
            C[b * 128 + tx] = s[(tx + 1) % 2]

    return main


def root():
    """NaN where A is below 4."""

    @T.prim_func
    def main(A: T.Tensor((SIZE,), "float32"), C: T.Tensor((SIZE,), "float32")):
        with T.Kernel(SIZE // 512, threads=128) as b:
            for i in T.Parallel(512):
                C[b * 512 + i] = T.sqrt(A[b * 512 + i] - 4.0)

    return main


def whole_tiles():
    """C = 2 A for any size, but only whole tiles of it."""
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(n // 512, threads=128) as b:
            for i in T.Parallel(512):
                C[b * 512 + i] = A[b * 512 + i] * 2.0

    return main


def narrow():
    """C = 2 A by way of float16, which ends at 65504."""

    @T.prim_func
    def main(A: T.Tensor((SIZE,), "float32"), C: T.Tensor((SIZE,), "float32")):
        with T.Kernel(SIZE // 512, threads=128) as b:
            for i in T.Parallel(512):
                C[b * 512 + i] = T.cast(T.cast(A[b * 512 + i], "float16"), "float32") * 2.0

    return main


def misaligned():
    """A vector atomic from an odd element on."""

    @T.prim_func
    def main(A: T.Tensor((SIZE,), "float16"), C: T.Tensor((SIZE,), "float16")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            T.atomic_addx2(C[2 * tx + 1], A[2 * tx])

    return main


def halves(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> Any:
    return tuple(x.half() for x in inputs(args, generator, device))


@tilelang.jit(pass_configs=UNGUARDED)
def astray():
    """Writes where no memory is."""

    @T.prim_func
    def main(A: T.Tensor((SIZE,), "float32"), C: T.Tensor((SIZE,), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            C[tx + T.cast(A[tx], "int32") * 0x1000000] = 1.0

    return main


def endless():
    """Takes weeks."""

    @T.prim_func
    def main(A: T.Tensor((SIZE,), "float32"), C: T.Tensor((SIZE,), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            for _ in T.serial(1 << 30):
                for k in T.serial(SIZE):
                    T.atomic_add(C[tx], A[k])

    return main


CALM = {"inputs": inputs, "reference": doubled}

right = Case(copy, **CALM)
one_lane_off = Case(copy, {"source": lambda i: T.if_then_else(i % 64 == 5, i + 1, i)}, **CALM)
unwritten_tile = Case(copy, {"tiles": 7}, **CALM)
out_of_bounds = Case(too_far, **CALM)
race = Case(racing, **CALM)
shared_race = Case(racing_shared, **CALM)
not_a_number = Case(root, **CALM)
one_size = Case(whole_tiles, **CALM, variants={"size 1000": Variant(scaled(1, 1000))})
large_values = Case(narrow, **CALM, variants={"large": Variant(scaled(1e5))})
unaligned_vector = Case(misaligned, inputs=halves, reference=doubled)
illegal_address = Case(astray, **CALM)
hang = Case(endless, **CALM)
