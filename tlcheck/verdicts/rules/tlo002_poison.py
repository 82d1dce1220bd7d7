"""TLO002: an output depends on memory that is not ready

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

0.1.15 runs the later loops in the threads of the shorter loop only.

```python
for i in T.Parallel(100):
    f[i] = f[i] + 5
for i in T.Parallel(256):
    C[i] = f[i] + 1
```

```
$ tlcheck check kernels.py::loop --arch sm_80 --no-why
kernels.py:63: TLO002 poison: C depends on what was never written, or is still under way
   [TileLang 0.1.15, sm_80]
     63 | C[i] = f[i] + 1
   C[100] is never stored, which the source does at line 63, nor are 155 other elements: its store
   stands in `if tx < 100` (TIR line 7)
   C[100] is undefined (never written), should be 3.0 (inputs of seed 0; 156 elements differ)
   kernel: kernels.py::loop
   blame: TileLang 0.1.15 (tl.LayoutInference)
   help: `tlcheck fix kernels.py::loop --arch sm_80 --toolchain pinned` looks for a workaround;
         `tlcheck explain TLO002`

1 bug in TileLang
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. A pipeline
with fewer stages (`num_stages`) has fewer copies to wait for.
"""

PROBLEM = "poison"
