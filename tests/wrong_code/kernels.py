"""Kernels that some TileLang releases lower to wrong code, each as small as its form allows.

What goes wrong, and in which releases: `expected.toml` beside this file, docs/findings.md.
"""

import numpy as np
import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case


def integers(*shapes):
    """The ``inputs`` of a case: for each (dtype, *shape) integers of [0, 4]."""

    def inputs(args, generator, device):
        random = np.random.default_rng(generator.initial_seed())
        made = [torch.from_numpy(random.integers(0, 5, shape).astype(np.float32)) for _, *shape in shapes]
        return tuple(values.to(getattr(torch, shape[0])).to(device) for values, shape in zip(made, shapes, strict=True))

    return inputs


def stepped(args, a, c):
    """What `truncated` gives: one more everywhere, and five more in the first hundred."""
    return {"C": a.double() + 1 + 5 * (torch.arange(256, device=a.device) < 100)}


@tilelang.jit
def gemm(m=256, n=256, k=256, block=128, step=32, stages=3):
    """A pipelined product: 0.1.9 waits for one group of copies too few."""

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(n // block, m // block, threads=128) as (bx, by):
            a = T.alloc_shared((block, step), "float16")
            b = T.alloc_shared((step, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for i in T.Pipelined(k // step, num_stages=stages):
                T.copy(A[by * block, i * step], a)
                T.copy(B[i * step, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return main


@tilelang.jit
def truncated():
    """A loop over a part of a fragment makes other loops run in that part's threads only (tilelang issue 2957)."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), C: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((256,), "float32")
            for i in T.Parallel(256):
                f[i] = A[i]
            for i in T.Parallel(100):
                f[i] = f[i] + 5
            for i in T.Parallel(256):
                C[i] = f[i] + 1

    return main


@tilelang.jit
def guard():
    """A store of 4 elements by 128 threads loses its guard (tilelang pull request 1744)."""

    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((4, 64), "float32")
            f = T.alloc_fragment((8,), "float32")
            T.copy(A, f)
            for k in T.serial(64):
                for i in T.Parallel(4):
                    s[i, k] = f[i]
            T.copy(s, B)

    return main


@tilelang.jit
def accumulation():
    """Eight additions to one element become one vector, whose last lane wins (tilelang issue 2935)."""

    @T.prim_func
    def main(A: T.Tensor((64, 8), "float16"), O: T.Tensor((64,), "float16")):
        with T.Kernel(1, threads=64) as _:
            tx = T.get_thread_binding()
            O[tx] = T.float16(0)
            for k in T.vectorized(8):
                O[tx] = O[tx] + A[tx, k]

    return main


@tilelang.jit
def exchange():
    """Threads add to elements that others have set, and read them: a barrier belongs between (tilelang issue 1257)."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            s[tx ^ 1] = 0
            T.atomic_add(s[tx], 1)
            A[tx] = s[tx ^ 1]

    return main


@tilelang.jit
def histogram():
    """Counts in shared memory are added to global memory: a barrier belongs between counting and adding."""

    @T.prim_func
    def main(A: T.Tensor((512,), "int32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "float32")
            T.clear(s)
            for i in T.Parallel(512):
                T.atomic_add(s[A[i]], 1.0)
            T.atomic_add(B, s)

    return main


@tilelang.jit
def twice():
    """A shared buffer is loaded and read twice before a warp-specialized pipeline."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "float16"),
        B: T.Tensor((256, 64), "float16"),
        R: T.Tensor((2, 64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((64, 64), "float16")
            first = T.alloc_fragment((64, 64), "float16")
            second = T.alloc_fragment((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A[0, 0], s)
            T.copy(s, first)
            T.copy(A[64, 0], s)
            T.copy(s, second)
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(B[k * 64, 0], b)
                T.gemm(s, b, c, transpose_B=True)
            T.copy(first, R[0, 0, 0])
            T.copy(second, R[1, 0, 0])
            T.copy(c, C)

    return main


@tilelang.jit
def stepless():
    """A tile is loaded before a pipeline and read after it. The wait for it is in the pipeline's first step: the first
    block's pipeline has none."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        B: T.Tensor((256, 64), "float16"),
        R: T.Tensor((4, 64, 64), "float16"),
        C: T.Tensor((4, 64, 64), "float32"),
    ):
        with T.Kernel(4, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            r = T.alloc_fragment((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.clear(c)
            for k in T.Pipelined(bx, num_stages=2):
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c)
            T.copy(a, r)
            T.copy(r, R[bx, 0, 0])
            T.copy(c, C[bx, 0, 0])

    return main


@tilelang.jit
def conditional():
    """What is set before a pipeline that only some blocks run: it is set in these blocks alone."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 128), "float16"),
        B: T.Tensor((128, 64), "float16"),
        C: T.Tensor((2, 64, 64), "float32"),
    ):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            if bx > 0:
                for k in T.Pipelined(2, num_stages=2):
                    T.copy(A[0, k * 64], a)
                    T.copy(B[k * 64, 0], b)
                    T.gemm(a, b, c)
            T.copy(c, C[bx, 0, 0])

    return main


@tilelang.jit
def doubled():
    """A tile is loaded, doubled in place, and multiplied in a pipeline: it is doubled before it is there."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        B: T.Tensor((128, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(64, 64):
                a[i, j] = a[i, j] * 2
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return main


@tilelang.jit
def summed():
    """Two steps of a pipeline each, all added to one accumulator: it is cleared in each step anew."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 128), "float16"),
        B: T.Tensor((128, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for _ in T.serial(2):
                for k in T.Pipelined(2, num_stages=2):
                    T.copy(A[0, k * 64], a)
                    T.copy(B[k * 64, 0], b)
                    T.gemm(a, b, c)
            T.copy(c, C)

    return main


@tilelang.jit
def rotated():
    """Threads read what others wrote, then write again, in a while loop: a barrier belongs at its end, too."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "float32")
            c = T.alloc_fragment((128,), "float32")
            n = T.alloc_var("int32")
            T.clear(c)
            n = 0
            while n < 4:
                for i in T.Parallel(128):
                    s[i] = A[n, i]
                for i in T.Parallel(128):
                    c[i] = c[i] + s[127 - i]
                n = n + 1
            T.copy(c, B)

    return main


@tilelang.jit
def unaligned():
    """Rows that bulk copies cannot load: cp.async loads them and wgmma reads them, after the loop without a fence."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 102), "float16"),
        B: T.Tensor((96, 66), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(3, num_stages=3):
                T.copy(A[0:64, k * 32 : k * 32 + 32], a)
                T.copy(B[k * 32 : k * 32 + 32, 0:64], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return main


@tilelang.jit
def shared_table():
    """All threads fill a table, a pipeline's consumers read it: only the producers have a barrier between."""

    @T.prim_func
    def main(
        A: T.Tensor((192, 64), "float16"),
        B: T.Tensor((192, 64), "float16"),
        V: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            p = T.alloc_shared((64, 64), "float16")
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            h = T.alloc_fragment((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for i, j in T.Parallel(64, 64):
                p[i, j] = V[j, i]
            T.copy(p, h)
            for k in T.Pipelined(3, num_stages=2):
                for i, j in T.Parallel(64, 64):
                    a[i, j] = A[k * 64 + i, j] + B[k * 64 + j, i]
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(64, 64):
                c[i, j] = c[i, j] + h[i, j]
            T.copy(c, C)

    return main


@tilelang.jit
def every_other():
    """Every other step of a pipeline loads a tile, and the step after it uses the same one."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32"), C: T.Tensor((4, 128), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128,), "float32")
            b = T.alloc_shared((128,), "float32")
            for k in T.Pipelined(4, num_stages=2):
                if k % 2 == 0:
                    T.copy(A[k, :], a)
                T.copy(B[k, :], b)
                for i in T.Parallel(128):
                    C[k, i] = a[i] + b[i]

    return main


@tilelang.jit
def stepping():
    """Each step of a pipeline says which row the next one loads."""

    @T.prim_func
    def main(A: T.Tensor((8, 128), "float32"), C: T.Tensor((4, 128), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128,), "float32")
            row = T.alloc_var("int32")
            row = 0
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[row, :], a)
                for i in T.Parallel(128):
                    C[k, i] = a[i]
                row = row + 2

    return main


@tilelang.jit
def used_then_loaded():
    """Each step of a pipeline uses a tile, and then loads the next one into its place."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "float32")
            T.copy(A[0, :], s)
            for k in T.Pipelined(3, num_stages=2):
                for i in T.Parallel(128):
                    B[k, i] = s[127 - i]
                T.copy(A[k + 1, :], s)
            T.copy(s, B[3, :])

    return main


@tilelang.jit
def alternating():
    """Even steps of a loop read what threads wrote in odd ones: a barrier belongs between the two branches."""

    @T.prim_func
    def main(A: T.Tensor((8, 128), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            c = T.alloc_local((1,), "float32")
            c[0] = 0
            s[tx] = A[0, tx]
            for k in T.serial(8):
                if k % 2 == 0:
                    c[0] = c[0] + s[127 - tx]
                else:
                    s[tx] = A[k, tx]
            B[tx] = c[0]

    return main


@tilelang.jit
def partly_filled():
    """A part of a tile is set after the tile was loaded, by other threads."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((256,), "float32")
            T.copy(A, s)
            T.fill(s[100:150], 7)
            for i in T.Parallel(256):
                B[i] = s[255 - i]

    return main


@tilelang.jit
def stored_operand():
    """The left operand of a product, in registers, is also stored through shared memory."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
        D: T.Tensor((64, 64), "float16"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            d = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)
            T.copy(a, d)
            T.copy(d, D)

    return main


@tilelang.jit
def difference():
    """8 bits wrap where they are subtracted, and are widened then. What is printed subtracts in 32 bits."""

    @T.prim_func
    def main(A: T.Tensor((128,), "uint8"), B: T.Tensor((128,), "uint8"), C: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            C[tx] = T.cast(A[tx] - B[tx], "int32")

    return main


@tilelang.jit
def around_a_loop(blocks=2, threads=128):
    """What stands before a loop is read after it by other threads; a step has a barrier, even blocks have no step."""

    @T.prim_func
    def main(
        X: T.Tensor((threads,), "float32"),
        Y: T.Tensor((blocks, threads), "float32"),
        Z: T.Tensor((blocks, 1, threads), "float32"),
    ):
        with T.Kernel(blocks, threads=threads) as bx:
            a = T.alloc_shared((threads,), "float32")
            b = T.alloc_shared((threads,), "float32")
            for i in T.Parallel(threads):
                a[i] = X[i]
            for k in T.serial(bx % 2):
                for i in T.Parallel(threads):
                    b[i] = X[i] + 1.0
                for i in T.Parallel(threads):
                    Z[bx, k, i] = b[threads - 1 - i]
            for i in T.Parallel(threads):
                Y[bx, i] = a[threads - 1 - i]

    return main


@tilelang.jit
def narrow_stages():
    """Two stages of 64 bytes, loaded from a place that a variable has."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float16"), B: T.Tensor((64,), "float16")):
        with T.Kernel(1, threads=256) as _:
            first = T.alloc_shared((1,), "int32")
            s = T.alloc_shared((32,), "float16")
            for k in T.Pipelined(2, num_stages=2):
                first[0] = k * 32
                offset = first[0]
                T.copy(A[offset], s)
                for i in T.Parallel(32):
                    B[k * 32 + i] = s[i]

    return main


@tilelang.jit(pass_configs={"tl.reducer_force_baseline": True})
def reduced_by_fours(rows=128, columns=64):
    """The results of a reducer, four at a time."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=256) as _:
            s = T.alloc_shared((rows, columns), "float32")
            a = T.alloc_fragment((rows, columns), "float32")
            r = T.alloc_reducer((rows,), "float32", op="sum", replication="all")
            T.fill(r, 0)
            T.copy(A, s)
            T.copy(s, a)
            for i, j in T.Parallel(rows, columns):
                r[i] += a[i, j]
            T.finalize_reducer(r, batch=4)
            T.copy(r, B)

    return main


@tilelang.jit
def matrix_by_vector(rows=64, columns=64, tile=2):
    """Tiles of 2 x 2, of which each of 32 threads holds one element."""

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), "float16"), X: T.Tensor((columns,), "float16"), Y: T.Tensor((rows,), "float32")
    ):
        with T.Kernel(rows // tile, threads=32) as bx:
            r = T.alloc_reducer(tile, "float32", replication="all")
            T.clear(r)
            for k in T.serial(columns // tile):
                s = T.alloc_shared((tile, tile), "float16")
                T.copy(A[bx * tile, k * tile], s)
                a = T.alloc_fragment((tile, tile), "float16")
                T.copy(s, a)
                x = T.alloc_fragment(tile, "float16")
                T.copy(X[k * tile], x)
                for i, j in T.Parallel(tile, tile):
                    r[i] += a[i, j] * x[j]
            T.finalize_reducer(r)
            T.copy(r, Y[bx * tile])

    return main


@tilelang.jit
def counted_before_a_pipeline():
    """Threads count before a pipeline whose loads are another warp group's: these threads count, too."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), "float32"), N: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=128) as _:
            n = T.alloc_shared((4,), "int32")
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(n)
            T.atomic_add(n[T.get_thread_binding() % 4], 1)
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[k * 64, 0], a)
                T.gemm(a, a, c)
            T.copy(c, C)
            T.copy(n, N)

    return main


@tilelang.jit
def written_before_a_pipeline():
    """Each thread writes an element before such a pipeline: the other warp group writes what lies behind."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "float16"),
        X: T.Tensor((256,), "float32"),
        C: T.Tensor((64, 64), "float32"),
        Y: T.Tensor((2, 128), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            s = T.alloc_shared((2, 128), "float32")
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            s[1, tx] = X[tx + 128]
            s[0, tx] = X[tx] + 1
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[k * 64, 0], a)
                T.gemm(a, a, c)
            T.copy(c, C)
            T.copy(s, Y)

    return main


@tilelang.jit
def scanned_after_a_pipeline():
    """A running sum after such a pipeline: the threads that are left are not those that it is written for."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            s = T.alloc_shared((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[k * 64, 0], a)
                T.gemm(a, a, c)
            T.copy(c, s)
            T.cumsum(s, dim=1)
            T.copy(s, C)

    return main


@tilelang.jit
def kept_over_a_pipeline():
    """Registers that are set before such a pipeline, by all threads, and stored after it, by half of them."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "float16"),
        X: T.Tensor((256,), "float32"),
        C: T.Tensor((64, 64), "float32"),
        Y: T.Tensor((2, 256), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            s = T.alloc_shared((256,), "float32")
            x = T.alloc_fragment((256,), "float32")
            T.fill(x, 1)
            for i in T.Parallel(256):
                s[i] = x[i]
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[k * 64, 0], a)
                T.gemm(a, a, c)
            T.copy(c, C)
            T.copy(s, Y[0, :])
            for i in T.Parallel(256):
                Y[1, i] = x[i]

    return main


@tilelang.jit
def begun_by_thread():
    """A loop that begins at the thread's number and takes at most one step: threads that take none take one, too."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            s = T.alloc_shared((256,), "float32")
            T.copy(A, s)
            for i in T.serial(tx, 64, 128):
                s[i] = 0
            T.copy(s, B)

    return main


@tilelang.jit
def vectors_of_integers():
    """Four integers are added at a time, by the instruction for float32."""

    @T.prim_func
    def main(A: T.Tensor((512,), "int32"), B: T.Tensor((512,), "int32")):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            T.atomic_addx4(B[tx * 4], A[tx * 4])

    return main


@tilelang.jit
def converted_sums():
    """Eight numbers are converted and added to one element in a vectorized loop: nothing is stored."""

    @T.prim_func
    def main(A: T.Tensor((64, 8), "float32"), O: T.Tensor((64,), "float16")):
        with T.Kernel(1, threads=64) as _:
            tx = T.get_thread_binding()
            O[tx] = 0
            for k in T.vectorized(8):
                O[tx] = O[tx] + A[tx, k]

    return main


@tilelang.jit
def two_sources():
    """The first half takes its numbers from A, the second from B: nothing is added."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            for j in T.Parallel(128):
                T.atomic_add(C[j], T.if_then_else(j < 64, A[j], B[127 - j]))

    return main


@tilelang.jit
def wide_rows_beside_a_pipeline():
    """Rows of 96 elements, which the threads after the producer's copy: the first of them count from -4."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "float16"),
        X: T.Tensor((16, 96), "float32"),
        C: T.Tensor((64, 64), "float32"),
        Y: T.Tensor((16, 96), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            x = T.alloc_fragment((16, 96), "float32")
            T.copy(X, x)
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[k * 64, 0], a)
                T.gemm(a, a, c)
            T.copy(c, C)
            T.copy(x, Y)

    return main


@tilelang.jit
def cleared_if():
    """A tile is cleared if its first element is large: a warp that asks late finds it cleared."""

    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "int32")
            T.copy(A, s)
            if s[0] > 1:
                for i in T.Parallel(128):
                    s[i] = i
            T.copy(s, B)

    return main


@tilelang.jit
def scan_after_a_product():
    """Sums so far go to the memory of the product's operand: a warp that is done overwrites what others still read."""

    @T.prim_func
    def main(
        X: T.Tensor((64, 64), "float16"),
        S: T.Tensor((8, 64), "float32"),
        C: T.Tensor((64, 64), "float32"),
        D: T.Tensor((8, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            s, d = T.alloc_shared((8, 64), "float32"), T.alloc_shared((8, 64), "float32")
            x = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(S, s)
            T.copy(X, x)
            T.clear(c)
            T.gemm(x, x, c)
            T.cumsum(s, d, dim=1)
            T.copy(c, C)
            T.copy(d, D)

    return main


@tilelang.jit
def rows_by_warps():
    """Six of eight warps hold the three rows: of the others, lane 31 takes no part in the sums' shuffles."""

    @T.prim_func
    def main(A: T.Tensor((3, 32), "float32"), B: T.Tensor((3, 32), "float32")):
        with T.Kernel(1, threads=256) as _:
            f, g = T.alloc_fragment((3, 32), "float32"), T.alloc_fragment((3,), "float32")
            s = T.alloc_shared((3,), "float32")
            T.copy(A, f)
            T.reduce_sum(f, g, dim=1)
            T.copy(g, s)
            for i, j in T.Parallel(3, 32):
                B[i, j] = f[i, j] + s[i]

    return main


@tilelang.jit
def neighbours_in_a_ring():
    """Each element comes from the next column, the last column from the first: it comes from the next row."""

    @T.prim_func
    def main(A: T.Tensor((16, 4), "float32"), B: T.Tensor((64, 4), "float32")):
        with T.Kernel(1, threads=128) as _:
            for i, j in T.Parallel(64, 4):
                B[i, j] = A[i % 16, (j + 1) % 4]

    return main


@tilelang.jit
def reduced_after_a_pipeline():
    """A reducer is set after a pipeline whose producer has threads of its own: nothing sets it."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), C: T.Tensor((128, 128), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            a, c = T.alloc_shared((128, 64), "float16"), T.alloc_fragment((128, 128), "float32")
            r, f = T.alloc_reducer((128,), "float32", op="min"), T.alloc_fragment((128,), "float32")
            T.clear(c)
            for _k in T.Pipelined(1, num_stages=2):
                T.copy(A, a)
                T.gemm(a, a, c, transpose_B=True)
            T.copy(c, C)
            T.reducer_init(r)
            for i, _j in T.Parallel(128, 16):
                T.reducer_update(r[i], T.cast(i, "float32"))
            T.finalize_reducer(r, f)
            T.copy(f, O)

    return main


@tilelang.jit
def squared():
    """A product of a tile in registers by itself: both operands have the layout of the second one."""

    @T.prim_func
    def main(X: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            x = T.alloc_fragment((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(X, x)
            T.clear(c)
            T.gemm(x, x, c)
            T.copy(c, C)

    return main


@tilelang.jit
def read_again():
    """A tensor is read after a bulk copy into it: nobody waits until the copy has written."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32"), C: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((512,), "float32")
            f = T.alloc_fragment((512,), "float32")
            T.copy(A, s)
            T.copy(s, B)
            T.copy(B, f)
            T.copy(f, C)

    return main


@tilelang.jit
def reversed_and_repeated():
    """Half of the threads write and exchange; then all read: only half of them wait."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32"), C: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((64,), "int32")
            t = T.alloc_shared((64,), "int32")
            for i in T.Parallel(64):
                s[i] = A[i]
            for i in T.Parallel(64):
                t[i] = s[63 - i]
            for i in T.Parallel(128):
                C[i] = s[i % 64]
            T.copy(t, B)

    return main


@tilelang.jit
def reversed_in_a_warp():
    """Threads of one warp exchange values: the barrier stands before both statements."""

    @T.prim_func
    def main(A: T.Tensor((28,), "int32"), B: T.Tensor((28,), "int32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((28,), "int32")
            t = T.alloc_shared((28,), "int32")
            for i in T.Parallel(28):
                s[i] = A[i]
            for i in T.Parallel(28):
                t[i] = s[27 - i]
            T.copy(t, B)

    return main


@tilelang.jit
def stored_then_loaded():
    """A tile is stored before a pipeline that uses it and loads it again: a barrier stands in one thread's branch."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "float32")
            T.copy(A[0, :], s)
            T.copy(s, B[3, :])
            for k in T.Pipelined(3, num_stages=2):
                for i in T.Parallel(128):
                    B[k, i] = s[127 - i]
                T.copy(A[k + 1, :], s)

    return main


@tilelang.jit
def masked_tail():
    """A pipeline loads a tile and sets its last elements to 0: the load comes last."""

    @T.prim_func
    def main(A: T.Tensor((2, 128), "float32"), B: T.Tensor((2, 128), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "float32")
            for k in T.Pipelined(2, num_stages=1):
                T.copy(A[k, :], s)
                for i in T.Parallel(128):
                    if i >= 100:
                        s[i] = 0
                T.copy(s, B[k, :])

    return main


@tilelang.jit
def scaled_rows():
    """A pipeline loads a factor for each row into registers: those who load it are not those who use it."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 128), "float16"),
        B: T.Tensor((128, 64), "float16"),
        S: T.Tensor((4, 128), "float32"),
        C: T.Tensor((128, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            f = T.alloc_fragment((128,), "float32")
            c = T.alloc_fragment((128, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.copy(S[k, :], f)
                T.gemm(a, b, c)
                for i, j in T.Parallel(128, 64):
                    c[i, j] = c[i, j] * f[i]
            T.copy(c, C)

    return main


@tilelang.jit
def added_in_a_pipeline():
    """A pipeline adds a tile in registers and one in shared memory: the sum is not stored."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32"), C: T.Tensor((4, 128), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((128,), "float32")
            s = T.alloc_shared((128,), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, :], f)
                T.copy(B[k, :], s)
                for i in T.Parallel(128):
                    C[k, i] = f[i] + s[i]

    return main


@tilelang.jit
def converted_in_a_branch():
    """Some blocks convert 200 elements: the others store registers that nothing has set."""

    @T.prim_func
    def main(A: T.Tensor((200,), "float32"), B: T.Tensor((2, 200), "float16")):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((200,), "float16")
            T.fill(s, 1)
            for i in T.Parallel(200):
                if bx < 1:
                    s[i] = T.cast(A[i], "float16")
            T.copy(s, B[bx, :])

    return main


@tilelang.jit
def reshaped_before_a_pipeline():
    """A tile in registers is stored through a view, before a pipeline: consumers alone load it, later."""

    @T.prim_func
    def main(
        A: T.Tensor((128,), "float32"),
        X: T.Tensor((4, 128), "float32"),
        B: T.Tensor((4, 128), "float32"),
        C: T.Tensor((1, 128), "float32"),
        D: T.Tensor((128,), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((128,), "float32")
            s = T.alloc_shared((128,), "float32")
            T.copy(A, a)
            T.copy(T.reshape(a, (1, 128)), C)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(X[k, :], s)
                T.copy(s, B[k, :])
            T.copy(a, D)

    return main


@tilelang.jit
def stored_before_and_after_a_pipeline():
    """96 numbers in registers, loaded by threads 0 to 191, and stored by threads 128 to 223."""

    @T.prim_func
    def main(
        A: T.Tensor((96,), "float32"),
        X: T.Tensor((4, 128), "float32"),
        B: T.Tensor((4, 128), "float32"),
        C: T.Tensor((96,), "float32"),
        D: T.Tensor((96,), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((96,), "float32")
            s = T.alloc_shared((128,), "float32")
            T.copy(A, a)
            T.copy(a, C)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(X[k, :], s)
                T.copy(s, B[k, :])
            T.copy(a, D)

    return main


@tilelang.jit
def signs():
    """The sign of bytes that are cast to int8: TileLang says that none is negative."""

    @T.prim_func
    def main(A: T.Tensor((128,), "uint8"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(128):
                B[i] = T.if_then_else(T.cast(A[i], "int8") < 0, -1, 1)

    return main


@tilelang.jit
def band():
    """Rows 12 to 35 of a tile in registers are set: TileLang sets others."""

    @T.prim_func
    def main(B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((64, 64), "float32")
            T.clear(f)
            for i, j in T.Parallel(24, 64):
                f[i + 12, j] = 1
            T.copy(f, B)

    return main


@tilelang.jit
def reduced_in_place():
    """A reduction into the tile that it reads, through a view: TileLang clears the tile first."""

    @T.prim_func
    def main(A: T.Tensor((128, 4), "float32"), B: T.Tensor((128, 4), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((128, 4), "float32")
            T.copy(A, f)
            T.reduce_absmax(T.reshape(f, (128, 4, 1)), f, dim=2)
            T.copy(f, B)

    return main


@tilelang.jit
def bounded_then_counted():
    """Each place of a shared buffer is bounded, then added to: TileLang has no barrier between the two atomics."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32"), D: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((4,), "int32")
            T.copy(D, s)
            for i in T.Parallel(64):
                T.atomic_min(s[i % 4], A[i])
            for i in T.Parallel(64):
                T.atomic_add(s[i // 16], B[i])
            T.copy(s, D)

    return main


@tilelang.jit
def tall_operand():
    """Two warpgroups multiply 256 rows that they hold in registers, in 16 rows of each warp in turn."""

    @T.prim_func
    def main(A: T.Tensor((256, 64), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((256, 128), "float32")):
        with T.Kernel(1, threads=256) as _:
            a = T.alloc_fragment((256, 64), "float16")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((256, 128), "float32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, policy=T.GemmWarpPolicy.FullRow)
            T.copy(c, C)

    return main


@tilelang.jit
def read_after_the_bulk_copy():
    """A step reads a tile of a bulk copy, then one that threads copy: its stage is released between the two."""

    @T.prim_func
    def main(
        A: T.Tensor((4, 64), "float32"),
        B: T.Tensor((4, 64), "float32"),
        C: T.Tensor((4, 64), "float32"),
        D: T.Tensor((4, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64,), "float32")
            b = T.alloc_shared((64,), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(B[k, 0], b)
                for i in T.Parallel(64):
                    a[i] = A[k, i]
                for i in T.Parallel(64):
                    D[k, i] = b[i]
                for i in T.Parallel(64):
                    C[k, i] = a[63 - i]

    return main


@tilelang.jit
def halves_of_another_kind():
    """Values of bfloat16 are added to a tensor of float16, in pairs."""

    @T.prim_func
    def main(A: T.Tensor((512,), "bfloat16"), B: T.Tensor((512,), "float16")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((512,), "bfloat16")
            T.copy(A, a)
            for i in T.Parallel(512):
                T.atomic_add(B[i], a[i])

    return main


@tilelang.jit
def floats_to_integers():
    """Floats, some of which are negative, are added to a tensor of int64."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "int64")):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(512):
                T.atomic_add(B[i], A[i])

    return main


@tilelang.jit(pass_configs={"tl.force_let_inline": True})
def tickets_inline():
    """Positive values are counted; only threads with even numbers use the tickets."""

    @T.prim_func
    def main(X: T.Tensor((256,), "int32"), N: T.Tensor((1,), "int32"), O: T.Tensor((512,), "int32")):
        with T.Kernel(1, threads=256) as _:
            tx = T.get_thread_binding()
            if X[tx] > 0:
                place = T.atomic_add(N[0], 1, return_prev=True)
                if place < 256:
                    O[place] = 1

    return main


@tilelang.jit
def read_in_turn():
    """Each thread holds one element of a tile in registers; a serial loop stores the elements."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((128,), "float32")
            T.copy(A, f)
            for i in T.serial(128):
                B[i] = f[i]

    return main


@tilelang.jit
def set_in_turn():
    """A serial loop sets a tile in registers, of which each thread holds one element."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((128,), "float32")
            for i in T.serial(128):
                f[i] = A[i]
            T.copy(f, B)

    return main


@tilelang.jit
def loop_in_a_step():
    """Each step of a pipeline has a loop that loads a tile and uses it, then loads and uses another tile."""

    @T.prim_func
    def main(
        A: T.Tensor((4, 1024), "float32"),
        B: T.Tensor((2, 128), "float32"),
        C: T.Tensor((4, 1024), "float32"),
        D: T.Tensor((2, 128), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((1024,), "float32")
            b = T.alloc_shared((128,), "float32")
            for k in T.Pipelined(2, num_stages=2):
                for j in T.serial(2):
                    T.copy(A[k * 2 + j, 0], a)
                    for i in T.Parallel(1024):
                        C[k * 2 + j, i] = a[1023 - i]
                T.copy(B[k, 0], b)
                for i in T.Parallel(128):
                    D[k, i] = b[127 - i]

    return main


@tilelang.jit
def pipeline_in_a_pipeline():
    """Each step of a pipeline loads a tile, and each step of a pipeline in it uses the tile."""

    @T.prim_func
    def main(A: T.Tensor((4, 1024), "float32"), B: T.Tensor((4, 2, 1024), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((1024,), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0], a)
                for j in T.Pipelined(2, num_stages=2):
                    for i in T.Parallel(1024):
                        B[k, j, i] = a[1023 - i]

    return main


@tilelang.jit
def loaded_before():
    """A tile that each step of a pipeline loads is loaded before the pipeline, too."""

    @T.prim_func
    def main(A: T.Tensor((4, 256), "float32"), B: T.Tensor((4, 256), "float32"), C: T.Tensor((4, 256), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((256,), "float32")
            b = T.alloc_shared((256,), "float32")
            T.copy(A[0, 0], a)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0], a)
                T.copy(B[k, 0], b)
                for i in T.Parallel(256):
                    C[k, i] = a[i] + b[i]

    return main


@tilelang.jit(pass_configs={"tl.enable_aggressive_shared_memory_merge": True})
def reused_in_a_step():
    """Each step of a pipeline loads a tile into shared memory and registers, then uses other shared memory."""

    @T.prim_func
    def main(A: T.Tensor((256, 64), "float32"), B: T.Tensor((4, 4096), "float32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((64, 64), "float32")
            for k in T.Pipelined(4, num_stages=2):
                a = T.alloc_shared((64, 64), "float32")
                T.copy(A[k * 64, 0], a)
                T.copy(a, f)
                t = T.alloc_shared((4096,), "float32")
                for i, j in T.Parallel(64, 64):
                    t[i * 64 + j] = f[i, j]
                for i in T.Parallel(4096):
                    B[k, i] = t[4095 - i]

    return main


@tilelang.jit
def tile_without_readers():
    """A pipeline loads a tile that nothing reads, after a loop of the consumers that uses other shared memory."""

    @T.prim_func
    def main(
        A: T.Tensor((4, 1024), "float32"),
        D: T.Tensor((3, 128), "float32"),
        E: T.Tensor((1024,), "float32"),
        B: T.Tensor((1024,), "float32"),
        C: T.Tensor((3, 128), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((1024,), "float32")
            d = T.alloc_shared((128,), "float32")
            e = T.alloc_shared((1024,), "float32")
            f = T.alloc_fragment((1024,), "float32")
            T.clear(f)
            for k in T.serial(4):
                for i in T.Parallel(1024):
                    a[i] = A[k, i]
                for i in T.Parallel(1024):
                    f[i] += a[1023 - i]
            for k in T.Pipelined(3, num_stages=3):
                T.copy(E, e)
                T.copy(D[k, 0], d)
                for i in T.Parallel(128):
                    C[k, i] = d[i]
            T.copy(f, B)

    return main


@tilelang.jit
def left_by_half():
    """Two of four warps leave a loop in which the others use shared memory; after it all do."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), C: T.Tensor((4, 64), "float32"), D: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            x = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            for k in T.serial(4):
                if x >= 64:
                    T.loop_break()
                s[x] = A[k, x]
                C[k, x] = s[63 - x]
            s[x] = A[0, x]
            D[x] = s[127 - x]

    return main


@tilelang.jit
def added_in_a_warp():
    """28 threads add to a tile and store another one; then all threads read the first."""

    @T.prim_func
    def main(A: T.Tensor((28,), "int32"), B: T.Tensor((128,), "int32"), C: T.Tensor((28,), "int32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((64,), "int32")
            t = T.alloc_shared((28,), "int32")
            T.copy(A, t)
            T.clear(s)
            for i in T.Parallel(28):
                T.atomic_add(s[i], t[27 - i])
                C[i] = t[i]
            for i in T.Parallel(128):
                B[i] = s[i % 64]

    return main


@tilelang.jit
def odd_bytes():
    """All threads read a tile of float32, in whose memory the odd bytes of the next one are set."""

    @T.prim_func
    def main(
        A: T.Tensor((128,), "float32"),
        B: T.Tensor((128,), "float32"),
        C: T.Tensor((128,), "uint8"),
        D: T.Tensor((128,), "uint8"),
    ):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "float32")
            t = T.alloc_shared((256,), "uint8")
            for i in T.Parallel(128):
                s[i] = A[i]
            for i in T.Parallel(128):
                B[i] = s[127 - i]
            for i in T.Parallel(128):
                t[2 * i + 1] = C[i]
            for i in T.Parallel(128):
                D[i] = t[255 - 2 * i]

    return main


@tilelang.jit
def floats_after_halves():
    """A pipeline loads float32 to where a product has its operand of float16, behind a tile that is kept."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 32), "float16"),
        B: T.Tensor((64, 64), "float32"),
        H: T.Tensor((4, 64, 32), "float32"),
        C: T.Tensor((4, 64, 32), "float32"),
        X: T.Tensor((4096,), "float32"),
        Y: T.Tensor((4096,), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            x = T.alloc_shared((4096,), "float32")
            a = T.alloc_shared((64, 32), "float16")
            h = T.alloc_shared((64, 32), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(X, x)
            T.clear(c)
            T.copy(A, a)
            T.gemm(a, a, c, transpose_B=True)
            T.copy(c, B)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(H[k, 0, 0], h)
                for i, j in T.Parallel(64, 32):
                    C[k, i, j] = h[63 - i, j]
            for i in T.Parallel(4096):
                Y[i] = x[4095 - i]

    return main


@tilelang.jit
def padded_with_ones():
    """Numbers that are converted, with ones behind them."""

    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((512,), "float16")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "int32")
            T.copy(A, s)
            for i in T.Parallel(512):
                B[i] = T.if_then_else(i < 128, T.cast(s[i], "float16"), T.cast(1, "float16"))

    return main


@tilelang.jit
def converted_where_positive():
    """Pairs of registers are set where an element that both ask for is positive."""

    @T.prim_func
    def main(A: T.Tensor((16, 64), "int32"), B: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, threads=256) as _:
            s = T.alloc_shared((16, 64), "int32")
            f = T.alloc_fragment((16, 64), "float32")
            T.copy(A, s)
            T.clear(f)
            for i, j in T.Parallel(16, 64):
                if s[i, j // 2] > 0:
                    f[i, j] = T.cast(s[i, j], "float32")
            T.copy(f, B)

    return main


@tilelang.jit
def cleared_then_set():
    """Each step of a pipeline clears a tile, then loads a part of it."""

    @T.prim_func
    def main(A: T.Tensor((2, 128), "float32"), B: T.Tensor((2, 128), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "float32")
            for k in T.Pipelined(2, num_stages=2):
                T.clear(s)
                for i in T.Parallel(100):
                    s[i] = A[k, i]
                for i in T.Parallel(128):
                    B[k, i] = s[127 - i]

    return main


@tilelang.jit
def shorter_than_its_stages():
    """A pipeline of two stages has one step, which adds a tile and loads the next one."""

    @T.prim_func
    def main(A: T.Tensor((2, 128), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "float32")
            t = T.alloc_shared((128,), "float32")
            T.clear(s)
            T.copy(A[0, :], t)
            for k in T.Pipelined(1, num_stages=2):
                for i in T.Parallel(128):
                    s[i] += t[i]
                T.copy(A[k + 1, :], t)
            T.copy(s, B)

    return main


@tilelang.jit
def reduced_before_a_pipeline():
    """The largest of 128 floats, then a pipeline of tiles of another type."""

    @T.prim_func
    def main(
        A: T.Tensor((128,), "float32"),
        H: T.Tensor((256, 64), "float16"),
        B: T.Tensor((128,), "float32"),
        C: T.Tensor((128, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128,), "float32")
            h = T.alloc_shared((128, 64), "float16")
            f = T.alloc_fragment((128,), "float32")
            largest = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((128, 64), "float32")
            T.copy(A, a)
            T.copy(a, f)
            T.reduce_max(f, largest, dim=0)
            T.clear(total)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(H[k * 128, 0], h)
                for i, j in T.Parallel(128, 64):
                    total[i, j] += h[i, j]
            for i in T.Parallel(128):
                B[i] = a[127 - i] - largest[0]
            T.copy(total, C)

    return main


@tilelang.jit
def viewed_in_a_pipeline():
    """Each step of a pipeline reads its tile in another shape."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "int32"), B: T.Tensor((4, 128), "int32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128,), "int32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0], a)
                v = T.reshape(a, (64, 2))
                for i in T.Parallel(128):
                    B[k, i] = v[i // 2, i % 2]

    return main


@tilelang.jit
def masked_steps():
    """A flag that each step of a pipeline loads says whether the step stores."""

    @T.prim_func
    def main(M: T.Tensor((4, 128), "int32"), A: T.Tensor((4, 128), "int32"), B: T.Tensor((4, 128), "int32")):
        with T.Kernel(1, threads=128) as _:
            m = T.alloc_shared((128,), "int32")
            a = T.alloc_shared((128,), "int32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(M[k, 0], m)
                T.copy(A[k, 0], a)
                if m[0] > 0:
                    for i in T.Parallel(128):
                        B[k, i] = a[127 - i]

    return main


@tilelang.jit
def read_before_a_pipeline():
    """Registers read a tile, which is then set again, before a pipeline."""

    @T.prim_func
    def main(
        A: T.Tensor((128,), "float32"),
        B: T.Tensor((2, 128), "float32"),
        C: T.Tensor((128,), "float32"),
        D: T.Tensor((2, 128), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128,), "float32")
            t = T.alloc_shared((128,), "float32")
            f = T.alloc_fragment((128,), "float32")
            for i in T.Parallel(128):
                s[i] = A[i]
            T.copy(s, f)
            T.fill(s, 2)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(B[k, :], t)
                for i in T.Parallel(128):
                    D[k, i] = t[i] + s[i]
            T.copy(f, C)

    return main


@tilelang.jit
def row_of_an_operand():
    """Each row of a product, and a row of its operand."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.clear(c)
            T.gemm(a, a, c, transpose_B=True)
            for i, j in T.Parallel(64, 64):
                B[i, j] = c[i, j] + a[3, j]

    return main


@tilelang.jit
def reshaped_operand():
    """Each step of a pipeline multiplies its tile in another shape."""

    @T.prim_func
    def main(
        A: T.Tensor((4, 2, 32, 64), "float16"), B: T.Tensor((4, 64, 64), "float16"), C: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((2, 32, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0, 0, 0], a)
                T.copy(B[k, 0, 0], b)
                T.gemm(T.reshape(a, (64, 64)), b, c)
            T.copy(c, C)

    return main


@tilelang.jit
def scanned_in_a_pipeline():
    """Each step of a pipeline makes running sums of the tile that it has loaded."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128,), "float32")
            b = T.alloc_shared((128,), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0], a)
                T.cumsum(a, b, dim=0)
                T.copy(b, B[k, 0])

    return main


HALF, FLOAT, INT = "float16", "float32", "int32"


@tilelang.jit
def step_in_shared():
    """All threads keep the step in shared memory: a fast warp writes the next one before a slow one has read it."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "int32"), B: T.Tensor((4, 128), "int32")):
        with T.Kernel(1, threads=128) as _:
            x = T.get_thread_binding()
            m = T.alloc_shared((1,), "int32")
            for k in T.serial(4):
                m[0] = k
                B[k, x] = A[k, x] + m[0]

    return main


@tilelang.jit
def scanned_twice():
    """A scan of some columns follows one of whole rows: it begins before other warps have ended theirs."""

    @T.prim_func
    def main(A: T.Tensor((32, 64), "int32"), B: T.Tensor((32, 64), "int32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((32, 64), "int32")
            T.copy(A, s)
            T.cumsum(src=s[21:32, 0:64], dst=s[21:32, 0:64], dim=1)
            T.cumsum(src=s[16:32, 60:64], dst=s[16:32, 60:64], dim=1)
            T.copy(s, B)

    return main


@tilelang.jit
def last_tile():
    """Only the statement after the pipeline reads a tile: the copies of several steps into it are under way at once."""

    @T.prim_func
    def main(
        A: T.Tensor((4, 32), "float32"),
        B: T.Tensor((4, 32), "float32"),
        C: T.Tensor((4, 32), "float32"),
        D: T.Tensor((32,), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((32,), "float32")
            b = T.alloc_shared((32,), "float32")
            for k in T.Pipelined(4, num_stages=3):
                T.copy(A[k, 0], a)
                T.copy(B[k, 0], b)
                T.copy(a, C[k, 0])
            T.copy(b, D)

    return main


@tilelang.jit
def reshaped_reducer():
    """Registers that a reducer fills by fours are stored as if each thread had one of them."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((4, 16), "float32")):
        with T.Kernel(1, threads=128) as _:
            r = T.alloc_reducer((64,), "float32", op="min")
            a = T.alloc_fragment((64, 64), "float32")
            b = T.alloc_fragment((64, 64), "float32")
            f = T.alloc_fragment((64,), "float32")
            T.reducer_init(r)
            T.copy(A, a)
            for i, j in T.Parallel(64, 64):
                T.reducer_update(r[j], a[i, j])
            T.copy(A, b)
            for i, j in T.Parallel(64, 64):
                T.reducer_update(r[j], b[i, j])
            T.finalize_reducer(r, f, batch=2)
            v = T.reshape(f, (4, 16))
            T.copy(f, B)
            T.copy(v, C)

    return main


@tilelang.jit
def operand_stored_before(dtype="float16"):
    """An operand of a product is kept in registers, and stored to shared memory before the pipeline."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 16), dtype),
        B: T.Tensor((64, 64), dtype),
        C: T.Tensor((64, 64), "float32"),
        D: T.Tensor((64, 16), dtype),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((64, 16), dtype)
            s = T.alloc_shared((64, 16), dtype)
            b = T.alloc_shared((16, 64), dtype)
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(a, s)
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(B[k * 16, 0], b)
                T.gemm(a, b, c)
            T.copy(s, D)
            T.copy(c, C)

    return main


@tilelang.jit
def smallest_before_a_pipeline():
    """Rows in registers are reduced before a pipeline, and stored with the results after it."""

    @T.prim_func
    def main(
        A: T.Tensor((6, 64), "float32"),
        B: T.Tensor((4, 32), "float32"),
        C: T.Tensor((4, 32), "float32"),
        D: T.Tensor((6, 64), "float32"),
        E: T.Tensor((6,), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((6, 64), "float32")
            least = T.alloc_fragment((6,), "float32")
            b = T.alloc_shared((32,), "float32")
            T.copy(A, a)
            T.reduce_min(a, least, dim=1)
            for k in T.Pipelined(4, num_stages=3):
                T.copy(B[k, :], b)
                for i in T.Parallel(32):
                    C[k, i] = b[i]
            for i, j in T.Parallel(6, 64):
                D[i, j] = a[i, j]
            for i in T.Parallel(6):
                E[i] = least[i]

    return main


@tilelang.jit
def stored_in_each_round():
    """Half of the consumers store their operand in each round of a loop with a pipeline; then all store a tile."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float32"),
        B: T.Tensor((512, 64), "float32"),
        C: T.Tensor((128,), "float32"),
        D: T.Tensor((128,), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((64, 64), "float32")
            b = T.alloc_shared((128, 64), "float32")
            c = T.alloc_fragment((64, 128), "float32")
            s = T.alloc_shared((64, 64), "float32")
            t = T.alloc_shared((128,), "float32")
            for _round in T.serial(2):
                T.clear(c)
                T.copy(A, a)
                for k in T.Pipelined(4, num_stages=1):
                    T.copy(B[k * 128, 0], b)
                    T.gemm(a, b, c, transpose_B=True)
                T.copy(a, s)
            for i in T.Parallel(128):
                t[i] = C[i]
            T.copy(t, D)

    return main


@tilelang.jit
def read_after_a_pipeline():
    """Each step of a pipeline sets a tile, which is read once more after the last one."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128,), "float32")
            for k in T.Pipelined(4, num_stages=2):
                for i in T.Parallel(128):
                    a[i] = A[k, i]
                for i in T.Parallel(128):
                    B[k, i] = a[127 - i]
            for i in T.Parallel(128):
                C[i] = a[i]

    return main


@tilelang.jit
def begun_at_the_block():
    """Sum up the rows from the block's number on, in a pipeline of three stages."""

    @T.prim_func
    def main(A: T.Tensor((8, 128), "float32"), B: T.Tensor((2, 128), "float32")):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((128,), "float32")
            c = T.alloc_fragment((128,), "float32")
            T.clear(c)
            for k in T.Pipelined(bx, 8, num_stages=3):
                T.copy(A[k, 0:128], a)
                for i in T.Parallel(128):
                    c[i] += a[127 - i]
            for i in T.Parallel(128):
                B[bx, i] = c[i]

    return main


wait = Case(gemm, {}, ("sm_80",), integers((HALF, 256, 256), (HALF, 256, 256), (FLOAT, 256, 256)))
loop = Case(truncated, inputs=integers((FLOAT, 256), (FLOAT, 256)), reference=stepped)
store = Case(guard, inputs=integers((FLOAT, 8), (FLOAT, 4, 64)))
sums = Case(accumulation, inputs=integers((HALF, 64, 8), (HALF, 64)))
pairs = Case(exchange, inputs=integers((INT, 64)))
counts = Case(histogram, inputs=integers((INT, 512), (FLOAT, 128)))
reused = Case(
    twice,
    {},
    ("sm_90",),
    integers((HALF, 128, 64), (HALF, 256, 64), (HALF, 2, 64, 64), (FLOAT, 64, 64)),
)
empty = Case(stepless, inputs=integers((HALF, 64, 64), (HALF, 256, 64), (HALF, 4, 64, 64), (FLOAT, 4, 64, 64)))
skipped = Case(conditional, inputs=integers((HALF, 64, 128), (HALF, 128, 64), (FLOAT, 2, 64, 64)))
scaled = Case(doubled, inputs=integers((HALF, 64, 64), (HALF, 128, 64), (FLOAT, 64, 64)))
nested = Case(summed, inputs=integers((HALF, 64, 128), (HALF, 128, 64), (FLOAT, 64, 64)))
repeated = Case(rotated, inputs=integers((FLOAT, 4, 128), (FLOAT, 128)))
drained = Case(unaligned, {}, ("sm_90",), integers((HALF, 64, 102), (HALF, 96, 66), (FLOAT, 64, 64)))
table = Case(
    shared_table,
    {},
    ("sm_90",),
    integers((HALF, 192, 64), (HALF, 192, 64), (HALF, 64, 64), (FLOAT, 64, 64)),
)
reloaded = Case(every_other)
moved = Case(stepping)
replaced = Case(used_then_loaded)
turns = Case(alternating, {}, ("sm_80",))
filled = Case(partly_filled, {}, ("sm_80",))
operand = Case(stored_operand, {}, ("sm_80",))
widened = Case(difference)
sometimes = Case(around_a_loop)
misplaced = Case(narrow_stages, {}, ("sm_90",))
batched = Case(reduced_by_fours)
unreduced = Case(matrix_by_vector)
joined = Case(counted_before_a_pipeline, {}, ("sm_90",))
overrun = Case(written_before_a_pipeline, {}, ("sm_90",))
unscanned = Case(scanned_after_a_pipeline, {}, ("sm_90",))
parted = Case(kept_over_a_pipeline, {}, ("sm_90",))
begun = Case(begun_by_thread)
reinterpreted = Case(vectors_of_integers, {}, ("sm_90",))
converted = Case(converted_sums)
either = Case(two_sources)
negative = Case(wide_rows_beside_a_pipeline, {}, ("sm_90",))
asked = Case(cleared_if)
overwritten = Case(scan_after_a_product, {}, ("sm_80",))
absent = Case(rows_by_warps)
wrapped = Case(neighbours_in_a_ring)
unset = Case(reduced_after_a_pipeline)
alike = Case(squared)
unlanded = Case(read_again, {}, ("sm_90",))
partial = Case(reversed_and_repeated, {}, ("sm_90",))
hoisted = Case(reversed_in_a_warp, {}, ("sm_90",))
elected = Case(stored_then_loaded, {}, ("sm_90",))
masked = Case(masked_tail, {}, ("sm_90",))
withheld = Case(scaled_rows, {}, ("sm_90",))
dropped = Case(added_in_a_pipeline, {}, ("sm_90",))
clobbered = Case(converted_in_a_branch)
viewed = Case(reshaped_before_a_pipeline, {}, ("sm_90",))
rotated = Case(stored_before_and_after_a_pipeline, {}, ("sm_90",))
unsigned = Case(signs)
shifted = Case(band)
inplace = Case(reduced_in_place)
overtaken = Case(step_in_shared)
understated = Case(scanned_twice)
overlapped = Case(last_tile, {}, ("sm_90",))
reshaped = Case(reshaped_reducer)
disputed = Case(bounded_then_counted)
striped = Case(tall_operand, {}, ("sm_90",))
released = Case(read_after_the_bulk_copy, {}, ("sm_90",))
recast = Case(halves_of_another_kind)
saturated = Case(floats_to_integers)
inlined = Case(tickets_inline)
walked = Case(read_in_turn)
dealt = Case(set_in_turn)
enclosed = Case(loop_in_a_step, {}, ("sm_80",))
crossed = Case(pipeline_in_a_pipeline, {}, ("sm_90",))
preloaded = Case(loaded_before, {}, ("sm_80",))
recycled = Case(reused_in_a_step, {}, ("sm_90",))
cleared = Case(cleared_then_set)
unread = Case(tile_without_readers, {}, ("sm_90",))
doubled = Case(shorter_than_its_stages, {}, ("sm_80",))
exchanged = Case(reduced_before_a_pipeline, {}, ("sm_80",))
unstaged = Case(viewed_in_a_pipeline, {}, ("sm_90",))
peeked = Case(masked_steps, {}, ("sm_90",))
postponed = Case(read_before_a_pipeline, {}, ("sm_90",))
swizzled = Case(row_of_an_operand)
reframed = Case(reshaped_operand)
staged = Case(scanned_in_a_pipeline, {}, ("sm_80",))
deserted = Case(left_by_half)
forgotten = Case(added_in_a_warp)
bytewise = Case(odd_bytes)
unscaled = Case(floats_after_halves)
unloaded = Case(operand_stored_before, {}, ("sm_90",))
barred = Case(operand_stored_before, {"dtype": "float32"}, ("sm_90",))
mingled = Case(smallest_before_a_pipeline, {}, ("sm_90",))
miscounted = Case(stored_in_each_round, {}, ("sm_90",))
outlived = Case(read_after_a_pipeline)
unawaited = Case(begun_at_the_block, {}, ("sm_80",))
exposed = Case(padded_with_ones)
presumed = Case(converted_where_positive)
