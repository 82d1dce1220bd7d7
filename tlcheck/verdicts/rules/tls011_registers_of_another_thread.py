"""TLS011: an element of a fragment is in another thread's registers

## What it does

One thread stores an element of a fragment, outside of T.Parallel. Another thread reads it. Or T.Parallel or a tile
operator reads it, and an output is wrong.

## Why is this bad?

TileLang keeps such a fragment whole in the registers of every thread. A plain store changes those of its own thread, so
that the others read what was there before.

The witness names the element, and both threads.

## Example

Thread 0 reads `f[16]`, which thread 16 has stored.

```python
@T.prim_func
def main(x: T.Tensor((128,), "float32"), y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        f = T.alloc_fragment((128,), "float32")
        f[tx] = x[tx]
        y[tx] = f[tx ^ 16]
```

## Use instead

Use shared memory (`T.alloc_shared`), or a shuffle. Or store the fragment by T.Parallel or T.copy.

## Limits

If the indices depend on random inputs, the read is undecided: declare `inputs` in the case.
"""

PROBLEM = "source-fragment"
