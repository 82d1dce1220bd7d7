"""TLL002: threads wait for what never happens

In the execution as lowered all threads of a block wait, at barriers or mbarriers, nothing is under way any more, and
none can go on. On a GPU the kernel hangs.

The witness names what they wait for.

What to do: try another release of TileLang, or with `TL_DISABLE_WARP_SPECIALIZED` set to True.
"""

PROBLEM = "deadlock"
