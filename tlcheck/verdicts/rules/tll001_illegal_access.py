"""TLL001: an access that the machine forbids

An access as lowered is out of the bounds of its buffer, a bulk copy is no multiple of 16 bytes, or more threads arrive
at an mbarrier than it was made for, while the kernel as written does nothing of that kind on the same inputs.

The witness names block and thread.

What to do: try another release of TileLang; run the kernel under `tlcheck run --sanitize memcheck`.
"""

PROBLEM = "illegal"
