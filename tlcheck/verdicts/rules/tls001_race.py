"""TLS001: the source races with itself

Two accesses of the source touch one element, at least one of them changes it, and nothing orders them: iterations of
one T.Parallel, threads of code for threads, blocks of the grid, or an asynchronous copy that nobody waits for. The
result depends on which of them is first, whatever TileLang does. TileLang inserts barriers between statements that
share memory of a block, unless `TL_DISABLE_THREAD_STORAGE_SYNC` is set. It inserts none inside one statement, none in
global memory, and nothing orders blocks.

The witness names both accesses and the element. Threads that write the value that is there already do not race, nor
does a thread that reads what it has written itself. A race whose accesses depend on numbers that tlcheck drew is
undecided: declare `inputs` in the case.

Bad: thread `tx` reads what thread `tx + 1` overwrites.

```python
@T.prim_func
def main(x: T.Tensor((4096,), "float32")):
    with T.Kernel(32, threads=128) as bx:
        tx = T.get_thread_binding()
        i = bx * 128 + tx
        if i < 4095:
            x[i] = x[i + 1]
```

What to do: write to another tensor, use `T.atomic_add` where several threads or blocks add to one element, put
`T.sync_threads()` between the two statements, or split the kernel where blocks read what others write.
"""

PROBLEM = "source-race"
