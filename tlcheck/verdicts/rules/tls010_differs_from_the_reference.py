"""TLS010: the source differs from the case's reference

## What it does

The case has `inputs` and a `reference`. tlcheck executes the source on these inputs and compares each output with the
reference, as [`tlcheck run`](../run.md#what-is-compared) does.

## Why is this bad?

TileLang compiled what is written, and that is not what was meant. If the kernel agrees with the reference in the
release before or after, the front end of this release is to blame, and `check` says so.

The witness names the first wrong element, with both values.

## Example

The reference multiplies by 2.

```python
@T.prim_func
def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            B[bx * 128 + i] = A[bx * 128 + i] * 3.0
```

## Use instead

Fix the kernel, or the reference. `tlcheck trace CASE` follows the element back to its inputs.

## Limits

Only the blocks that ran are compared. If other blocks may add to an output, a note says so: `--blocks all` compares
all. If the reference needs more than 20 processor seconds, it is not compared.
"""

PROBLEM = "source-reference"
