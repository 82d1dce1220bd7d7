"""TLL002: threads wait for what never happens

In the execution as lowered all threads of a block wait, at barriers or mbarriers, nothing is under way any more, and
none can go on. On a GPU the kernel hangs.

The witness names what they wait for.

What to do: `tlcheck fix CASE` looks for a pass configuration, an argument or a release that has it right;
`TL_DISABLE_WARP_SPECIALIZED` set to True is among what it tries.
"""

PROBLEM = "deadlock"
