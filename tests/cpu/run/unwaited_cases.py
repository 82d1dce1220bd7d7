"""Kernels that begin copies and products and wait for them themselves: in time, or too late."""

from __future__ import annotations

import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case

SHAPE = (64, 64)
UNSYNCED = {tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True}


def one_load(waits: bool):
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared(SHAPE, "float16")
            full = T.alloc_barrier(128)
            T.tma_copy(A, s, barrier=full)
            T.mbarrier_arrive(full)
            if waits:
                T.mbarrier_wait_parity(full, 0)
            for i, j in T.Parallel(64, 64):
                C[i, j] = s[j, i]

    return main


def two_barriers(first: int):
    """Two loads; the first that is read is that of barrier 0."""

    @T.prim_func
    def main(A: T.Tensor((2, *SHAPE), "float16"), B: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared(SHAPE, "float16")
            b = T.alloc_shared(SHAPE, "float16")
            full = T.alloc_barrier([128, 128])
            T.tma_copy(A[0, 0:64, 0:64], a, barrier=full[0])
            T.mbarrier_arrive(full[0])
            T.tma_copy(A[1, 0:64, 0:64], b, barrier=full[1])
            T.mbarrier_arrive(full[1])
            T.mbarrier_wait_parity(full[first], 0)
            for i, j in T.Parallel(64, 64):
                B[i, j] = a[j, i]
            T.mbarrier_wait_parity(full[1 - first], 0)
            for i, j in T.Parallel(64, 64):
                C[i, j] = b[j, i]

    return main


def one_barrier(arrives_first: bool):
    """Two loads for one phase, which may end before the second one is announced."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), W: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared(SHAPE, "float16")
            w = T.alloc_shared(SHAPE, "float16")
            full = T.alloc_barrier(128)
            T.tma_copy(A, a, barrier=full)
            if arrives_first:
                T.mbarrier_arrive(full)
            T.tma_copy(W, w, barrier=full)
            if not arrives_first:
                T.mbarrier_arrive(full)
            T.mbarrier_wait_parity(full, 0)
            for i, j in T.Parallel(64, 64):
                C[i, j] = a[j, i] + w[i, j]

    return main


def in_stages(waited: int | None):
    """A pipeline of two stages. waited: the barrier that its consumer waits for, None for that of the stage."""

    @T.prim_func
    def main(A: T.Tensor((4, *SHAPE), "float16"), B: T.Tensor((4, *SHAPE), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((2, *SHAPE), "float16")
            full = T.alloc_barrier([128, 128])
            for k in T.serial(2):
                T.tma_copy(A[k, 0:64, 0:64], s[k, :, :], barrier=full[k])
                T.mbarrier_arrive(full[k])
            for k in T.serial(4):
                T.mbarrier_wait_parity(full[k % 2 if waited is None else waited], k // 2 % 2)
                for i, j in T.Parallel(64, 64):
                    B[k, i, j] = s[k % 2, j, i]
                T.sync_threads()
                if k < 2:
                    T.tma_copy(A[k + 2, 0:64, 0:64], s[k % 2, :, :], barrier=full[k % 2])
                    T.mbarrier_arrive(full[k % 2])

    return main


def in_branches(waited: int | None, released: int, filled: int = 128, steps: int = 4):
    """A producer and a consumer. released: how many threads of the consumer say that a stage may be filled again.
    filled: how many of the producer arrive at its barrier."""

    @T.prim_func
    def main(A: T.Tensor((steps, *SHAPE), "float16"), B: T.Tensor((steps, *SHAPE), "float16")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            s = T.alloc_shared((2, *SHAPE), "float16")
            full = T.alloc_barrier([filled, filled])
            empty = T.alloc_barrier([released, released])
            with T.ws(1):
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(empty[k % 2], k // 2 % 2 ^ 1)
                    T.tma_copy(A[k, 0:64, 0:64], s[k % 2, :, :], barrier=full[k % 2])
                    if tx - 128 < filled:
                        T.mbarrier_arrive(full[k % 2])
            with T.ws(0):
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(full[k % 2 if waited is None else waited], k // 2 % 2)
                    for i, j in T.Parallel(64, 64):
                        B[k, j, i] = s[k % 2, i, j]
                    if tx < released:
                        T.mbarrier_arrive(empty[k % 2])

    return main


def one_store(waits: bool):
    """Write again what a store reads."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), B: T.Tensor((2, *SHAPE), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared(SHAPE, "float16")
            for k in T.serial(2):
                for i, j in T.Parallel(64, 64):
                    s[i, j] = A[j, i] + T.float16(k)
                T.fence_proxy_async()
                T.sync_threads()
                T.tma_copy(s, B[k, 0:64, 0:64])
                if waits:
                    T.tma_store_wait(0)
                    T.sync_threads()

    return main


def two_groups(left: int):
    @T.prim_func
    def main(A: T.Tensor((2, 512), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((512,), "float32")
            b = T.alloc_shared((512,), "float32")
            T.async_copy(A[0, 0:512], a)
            T.async_copy(A[1, 0:512], b)
            T.ptx_wait_group(left)
            T.sync_threads()
            for i in T.Parallel(512):
                B[i] = a[511 - i] * 2.0 + b[511 - i]

    return main


def one_product(waits: bool):
    """An operand of a product is written again."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), B: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared(SHAPE, "float16")
            b = T.alloc_shared(SHAPE, "float16")
            c = T.alloc_fragment(SHAPE, "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.wgmma_gemm(a, b, c)
            if waits:
                T.wait_wgmma(0)
            T.sync_threads()
            for i, j in T.Parallel(64, 64):
                a[i, j] = T.float16(1)
            T.sync_threads()
            T.wait_wgmma(0)
            T.copy(c, C)

    return main


def drawn(*shapes, dtype=torch.float16):
    def inputs(args, generator, device):
        return tuple(torch.randint(-9, 10, shape, generator=generator, device=device).to(dtype) for shape in shapes)

    return inputs


TWO, THREE = drawn(SHAPE, SHAPE), drawn(SHAPE, SHAPE, SHAPE)
STAGES = drawn((4, *SHAPE), (4, *SHAPE))
COPIED = {"inputs": TWO, "reference": lambda args, A, C: {"C": A.T}}
BOTH = {"inputs": drawn((2, *SHAPE), SHAPE, SHAPE), "reference": lambda args, A, B, C: {"B": A[0].T, "C": A[1].T}}
SUM = {"inputs": THREE, "reference": lambda args, A, W, C: {"C": A.T + W}}
TURNED = {"inputs": STAGES, "reference": lambda args, A, B: {"B": A.mT}}
STORED = {"inputs": drawn(SHAPE, (2, *SHAPE)), "reference": lambda args, A, B: {"B": torch.stack([A.T, A.T + 1])}}
GROUPS = {
    "inputs": drawn((2, 512), (512,), dtype=torch.float32),
    "reference": lambda args, A, B: {"B": A[0].flip(0) * 2 + A[1].flip(0)},
}
PRODUCT = {
    "inputs": lambda args, generator, device: (*TWO(args, generator, device), torch.zeros(SHAPE, device=device)),
    "reference": lambda args, A, B, C: {"C": A.float() @ B.float()},
}
loaded = Case(one_load, args={"waits": True}, **COPIED)
loaded_too_late = Case(one_load, args={"waits": False}, **COPIED)
own_barrier = Case(two_barriers, args={"first": 0}, **BOTH)
other_barrier = Case(two_barriers, args={"first": 1}, **BOTH)
announced = Case(one_barrier, args={"arrives_first": False}, **SUM)
announced_too_late = Case(one_barrier, args={"arrives_first": True}, **SUM)
announced_unsynced = Case(tilelang.jit(pass_configs=UNSYNCED)(one_barrier), args={"arrives_first": True}, **SUM)
own_stage = Case(in_stages, args={"waited": None}, **TURNED)
branches = tilelang.jit(pass_configs=UNSYNCED)(in_branches)
released_by_all = Case(branches, args={"waited": None, "released": 128}, **TURNED)
filled_by_a_thread = Case(
    branches,
    args={"waited": None, "released": 128, "filled": 1, "steps": 2},
    inputs=drawn((2, *SHAPE), (2, *SHAPE)),
    reference=TURNED["reference"],
)
released_by_a_warp = Case(branches, args={"waited": None, "released": 32}, **TURNED)
released_by_a_thread = Case(branches, args={"waited": None, "released": 1}, **TURNED)
other_stage = Case(branches, args={"waited": 0, "released": 128}, **TURNED)
stored = Case(one_store, args={"waits": True}, **STORED)
stored_too_late = Case(one_store, args={"waits": False}, **STORED)
both_groups = Case(two_groups, args={"left": 0}, **GROUPS)
one_group = Case(two_groups, args={"left": 1}, **GROUPS)
multiplied = Case(one_product, args={"waits": True}, **PRODUCT)
multiplied_too_late = Case(one_product, args={"waits": False}, **PRODUCT)
