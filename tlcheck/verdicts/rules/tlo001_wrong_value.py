"""TLO001: an output does not have the source's value

## What it does

tlcheck executes the kernel twice on the CPU with the same inputs: the source, and the lowered kernel as the GPU would
run it. Both compute in float64. This rule finds an element of an output that differs by more than rounding.
To tell the two apart, tlcheck runs the source again with tiny changes of all numbers. If they cause the same
difference, it is rounding.

## Why is this bad?

The kernel does not compute what is written.

The witness names the element, both values, and the inputs. `--seed S --block X,Y,Z` executes only these.

## Example

0.1.9 makes one vector of eight additions to one element. All lanes read the element before any of them stores.

```python
O[tx] = T.float16(0)
for k in T.vectorized(8):
    O[tx] = O[tx] + A[tx, k]
```

```
$ tlcheck check kernels.py::sums --arch sm_80 --toolchain 0.1.9 --no-why
kernels.py:96: TLO001 wrong-value: O is wrong   [TileLang 0.1.9, sm_80]
     96 | O[tx] = O[tx] + A[tx, k]
   O[0] is read at line 96 (thread 0, TIR line 7) before the store at line 96, which comes first
   in the source
   O[0] is 0.0, should be 11.0 (inputs of seed 0; 64 elements differ)
   missing twice: 1.0 by block (0, 0, 0), k = 3 (line 96), and again by k = 4 (line 96)
   missing: 2.0 by block (0, 0, 0), k = 2 (line 96)
   missing: 3.0 by block (0, 0, 0), k = 1 (line 96)
   missing: 4.0 by block (0, 0, 0), k = 0 (line 96)
   kernel: kernels.py::sums
   blame: TileLang 0.1.9
   help: `tlcheck fix kernels.py::sums --arch sm_80 --toolchain 0.1.9` looks for a workaround;
         `tlcheck explain TLO001`

1 bug in TileLang
```

The value should be a sum of eight numbers. Each `missing` line shows one that the lowered kernel did not add (`missing
twice`: two equal ones).

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. `tlcheck
bisect CASE --passes` finds the pass. `tlcheck run` compares the kernel with a reference on a GPU.
"""

PROBLEM = "differs"
