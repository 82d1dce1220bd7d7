"""TLS009: the source asks for more than the device has

## What it does

The source launches more threads in a block than the target has, a grid that is too large along an axis, or tiles
(with the stages of their pipelines) that need more shared memory than a block may have (CUDA C++ Programming Guide,
"Compute Capabilities").

A kernel with `T.sync_grid()` is launched cooperatively, so all of its blocks must be resident at once.

## Why is this bad?

The compiler or the driver refuses such a kernel. Warps that ask with `T.set_max_nreg` for more registers than a block
has wait forever (PTX ISA, "setmaxnreg").

The witness names the amount and the limit.

## Example

2048 threads in a block.

```python
with T.Kernel(T.ceildiv(N, 2048), threads=2048) as bx:
```

## Use instead

Launch at most 1024 threads in a block. Put the longest axis of the grid first. Use smaller tiles or fewer stages.

## Limits

The limits are those of the arch. For `T.sync_grid()`, tlcheck counts the multiprocessors of the arch's usual GPU
(108 for the A100). If the size of the grid depends on symbolic shapes, tlcheck uses only the sizes of the case's own
`inputs`.
"""

PROBLEM = "source-launch"
