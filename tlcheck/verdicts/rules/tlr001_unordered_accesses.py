"""TLR001: nothing orders two accesses to memory

## What it does

Two threads, or a thread and a bulk copy, access one element of shared memory, or of a tensor that the kernel writes.
At least one of them changes it, and no barrier, mbarrier, wait or `__syncwarp` orders them. tlcheck looks at the
lowered kernel, in the blocks that ran.

Threads that store different values to one element in one statement race too, and so do blocks. Writing the value that
is there already is no race. A race that the source has as well is TLS001.

## Why is this bad?

The number that is read depends on which access comes first.

The witness names both accesses: thread, iteration, line of the TIR.

## Example

In the TIR: thread 1 may read `s[0]` before thread 0 has written it.

```python
s[tx] = A[tx]
B[tx] = s[(tx + 127) % 128]
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. Or put the
missing barrier, wait or fence between the two accesses, here `T.sync_threads()`.
"""

PROBLEM = "race"
