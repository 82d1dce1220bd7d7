"""TLS009: the source asks for more than the device has

The source launches more threads in a block than the target has, a grid that is too large along an axis, or its tiles,
with the stages of its pipelines, need more shared memory than a block may have (CUDA C++ Programming Guide, "Compute
Capabilities"). A kernel that calls `T.sync_grid()` is launched cooperatively: all of its blocks have to be resident at
once. The compiler or the driver refuses such a kernel. Warps that ask with `T.set_max_nreg` for more registers than a
block has wait for ever (PTX ISA, "setmaxnreg").

The limits are those of the arch; the number of multiprocessors is that of its usual part. Where the size of the grid
depends on symbolic shapes, tlcheck looks at it with the sizes of the case's own `inputs` only.

The witness names what is asked for and the limit.

Bad: 2048 threads in a block.

```python
with T.Kernel(T.ceildiv(N, 2048), threads=2048) as bx:
```

What to do: at most 1024 threads in a block; the longest axis of the grid first; smaller tiles or fewer stages.
"""

PROBLEM = "source-launch"
