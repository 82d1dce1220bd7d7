"""Small kernels that are rich in synchronization: what `make mutants` breaks, besides kernels of other folders."""

import tilelang
import tilelang.language as T

from tlcheck.case import Case


@tilelang.jit
def pipelined(stages=2):
    """A product of eight steps, stored by way of shared memory."""

    @T.prim_func
    def main(A: T.Tensor((64, 256), "float16"), B: T.Tensor((256, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            staged = T.alloc_shared((64, 64), "float16")
            T.clear(c)
            for k in T.Pipelined(8, num_stages=stages):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, staged)
            T.copy(staged, C)

    return main


@tilelang.jit
def ragged():
    """A product whose every side ends within a tile: copies with predicates."""

    @T.prim_func
    def main(A: T.Tensor((72, 100), "float16"), B: T.Tensor((100, 72), "float16"), C: T.Tensor((72, 72), "float32")):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return main


@tilelang.jit
def attention():
    """Softmax while the rows go by: two products for each of four steps, row sums and maxima between threads."""

    @T.prim_func
    def main(
        Q: T.Tensor((64, 64), "float16"),
        K: T.Tensor((256, 64), "float16"),
        V: T.Tensor((256, 64), "float16"),
        O: T.Tensor((64, 64), "float16"),
    ):
        with T.Kernel(1, threads=128) as _:
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((64, 64), "float16")
            v = T.alloc_shared((64, 64), "float16")
            s = T.alloc_fragment((64, 64), "float32")
            p = T.alloc_fragment((64, 64), "float16")
            o = T.alloc_fragment((64, 64), "float32")
            top = T.alloc_fragment((64,), "float32")
            before = T.alloc_fragment((64,), "float32")
            total = T.alloc_fragment((64,), "float32")
            part = T.alloc_fragment((64,), "float32")
            T.copy(Q, q)
            T.clear(o)
            T.clear(total)
            T.fill(top, -1e30)
            for step in T.Pipelined(4, num_stages=2):
                T.copy(K[step * 64, 0], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                T.copy(top, before)
                T.reduce_max(s, top, dim=1, clear=False)
                for i, j in T.Parallel(64, 64):
                    s[i, j] = T.exp2(s[i, j] / 16 - top[i] / 16)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(64):
                    total[i] = total[i] * T.exp2(before[i] / 16 - top[i] / 16) + part[i]
                for i, j in T.Parallel(64, 64):
                    o[i, j] = o[i, j] * T.exp2(before[i] / 16 - top[i] / 16)
                T.copy(s, p)
                T.copy(V[step * 64, 0], v)
                T.gemm(p, v, o)
            for i, j in T.Parallel(64, 64):
                o[i, j] = o[i, j] / total[i]
            T.copy(o, O)

    return main


@tilelang.jit
def tree():
    """A sum by halves in shared memory, one barrier for each."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[bx, tx]
            for level in T.serial(7):
                T.sync_threads()
                if tx < (64 >> level):
                    s[tx] = s[tx] + s[tx + (64 >> level)]
            if tx == 0:
                B[bx] = s[0]

    return main


@tilelang.jit
def doubling():
    """Prefix sums: what lies 1, 2, 4, ... before is added, between two halves of one buffer in turn."""

    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((2, 128), "int32")
            tx = T.get_thread_binding()
            s[0, tx] = A[tx]
            for level in T.serial(7):
                if tx >= (1 << level):
                    s[(level + 1) % 2, tx] = s[level % 2, tx] + s[level % 2, tx - (1 << level)]
                else:
                    s[(level + 1) % 2, tx] = s[level % 2, tx]
            B[tx] = s[1, tx]

    return main


@tilelang.jit
def sums():
    """Row sums and column sums of a tile of shared memory, by tile operators, and prefix sums of its rows."""

    @T.prim_func
    def main(
        A: T.Tensor((3, 64, 64), "float32"),
        R: T.Tensor((64,), "float32"),
        C: T.Tensor((64,), "float32"),
        P: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((64, 64), "float32")
            f = T.alloc_fragment((64, 64), "float32")
            rows = T.alloc_fragment((64,), "float32")
            columns = T.alloc_fragment((64,), "float32")
            T.clear(rows)
            T.clear(columns)
            for k in T.serial(3):
                T.copy(A[k, 0, 0], s)
                T.copy(s, f)
                T.reduce_sum(f, rows, dim=1, clear=False)
                T.reduce_sum(f, columns, dim=0, clear=False)
            T.cumsum(s, dim=1)
            T.copy(s, P)
            T.copy(rows, R)
            T.copy(columns, C)

    return main


@tilelang.jit
def counted():
    """A histogram in shared memory of four rounds, cleared between them."""

    @T.prim_func
    def main(A: T.Tensor((4, 256), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((64,), "int32")
            for k in T.serial(4):
                for i in T.Parallel(64):
                    s[i] = 0
                for i in T.Parallel(256):
                    T.atomic_add(s[A[k, i] % 64], 1)
                for i in T.Parallel(64):
                    B[k, i] = s[i]

    return main


@tilelang.jit
def transposed():
    """Tiles that are turned by way of shared memory, three for each block."""

    @T.prim_func
    def main(A: T.Tensor((64, 192), "float16"), B: T.Tensor((192, 64), "float16")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((64, 64), "float16")
            f = T.alloc_fragment((64, 64), "float16")
            for k in T.serial(3):
                T.copy(A[0, k * 64], s)
                for i, j in T.Parallel(64, 64):
                    f[i, j] = s[j, i]
                T.copy(f, B[k * 64, 0])

    return main


@tilelang.jit
def stencil():
    """Rows with their neighbours: a window in shared memory that is read and replaced, four times."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((136,), "float32")
            f = T.alloc_fragment((128,), "float32")
            for i in T.Parallel(136):
                s[i] = T.if_then_else(bx * 128 + i < 256, A[bx * 128 + i], 0.0)
            for _ in T.serial(4):
                for i in T.Parallel(128):
                    f[i] = s[i] + 2 * s[i + 1] - s[i + 2]
                for i in T.Parallel(128):
                    s[i] = f[i]
            T.copy(f, B[bx * 128])

    return main


@tilelang.jit
def split():
    """A product whose parts are two kernels: partial sums of four blocks, then their sum."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 256), "float16"),
        B: T.Tensor((256, 64), "float16"),
        P: T.Tensor((4, 64, 64), "float32"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(4, threads=128) as bx:
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, bx * 64 + k * 32], a)
                T.copy(B[bx * 64 + k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, P[bx, 0, 0])
        with T.Kernel(1, threads=128) as _:
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.serial(4):
                for i, j in T.Parallel(64, 64):
                    c[i, j] = c[i, j] + P[k, i, j]
            T.copy(c, C)

    return main


@tilelang.jit
def dequantized():
    """Bytes that become numbers in registers, then a tile of shared memory, then a factor; a scale for each row."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 256), "float16"),
        B: T.Tensor((64, 256), "int8"),
        S: T.Tensor((64,), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            raw = T.alloc_shared((64, 64), "int8")
            f = T.alloc_fragment((64, 64), "int8")
            g = T.alloc_fragment((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 64], a)
                T.copy(B[0, k * 64], raw)
                T.copy(raw, f)
                for i, j in T.Parallel(64, 64):
                    g[i, j] = T.cast(f[i, j], "float16") * S[i]
                T.copy(g, b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    return main


@tilelang.jit
def persistent():
    """Two blocks that take three tiles each, one after the other; the tile goes out by way of shared memory."""

    @T.prim_func
    def main(A: T.Tensor((384, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((384, 64), "float16")):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            staged = T.alloc_shared((64, 64), "float16")
            T.copy(B, b)
            for wave in T.serial(3):
                T.copy(A[(wave * 2 + bx) * 64, 0], a)
                T.clear(c)
                T.gemm(a, b, c)
                T.copy(c, staged)
                T.copy(staged, C[(wave * 2 + bx) * 64, 0])

    return main


@tilelang.jit
def normalized():
    """Rows over their root mean square, by way of shared memory, then added over the blocks by atomics."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 128), "float32"),
        W: T.Tensor((128,), "float32"),
        B: T.Tensor((64, 128), "float32"),
        D: T.Tensor((128,), "float32"),
    ):
        with T.Kernel(4, threads=128) as bx:
            s = T.alloc_shared((16, 128), "float32")
            f = T.alloc_fragment((16, 128), "float32")
            squares = T.alloc_fragment((16, 128), "float32")
            total = T.alloc_fragment((16,), "float32")
            T.copy(A[bx * 16, 0], s)
            T.copy(s, f)
            for i, j in T.Parallel(16, 128):
                squares[i, j] = f[i, j] * f[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i, j in T.Parallel(16, 128):
                s[i, j] = f[i, j] * T.rsqrt(total[i] / 128 + 1e-5) * W[j]
            T.copy(s, B[bx * 16, 0])
            for j in T.Parallel(128):
                T.atomic_add(D[j], s[j % 16, j])

    return main


two_stages = Case(pipelined)
four_stages = Case(pipelined, {"stages": 4})
tails = Case(ragged)
softmax = Case(attention)
halves = Case(tree)
prefixes = Case(doubling)
rows = Case(sums)
rounds = Case(counted)
turned = Case(transposed)
window = Case(stencil)
parts = Case(split)
scaled = Case(dequantized)
waves = Case(persistent)
norm = Case(normalized)
