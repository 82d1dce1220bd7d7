"""TLS005: a T.assume or T.device_assert does not hold

## What it does

The condition is false in some block and thread of the grid. It fails on the inputs of the case, or does not depend on
inputs at all.

## Why is this bad?

TileLang relies on `T.assume` and leaves out guards and branches, so anything may happen. `T.device_assert` stops the
kernel.

The witness names the block and the thread.

## Example

The last block has threads for which the condition is false.

```python
with T.Kernel(4, threads=128) as bx:
    tx = T.get_thread_binding()
    T.assume(bx * 128 + tx < 500)
    y[bx * 128 + tx] = x[bx * 128 + tx]
```

## Use instead

Write `if` around statements that need the condition, or assume something that holds for all blocks, threads and
inputs.

## Limits

If the condition depends on random inputs or sizes, and fails for all that were tried, it is undecided: declare
`inputs` in the case.
"""

PROBLEM = "source-promise"
