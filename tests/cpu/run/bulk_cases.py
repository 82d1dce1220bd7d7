"""Kernels whose bulk copies read or write tensors that the kernel accesses elsewhere."""

from __future__ import annotations

import tilelang.language as T
import torch

from tlcheck.case import Case

SHAPE = (64, 64)


def in_a_chain():
    """Each step reads what the step before has stored."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), W: T.Tensor((3, *SHAPE), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared(SHAPE, "float16")
            t = T.alloc_shared(SHAPE, "float16")
            T.copy(A, s)
            for k in T.serial(3):
                if k > 0:
                    T.copy(W[k - 1, 0:64, 0:64], s)
                for i, j in T.Parallel(64, 64):
                    t[i, j] = s[j, i] + T.float16(1)
                T.copy(t, W[k, 0:64, 0:64])

    return main


def stored_and_read(full: bool):
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), B: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared(SHAPE, "float16")
            for i, j in T.Parallel(64, 64):
                s[i, j] = A[j, i]
            T.fence_proxy_async()
            T.sync_threads()
            T.tma_copy(s, B)
            T.tma_store_wait(0, read=not full)
            T.sync_threads()
            for i, j in T.Parallel(64, 64):
                C[i, j] = B[j, i]

    return main


def written_and_loaded(synced: bool):
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), B: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared(SHAPE, "float16")
            full = T.alloc_barrier(128)
            for i, j in T.Parallel(64, 64):
                B[i, j] = A[i, j] * T.float16(2)
            if synced:
                T.sync_threads()
            T.tma_copy(B, s, barrier=full)
            T.mbarrier_arrive(full)
            T.mbarrier_wait_parity(full, 0)
            for i, j in T.Parallel(64, 64):
                C[i, j] = s[j, i]

    return main


def side_by_side(step: int):
    """Tiles of blocks, which overlap where the step is less than 64."""

    @T.prim_func
    def main(A: T.Tensor((4, *SHAPE), "float16"), B: T.Tensor((64 + 3 * step, 64), "float16")):
        with T.Kernel(4, threads=128) as b:
            s = T.alloc_shared(SHAPE, "float16")
            for i, j in T.Parallel(64, 64):
                s[i, j] = A[b, j, i]
            T.copy(s, B[b * step : b * step + 64, 0:64])

    return main


def one_after_the_other():
    """Two kernels: the second reads what the first has stored."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), B: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared(SHAPE, "float16")
            for i, j in T.Parallel(64, 64):
                s[i, j] = A[j, i]
            T.copy(s, B)
        with T.Kernel(1, threads=128):
            for i, j in T.Parallel(64, 64):
                C[i, j] = B[j, i]

    return main


def round_about():
    """Each block stores its tile, then that of its neighbour, another one."""

    @T.prim_func
    def main(A: T.Tensor((4, *SHAPE), "float16"), B: T.Tensor((4, *SHAPE), "float16")):
        with T.Kernel(4, threads=128) as b:
            s = T.alloc_shared(SHAPE, "float16")
            for k in T.serial(2):
                for i, j in T.Parallel(64, 64):
                    s[i, j] = A[b, j, i] + T.float16(k)
                T.copy(s, B[(b + k) % 4, 0:64, 0:64])

    return main


def boxed(column, add):
    """A box whose rows begin at a column of B."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), B: T.Tensor((64, 80), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared(SHAPE, "float16")
            T.copy(A, s)
            if add:
                T.atomic_add(B[0:64, column : column + 64], s, use_tma=True)
            else:
                T.copy(s, B[0:64, column : column + 64])

    return main


def box_by_box(column):
    """Boxes whose rows begin at columns of A."""

    @T.prim_func
    def main(A: T.Tensor((64, 272), "float16"), B: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared(SHAPE, "float16")
            f = T.alloc_fragment(SHAPE, "float16")
            T.clear(f)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0:64, k * 64 + column : k * 64 + column + 64], s)
                for i, j in T.Parallel(64, 64):
                    f[i, j] += s[i, j]
            T.copy(f, B)

    return main


def drawn(*shapes):
    def inputs(args, generator, device):
        return tuple(torch.randint(-9, 10, shape, generator=generator, device=device).half() for shape in shapes)

    return inputs


def read_back_reference(args, A, B, C):
    return {"B": A.T, "C": A}


def loaded_reference(args, A, B, C):
    return {"B": 2 * A, "C": 2 * A.T}


THREE = {"inputs": drawn(SHAPE, SHAPE, SHAPE)}
chain = Case(
    in_a_chain,
    inputs=drawn(SHAPE, (3, *SHAPE)),
    reference=lambda args, A, W: {"W": torch.stack([A.T + 1, A + 2, A.T + 3])},
)
read_back = Case(stored_and_read, args={"full": False}, reference=read_back_reference, **THREE)
read_back_after_all = Case(stored_and_read, args={"full": True}, reference=read_back_reference, **THREE)
loaded_too_early = Case(written_and_loaded, args={"synced": False}, reference=loaded_reference, **THREE)
loaded = Case(written_and_loaded, args={"synced": True}, reference=loaded_reference, **THREE)
overlapping = Case(side_by_side, args={"step": 32})
apart = Case(
    side_by_side,
    args={"step": 64},
    inputs=drawn((4, *SHAPE), (256, 64)),
    reference=lambda args, A, B: {"B": A.mT.flatten(0, 1)},
)
kernels = Case(one_after_the_other, reference=read_back_reference, **THREE)
round_trip = Case(round_about)


def boxed_reference(args, A, B):
    b, column = B.double().clone(), args["column"]
    b[:, column : column + 64] = A + (b[:, column : column + 64] if args["add"] else 0)
    return {"B": b}


BOXED = {"inputs": drawn(SHAPE, (64, 80)), "reference": boxed_reference, "updates": ("B",)}
LOADED = {
    "inputs": drawn((64, 272), SHAPE),
    "reference": lambda args, A, B: {"B": sum(A.double()[:, args["column"] :][:, :256].split(64, 1))},
}
box_stored = Case(boxed, args={"column": 8, "add": False}, **BOXED)
box_stored_between = Case(boxed, args={"column": 4, "add": False}, **BOXED)
box_added = Case(boxed, args={"column": 8, "add": True}, **BOXED)
box_added_between = Case(boxed, args={"column": 2, "add": True}, **BOXED)
box_loaded = Case(box_by_box, args={"column": 16}, **LOADED)
box_loaded_between = Case(box_by_box, args={"column": 1}, **LOADED)
