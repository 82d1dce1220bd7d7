"""TLS002: an index of the source is out of bounds

## What it does

The source has one of these faults:

- It accesses an element that its shared memory, registers or fragment lacks.
- An atomic reads outside a tensor.
- An index of a tensor is negative, and an output depends on whether TileLang counts it from the end.
- An index of a tensor is out of bounds wherever its statement runs, and the lowered kernel stops there.
- `T.annotate_layout` puts an element at a negative index, before the memory of its tile.

## Why is this bad?

TileLang guards plain accesses of tensors, and drops the atomic. It does not guard a constant index. This access touches
memory that does not exist.

TileLang counts a negative index from the end of a tensor if it can prove the sign, from the branch around it for
example. Else it guards the index, and reads 0. A negative constant always counts from the end, and is no fault.

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

An index that depends on random inputs or sizes is undecided: declare `inputs` in the case.
"""

PROBLEM = "source-bounds"
