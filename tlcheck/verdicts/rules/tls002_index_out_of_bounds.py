"""TLS002: an index of the source is out of bounds

## What it does

The source accesses an element that its shared memory, registers or fragment lacks. Or an atomic reads outside a tensor.
Or TileLang counts a negative index of a tensor from the end, as it proves its sign from the branch around it. Or
`T.annotate_layout` puts an element at a negative index, before the memory of its tile.

## Why is this bad?

TileLang guards plain accesses of tensors, and drops the atomic. This access touches memory that does not exist. At a
negative index of a tensor TileLang reads 0 or another element: that depends on what it can prove.

The witness names the element, the shape of the buffer, and the thread or iteration.

## Example

The last thread reads `s[128]`.

```python
@T.prim_func
def main(x: T.Tensor((4096,), "float32"), y: T.Tensor((4096,), "float32")):
    with T.Kernel(32, threads=128) as bx:
        tx = T.get_thread_binding()
        s = T.alloc_shared((128,), "float32")
        s[tx] = x[bx * 128 + tx]
        y[bx * 128 + tx] = s[tx + 1] - s[tx]
```

## Use instead

Guard the index, or make the buffer larger.

## Limits

An index that depends on random inputs is undecided: declare `inputs` in the case.
"""

PROBLEM = "source-bounds"
