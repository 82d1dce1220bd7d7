"""TLL001: an access that the machine forbids

## What it does

The lowered kernel does something that the machine forbids. The source does not, on the same inputs:

- an access out of the bounds of its buffer;
- an address that the instruction cannot take (vectors, cp.async, ldmatrix, bulk copies, tensor maps);
- an mbarrier that several threads make, or that gets more arrivals than it was made for;
- a barrier that fewer or more threads reach than it counts;
- wgmma on registers that another instruction wrote, without a `warpgroup_arrive` (wgmma.fence) after it;
- tensor memory that no tcgen05.alloc of the block returned, or that is not freed at the end;
- a shape that tcgen05.mma does not have.

## Why is this bad?

The device stops the kernel, hangs, or uses other memory.

The witness names block and thread.

## Example

In the TIR: thread 127 stores behind the end of `s`.

```python
s = T.alloc_buffer([128], "float32", scope="shared")
s[tx + 1] = A[tx]
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. On a GPU,
`tlcheck run --sanitize memcheck` shows the access.
"""

PROBLEM = "illegal"
