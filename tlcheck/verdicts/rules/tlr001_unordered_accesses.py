"""TLR001: nothing orders two accesses to shared memory

Two threads, or a thread and a bulk copy, access one element of shared memory, at least one of them writes something
else, and no barrier, mbarrier, wait or __syncwarp orders them (happens-before, in the execution as lowered of the
blocks that were run). The number that is read depends on which of them is first.

The witness names both accesses: thread, iteration, line of the TIR. Between them what is missing has to stand. Writing
the value that is there already counts as no conflict.

What to do: try another release of TileLang; put `T.sync_threads()` between the two statements.
"""

PROBLEM = "race"
