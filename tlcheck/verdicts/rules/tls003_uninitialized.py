"""TLS003: the source reads memory that nothing has set

## What it does

The source reads an element of registers, a fragment or shared memory before anything has set it, and elements of an
output depend on it.

## Why is this bad?

When a block begins, this memory holds arbitrary values, not zeros.

The witness names the first read.

## Example

`T.gemm` adds to `C_local`, which nothing has set.

```python
C_local = T.alloc_fragment((64, 64), "float32")
for k in T.Pipelined(4, num_stages=2):
    T.copy(A[by * 64, k * 32], A_shared)
    T.copy(B[k * 32, bx * 64], B_shared)
    T.gemm(A_shared, B_shared, C_local)
```

## Use instead

`T.clear` or `T.fill` the buffer before the first read, or set `clear_accum=True` in the first `T.gemm`.

## Limits

A shuffle from a lane that takes no part reads an undefined value too (PTX, `shfl.sync`). tlcheck does not report an
output that no statement writes, nor what the caller's tensors hold. If random inputs decide what is set or read, the
read is undecided: declare `inputs` in the case.
"""

PROBLEM = "source-uninitialized"
