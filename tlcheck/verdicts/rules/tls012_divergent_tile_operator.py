"""TLS012: only some threads of the block reach a tile operator

## What it does

A tile operator (`T.copy`, `T.fill`, `T.gemm`, `T.reduce`, `T.Parallel`, `T.atomic_add` of a tile) stands in a branch
that some threads of the block do not take, or in a loop that begins or ends elsewhere in each thread. Or some threads
leave before it, by `T.thread_return`, `T.loop_break` or `continue`. An output depends on the operator and differs, or
threads wait there for others.

## Why is this bad?

All threads of a block do a tile operator together. TileLang gives each of them a share of the elements, and puts
barriers between operators. The share of a thread that does not come is not done.

The witness names the operator, and how many threads reach it.

## Example

64 of 128 threads reach `T.fill`. The elements of the others keep what they were.

```python
@T.prim_func
def main(x: T.Tensor((128,), "float32"), y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        s = T.alloc_shared((128,), "float32")
        T.copy(x, s)
        if tx % 2 == 0:
            T.fill(s, 3)
        T.copy(s, y)
```

## Use instead

Move the operator out of the branch or loop. Or store elements thread by thread (`s[tx] = 3`).

## Limits

A branch of whole warps that compares the thread with constants, as `if tx < 128:` does, is a warp group by hand.
TileLang shares the operator out among its threads, so the kernel is right. An output that differs is undecided in three
cases:

- The branch is such a comparison, but leaves parts of warps, as `if tx < 7:` does.
- Whole warps take the branch by another condition, as `if tx // 32 == 1:`, or leave before the operator.
- Warps set a fragment in a branch, and other threads read it.

If random inputs decide who reaches the operator, the output is undecided: declare `inputs` in the case.
"""

PROBLEM = "source-part"
