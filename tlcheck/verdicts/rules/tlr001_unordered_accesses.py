"""TLR001: nothing orders two accesses to memory

Two threads, or a thread and a bulk copy, access one element of shared memory, or of a tensor that the kernel writes. At
least one of them writes something else, and no barrier, mbarrier, wait or __syncwarp orders them (happens-before, in
the execution as lowered of the blocks that were run). The number that is read depends on which of them is first. So it
does where threads store different values to one element at once, and where one block accesses what another one writes.

A race that the source has as well is its author's: TLS001.

The witness names both accesses: thread, iteration, line of the TIR. Between them what is missing has to stand. Writing
the value that is there already counts as no conflict.

What to do: `tlcheck fix CASE` looks for a pass configuration, an argument or a release that has it right; or put
`T.sync_threads()` between the two statements.
"""

PROBLEM = "race"
