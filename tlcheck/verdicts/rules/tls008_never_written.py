"""TLS008: no block writes a part of an output

## What it does

The kernel writes a tensor that it never reads, and no block of the grid writes some of its elements, whatever the
inputs.

## Why is this bad?

These elements keep what the tensor held before. A tensor made by `torch.empty`, or by TileLang for `out_idx`, holds
anything. It is a warning, since the caller may have filled the tensor, and an error with `--strict`.

The witness names the first such element, and how many there are.

## Example

1000 // 128 blocks write 896 of 1000 elements.

```python
@T.prim_func
def main(x: T.Tensor((1000,), "float32"), y: T.Tensor((1000,), "float32")):
    with T.Kernel(1000 // 128, threads=128) as bx:
        tx = T.get_thread_binding()
        y[bx * 128 + tx] = x[bx * 128 + tx]
```

## Use instead

Launch `T.ceildiv(size, tile)` blocks, or fill the tensor before the kernel runs.

## Limits

tlcheck notes the smallest and largest index of each write, so it misses a gap between them, such as one that a
stride leaves. It does not examine a kernel whose sizes it chose itself.
"""

PROBLEM = "source-unwritten"
