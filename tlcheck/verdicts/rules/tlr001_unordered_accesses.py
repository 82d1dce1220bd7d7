"""TLR001: nothing orders two accesses to memory

Two threads, or a thread and a bulk copy, access one element of shared memory or of a tensor that the kernel writes. At
least one of them changes it, and no barrier, mbarrier, wait or `__syncwarp` orders them. The number that is read
depends on which of them comes first. tlcheck looks at the lowered kernel, in the blocks that were run.

Threads that store different values to one element at once race, too. So do blocks, of which one accesses what another
one writes. Writing the value that is there already is no race. A race that the source has as well is TLS001.

The witness names both accesses: thread, iteration, line of the TIR. Put the missing barrier, wait or fence between
them.

In the TIR: thread 1 may read `s[0]` before thread 0 has written it.

```python
s[tx] = A[tx]
B[tx] = s[(tx + 127) % 128]
```

What to do: `tlcheck fix CASE` looks for a pass configuration, an argument or a release that has it right; or put
`T.sync_threads()` between the two statements.
"""

PROBLEM = "race"
