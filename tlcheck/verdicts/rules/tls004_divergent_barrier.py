"""TLS004: some threads of the block do not reach a barrier

## What it does

`T.sync_threads()` stands in a branch that some threads of the block do not take, or in a loop that some threads have
left before (`T.loop_break`). Or a warp exchanges values in such a branch (`T.shfl_xor`, `T.warp_reduce_sum`), and the
rest of the warp waits at a barrier after it.

## Why is this bad?

The threads in the branch wait for the others, or meet them at another barrier. A GPU hangs, or orders the
wrong statements (CUDA C++ Programming Guide, "Synchronization Functions"). The same holds for an exchange: it waits
for all threads of the warp that it names (PTX ISA, `shfl.sync`).

The witness names the barrier, and how many threads reach it, or a thread that the exchange waits for.

## Example

64 of 128 threads reach the barrier.

```python
if tx < 64:
    s[tx] = s[tx] + s[tx + 64]
    T.sync_threads()
```

## Use instead

Move `T.sync_threads()` out of the branch.

## Limits

TileLang may turn it into a named barrier that counts only the threads of the branch. If accesses of the other threads
do not need it, the kernel is right, and this is a warning.
"""

PROBLEM = "source-barrier"
