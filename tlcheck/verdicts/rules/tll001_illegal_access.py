"""TLL001: an access that the machine forbids

An access as lowered is out of the bounds of its buffer, or its address is no multiple of what the instruction needs
(vectors, cp.async, ldmatrix, bulk copies, tensor maps); several threads make an mbarrier, or more arrive at it than it
was made for; not as many threads reach a barrier as it counts; wgmma uses registers with no `warpgroup_arrive`
(wgmma.fence) after something else has written them; tensor memory is accessed that no tcgen05.alloc of the block gave
it, or is not freed at the end; tcgen05.mma has a shape that there is not. The kernel as written does nothing of that
kind on the same inputs.

The witness names block and thread.

What to do: `tlcheck fix CASE` looks for a pass configuration, an argument or a release that has it right; on a GPU,
`tlcheck run --sanitize memcheck` shows the access.
"""

PROBLEM = "illegal"
