"""TLL002: threads wait for what never happens

All threads of a block wait at barriers or mbarriers, no copy is under way any more, and none of them can go on. So it
is in the execution of the lowered kernel; on a GPU the kernel hangs. The source comes to its end.

The witness names what they wait for.

What to do: `tlcheck fix CASE` looks for a pass configuration, an argument or a release that has it right;
`TL_DISABLE_WARP_SPECIALIZED` set to True is among what it tries.
"""

PROBLEM = "deadlock"
