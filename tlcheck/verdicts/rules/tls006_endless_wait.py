"""TLS006: a wait that nobody answers

The kernel waits for a phase of an mbarrier that nobody completes: fewer threads arrive than the mbarrier is made for,
none arrives at all, or the wait names the parity of a phase that does not end (PTX ISA, "mbarrier"). A GPU hangs. The
source and the lowered kernel both come to no end in the execution.

Or it waits for a group of asynchronous copies, and the copies that it has begun are in no group yet, because
`T.ptx_commit_group()` is missing (PTX ISA, "cp.async.wait_group"): the wait is over at once, and what follows reads
memory that the copies have not reached.

A kernel that begins no asynchronous copy and calls `T.ptx_wait_group` waits for nothing: a warning, which is an error
with `--strict`.

The witness names the wait, the block and the thread, and how many arrivals have come. Where numbers that tlcheck drew
decide who arrives, it is undecided: declare `inputs` in the case.

Bad: 64 threads arrive at an mbarrier that is made for 128.

```python
full = T.alloc_barrier(128)
T.tma_copy(x, s, barrier=full)
if tx < 64:
    T.mbarrier_arrive(full)
T.mbarrier_wait_parity(full, 0)
```

What to do: let as many threads arrive as `T.alloc_barrier` says; wait for parity 0 first and for the other one after
each phase; call `T.ptx_commit_group()` between the copies and the wait.
"""

PROBLEM = "source-wait"
