"""TLO002: an output depends on memory that is not there yet

## What it does

tlcheck marks memory of the lowered kernel as poison:

- until something writes it;
- the target of an asynchronous copy, from its start until somebody waits for it;
- an accumulator of wgmma, until its group is waited for.

Poison passes through arithmetic. This rule finds an output that it has reached.

## Why is this bad?

The output depends on timing, or on old contents of memory. On a GPU the numbers may be right most of the time.

The witness names the element of the output, and the memory that was read too early.

## Example

In the TIR: nothing waits for the copy before `s` is read.

```python
T.ptx_cp_async(s[tx * 4], A[tx * 4], 16)
B[tx] = s[tx]
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. A pipeline
with fewer stages (`num_stages`) has fewer copies to wait for.
"""

PROBLEM = "poison"
