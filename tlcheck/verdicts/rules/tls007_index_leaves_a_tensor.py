"""TLS007: an index leaves a tensor

A plain index such as `x[i + 1]` is out of the bounds of a global tensor. TileLang guards it: the access reads 0, or the
value of `T.annotate_safe_value`, and a store is dropped. The kernel is well defined, and often not what was meant: a
warning, which is an error with `--strict`.

A tail is right and not reported: the last block is larger than what is left, and leaves its tensors in the whole
statement. A statement is reported where the index is negative, or misses element 0 and goes beyond the end, as
`x[i + 1]` does; where it stores a 0 that was read out of bounds; and where it drops what it has read in bounds. Tile
operators such as `T.copy` are not meant, nor an index that depends on numbers that tlcheck drew.

The witness names the element, the shape of the tensor, and the thread or iteration.

Bad: the last thread reads `x[4096]`, and stores 0.

```python
@T.prim_func
def main(x: T.Tensor((4096,), "float32"), y: T.Tensor((4096,), "float32")):
    with T.Kernel(32, threads=128) as bx:
        tx = T.get_thread_binding()
        y[bx * 128 + tx] = x[bx * 128 + tx + 1]
```

What to do: guard the statement with `if`, or say with `T.if_then_else` what is read out of bounds.
"""

PROBLEM = "source-stray"
