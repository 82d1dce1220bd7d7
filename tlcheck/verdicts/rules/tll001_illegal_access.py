"""TLL001: an access that the machine forbids

## What it does

On inputs for which the source is legal, the lowered kernel does something that the machine forbids:

- an access out of the bounds of its buffer;
- an address that the instruction cannot take (vectors, cp.async, ldmatrix, bulk copies, tensor maps);
- an mbarrier that several threads make, or that gets more arrivals than it was made for;
- a barrier that fewer or more threads reach than it counts;
- wgmma on registers that another instruction wrote, without a `warpgroup_arrive` (wgmma.fence) after it;
- tensor memory that no tcgen05.alloc of the block returned, or that is not freed at the end;
- a shape that tcgen05.mma does not have.

## Why is this bad?

The device stops the kernel, hangs, or uses other memory.

The witness names the block and the thread.

## Example

A store of 4 elements needs 4 threads. The guard of 0.1.7.post3 lets 8 threads store.

```python
for k in T.serial(64):
    for i in T.Parallel(4):
        s[i, k] = f[i]
```

```
$ tlcheck check kernels.py::store --arch sm_80 --toolchain 0.1.7.post3 --no-why
kernels.py:80: TLL001 illegal-access: access of s out of bounds   [TileLang 0.1.7.post3, sm_80]
     80 | s[i, k] = f[i]   block (0, 0, 0), thread 4, TIR line 11
   s[256] is accessed at line 80 (thread 4, TIR line 11); s has the shape [256]
   kernel: kernels.py::store
   blame: TileLang 0.1.7.post3 (tl.LowerTileOp)
   help: `tlcheck fix kernels.py::store --arch sm_80 --toolchain 0.1.7.post3` looks for a
         workaround; `tlcheck explain TLL001`

1 bug in TileLang
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. On a GPU,
`tlcheck run --sanitize memcheck` shows the access.
"""

PROBLEM = "illegal"
