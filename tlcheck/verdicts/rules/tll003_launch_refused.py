"""TLL003: the lowered kernel asks for more than the device has

## What it does

The lowered kernel needs more threads in a block, more shared memory or a larger grid than the target has (CUDA C++
Programming Guide, "Compute Capabilities"). The source asks for less: TileLang has added threads for warp
specialization, or memory of its own.

## Why is this bad?

The compiler or the driver refuses the kernel, so its executed results say nothing about the device.

The witness names the amount and the limit.

## Example

With 0.1.15 a pipeline for sm_90 gets 128 more threads, for its copies, than the source launches.

```python
with T.Kernel(4, threads=1024) as bx:
    for k in T.Pipelined(8, num_stages=2):
        T.copy(A[bx * 64, k * 32], a)
```

## Use instead

Use smaller tiles, fewer threads or fewer stages of a pipeline. `tlcheck fix CASE` tries arguments and releases.
"""

PROBLEM = "launch"
