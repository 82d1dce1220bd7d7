"""TLS006: a wait that never ends, or ends too early

## What it does

The kernel has one of these faults:

- It waits for a phase of an mbarrier that never completes (PTX ISA, "mbarrier"). Too few threads arrive, or the wait
  names the wrong parity.
- It waits for a group of asynchronous copies without `T.ptx_commit_group()` before, so its copies are in no group yet
  (PTX ISA, "cp.async.wait_group").

## Why is this bad?

In the first case a GPU hangs. In the second the wait ends at once, and the kernel reads memory before the copies
arrive.

The witness names the wait, the block, the thread, and the arrivals so far.

## Example

64 threads arrive at an mbarrier that is made for 128.

```python
full = T.alloc_barrier(128)
T.tma_copy(x, s, barrier=full)
if tx < 64:
    T.mbarrier_arrive(full)
T.mbarrier_wait_parity(full, 0)
```

## Use instead

Let as many threads arrive as `T.alloc_barrier` says. Wait for parity 0 first, and change the parity after each phase.
Call `T.ptx_commit_group()` between the copies and the wait.

## Limits

If a kernel calls `T.ptx_wait_group` but starts no asynchronous copy, the wait has no effect. That is a warning, and an
error with `--strict`. If random inputs decide which threads arrive, the wait is undecided:
declare `inputs` in the case.
"""

PROBLEM = "source-wait"
