"""TLL002: threads wait for an event that never happens

## What it does

All threads of a block wait at barriers or mbarriers, no copy is under way, and no thread can go on. The source ends
on the same inputs.

## Why is this bad?

On a GPU the kernel hangs.

A `__syncthreads()` in a branch that only some warps take may let go all the same: Hopper also counts threads that have
ended, and threads at another `__syncthreads()`. CUDA leaves open what such a kernel does. Its results are right if no
thread reads or overwrites early what the barrier protects.

The witness names the barriers or mbarriers.

## Example

0.1.15 puts a barrier into a branch that only some threads take.

```python
T.gemm(a, b, c)
T.copy(c, C)
T.copy(a, d)
T.copy(d, D)
```

```
$ tlcheck check kernels.py::operand --arch sm_80 --no-why
kernels.py:465: TLL002 deadlock: waits at barrier 0 for 128 threads   [TileLang 0.1.15, sm_80]
    465 | T.copy(a, d)   block (0, 0, 0), thread 0, TIR line 33
   deadlock: waits at barrier 0 for 128 threads at line 465 (thread 0, TIR line 33); some threads
   may not take the branch with the barrier of TIR line 30
   kernel: kernels.py::operand
   blame: TileLang 0.1.15 (tl.ThreadSync)
   help: `tlcheck fix kernels.py::operand --arch sm_80 --toolchain pinned` looks for a workaround;
         `tlcheck explain TLL002`

1 bug in TileLang
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. It also
tries `TL_DISABLE_WARP_SPECIALIZED=True`.
"""

PROBLEM = "deadlock"
