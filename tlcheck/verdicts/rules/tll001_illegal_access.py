"""TLL001: an access that the machine forbids

The lowered kernel does something that the machine forbids, and the source does not, on the same inputs:

- an access out of the bounds of its buffer;
- an address that is no multiple of what the instruction needs (vectors, cp.async, ldmatrix, bulk copies, tensor maps);
- an mbarrier that several threads make, or at which more threads arrive than it was made for;
- a barrier that fewer or more threads reach than it counts;
- wgmma on registers with no `warpgroup_arrive` (wgmma.fence) after something else has written them;
- tensor memory that no tcgen05.alloc of the block gave it, or that is not freed at the end; a shape that tcgen05.mma
  does not have.

The witness names block and thread.

What to do: `tlcheck fix CASE` looks for a pass configuration, an argument or a release that has it right; on a GPU,
`tlcheck run --sanitize memcheck` shows the access.
"""

PROBLEM = "illegal"
