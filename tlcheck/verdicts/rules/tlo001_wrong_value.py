"""TLO001: an output does not have the source's value

## What it does

tlcheck executes the kernel twice on the CPU with the same inputs: the source, and the lowered kernel as the GPU would
run it. Both compute in float64. This rule finds an element of an output that differs by more than rounding. A
difference that a small change of every input also makes does not count.

## Why is this bad?

The kernel does not compute what is written.

The witness names the element, both values, and the inputs. `--seed S --block X,Y,Z` executes only these.

## Example

`T.cumsum` down the columns confuses rows and columns of a tile that is not square, in releases up to 0.1.10.

```python
s = T.alloc_shared((64, 32), "float32")
T.copy(A, s)
T.cumsum(s, dim=0)
T.copy(s, B)
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. `tlcheck
bisect CASE --passes` finds the pass. `tlcheck run` compares the kernel with a reference on a GPU.
"""

PROBLEM = "differs"
