"""TLS007: an index is outside its tensor

## What it does

A plain index such as `x[i + 1]` is out of the bounds of a global tensor. A statement is reported if

- its index is negative, or begins above 0 and goes beyond the end, as `i + 1` does;
- it stores a 0 that was read out of bounds;
- it stores a value that was read in bounds, but to an index out of bounds.

## Why is this bad?

TileLang guards the access: a read gives 0, or the value of `T.annotate_safe_value`, and a store is dropped. The kernel
is well defined, but perhaps not what you meant. So this is a warning, and an error with `--strict`.

The witness names the element, the shape of the tensor, and the thread or iteration.

## Example

The last thread reads `x[4096]`, and stores 0.

```python
@T.prim_func
def main(x: T.Tensor((4096,), "float32"), y: T.Tensor((4096,), "float32")):
    with T.Kernel(32, threads=128) as bx:
        tx = T.get_thread_binding()
        y[bx * 128 + tx] = x[bx * 128 + tx + 1]
```

## Use instead

Guard the statement with `if`, or give the value out of bounds with `T.if_then_else`.

## Limits

A tail, where the last tile reaches beyond the end of every tensor in the statement, is not reported. Nor are tile
operators such as `T.copy`, or indices that depend on random inputs.
"""

PROBLEM = "source-stray"
