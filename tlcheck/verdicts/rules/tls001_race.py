"""TLS001: the source races with itself

## What it does

Two accesses of the source touch one element, at least one of them changes it, and nothing orders them. They may
belong to:

- two iterations of one `T.Parallel`;
- two threads, in code that names its thread;
- two blocks of the grid;
- an asynchronous copy that nobody waits for.

TileLang inserts barriers between statements that share memory of a block, unless `TL_DISABLE_THREAD_STORAGE_SYNC` is
set. It inserts none inside one statement and none in global memory. Nothing orders blocks.

## Why is this bad?

The result depends on which access comes first, whatever TileLang does.

The witness names both accesses and the element.

## Example

Thread `tx` reads an element that thread `tx + 1` overwrites.

```python
@T.prim_func
def main(x: T.Tensor((4096,), "float32")):
    with T.Kernel(32, threads=128) as bx:
        tx = T.get_thread_binding()
        i = bx * 128 + tx
        if i < 4095:
            x[i] = x[i + 1]
```

## Use instead

Write to another tensor. Use `T.atomic_add` if several threads or blocks add to one element. Put `T.sync_threads()`
between the two statements. Split the kernel if blocks read what others write.

## Limits

Threads that write the value that is there already do not race, nor does a thread that reads its own write. If random
inputs decide whether two accesses meet, the race is undecided: declare `inputs` in the case.
"""

PROBLEM = "source-race"
