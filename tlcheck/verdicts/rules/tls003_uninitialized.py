"""TLS003: the source reads memory that nothing has set

Registers, fragments and shared memory hold no zeros when a block begins. The source reads an element before anything
has set it, and elements of an output depend on it.

The witness names the first read. An output that no statement writes, and the contents of tensors that the caller
passes, are not meant. A shuffle that reads a lane that takes no part has no value either (PTX, `shfl.sync`). Where
numbers that tlcheck drew decide what is set or read, it is undecided: declare `inputs` in the case.

Bad: `T.gemm` adds to `C_local`, which nothing has set.

```python
C_local = T.alloc_fragment((64, 64), "float32")
for k in T.Pipelined(4, num_stages=2):
    T.copy(A[by * 64, k * 32], A_shared)
    T.copy(B[k * 32, bx * 64], B_shared)
    T.gemm(A_shared, B_shared, C_local)
```

What to do: `T.clear` or `T.fill` the buffer before the first read, or set `clear_accum=True` in the first `T.gemm`.
"""

PROBLEM = "source-uninitialized"
