"""TLS008: no block writes a part of an output

The kernel writes a tensor that it never reads, and no block of the grid writes some of its elements, whatever the
inputs: they keep what the tensor held before. A tensor that PyTorch made with `torch.empty`, or TileLang for `out_idx`,
holds anything. A warning, which is an error with `--strict`, since the caller may have filled the tensor.

tlcheck puts each write of each block into a box of indices, and reports what lies in no box. Elements between those of
a stride are not seen. A kernel whose sizes tlcheck chose is not looked at.

The witness names the first such element, and how many there are.

Bad: 1000 // 128 blocks write 896 of 1000 elements.

```python
@T.prim_func
def main(x: T.Tensor((1000,), "float32"), y: T.Tensor((1000,), "float32")):
    with T.Kernel(1000 // 128, threads=128) as bx:
        tx = T.get_thread_binding()
        y[bx * 128 + tx] = x[bx * 128 + tx]
```

What to do: launch `T.ceildiv(size, tile)` blocks, or fill the tensor before the kernel runs.
"""

PROBLEM = "source-unwritten"
