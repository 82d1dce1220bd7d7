"""TLS005: a T.assume or T.device_assert does not hold

TileLang takes the condition of `T.assume` for granted, and leaves out guards and branches that it makes needless: if
the condition is false, anything may happen. `T.device_assert` stops the kernel. The condition is false in a block and
thread of the grid, on the inputs of the case, or on all inputs because no number from outside takes part in it.

The witness names the block and the thread. A condition that depends on numbers or sizes that tlcheck chose is
undecided if none of the inputs tried keeps it: declare `inputs` in the case.

Bad: the last block has threads for which the condition is false.

```python
with T.Kernel(4, threads=128) as bx:
    tx = T.get_thread_binding()
    T.assume(bx * 128 + tx < 500)
    y[bx * 128 + tx] = x[bx * 128 + tx]
```

What to do: write `if` where the condition may be false, or assume what holds for all blocks, threads and inputs.
"""

PROBLEM = "source-promise"
