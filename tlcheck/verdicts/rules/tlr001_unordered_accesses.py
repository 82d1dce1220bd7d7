"""TLR001: nothing orders two accesses to memory

## What it does

Two threads, or a thread and a bulk copy, access one element of shared memory, or of a tensor that the kernel writes.
At least one of them changes it, and no barrier, mbarrier, wait or `__syncwarp` orders them. tlcheck looks at the
lowered kernel, in the blocks that ran.

Threads that store different values to one element in one statement race too, and so do blocks. Writing the value that
is there already, with each of the inputs, is not a race. A race that the source has as well is TLS001.

## Why is this bad?

The number that is read depends on which access comes first.

The witness names both accesses: thread, iteration, line of the TIR.

## Example

0.1.9 waits for one group of copies too few.

```python
for i in T.Pipelined(k // step, num_stages=stages):
    T.copy(A[by * block, i * step], a)
    T.copy(B[i * step, bx * block], b)
    T.gemm(a, b, c)
```

```
$ tlcheck check kernels.py::wait --arch sm_80 --toolchain 0.1.9 --no-why
kernels.py:44: TLR001 unordered-accesses: nothing orders two accesses to a: between them a wait
   for the copy is missing   [TileLang 0.1.9, sm_80]
     44 | T.gemm(a, b, c)
        |   read: block (0, 0, 0), thread 0, ki = 0, i = 0, TIR line 72
     42 | T.copy(A[by * block, i * step], a)
        |   write: block (0, 0, 0), thread 0, i = 0, TIR line 42
   a wait for the copy is missing between the write of a at line 42 (thread 0, TIR line 42) and
   the read of a at line 44 (thread 0, TIR line 72)
   TLR001 b: nothing orders two accesses to b: between them a wait for the copy is missing
   C[0, 0] is undefined (element of a, read while its copy is under way), should be 1091.0 (inputs
   of seed 0; 65536 elements differ)
   kernel: kernels.py::wait
   blame: TileLang 0.1.9
   help: `tlcheck fix kernels.py::wait --arch sm_80 --toolchain 0.1.9` looks for a workaround;
         `tlcheck explain TLR001`

1 bug in TileLang
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. Or put the
missing barrier, wait or fence between the two accesses (`T.sync_threads()` is a barrier).
"""

PROBLEM = "race"
