"""TLL003: the device, or its compiler, refuses the lowered kernel

## What it does

The lowered kernel needs more threads in a block, more shared memory or a larger grid than the target has (CUDA C++
Programming Guide, "Compute Capabilities"). The source asks for less: TileLang has added threads for warp
specialization, or memory of its own.

The rule also finds vector operations that do not compile: `T.Select` and `T.Not` before 0.1.14, `~` on NVIDIA before
0.1.15.

## Why is this bad?

The compiler or the driver refuses the kernel, so its executed results say nothing about the device.

The witness names the amount and the limit, or what does not compile.

## Example

With 0.1.15 a pipeline for sm_90 gets 128 more threads, for its copies, than the source launches.

```python
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def busy(M=256, N=256):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(M // 64, threads=1024) as bx:
            a = T.alloc_shared((64, 32), "float16")
            for k in T.Pipelined(N // 32, num_stages=2):
                T.copy(A[bx * 64, k * 32], a)
                T.copy(a, B[bx * 64, k * 32])

    return main
```

```
$ tlcheck check busy.py::busy --arch sm_90 --no-why
busy.py:9: TLL003 launch-refused: a block has 1,152 threads, and at most 1,024 are allowed
   [TileLang 0.1.15, sm_90]
      9 | with T.Kernel(M // 64, threads=1024) as bx:
   kernel: busy.py::busy
   blame: TileLang 0.1.15
   help: launch at most as many threads and let each do more; `tlcheck fix busy.py::busy --arch
         sm_90 --toolchain pinned` looks for a workaround; `tlcheck explain TLL003`

1 bug in TileLang
```

## Use instead

Use smaller tiles, fewer threads or fewer stages of a pipeline. `tlcheck fix CASE` tries arguments and releases.
"""

PROBLEM = "launch"
