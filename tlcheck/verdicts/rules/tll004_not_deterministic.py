"""TLL004: one release lowers one kernel in several ways

## What it does

With `--repeat`, tlcheck lowers the kernel again in a fresh process, by the same release, with the same arguments and
pass configurations. This rule finds a kernel whose TIR differs then.

## Why is this bad?

Chance decides which of the forms (versions of the lowered kernel) you run. The cause is a search inside a pass that
ends at a time limit, or a container ordered by addresses. tlcheck judges each form and reports the worst one.

The witness counts the forms, and names the first difference between the two most frequent ones.

## Example

Two of three lowerings give one form, the third another.

```python
@tilelang.jit
def gemm(M=64, N=64, K=64): ...
```

```
$ tlcheck check k.py --quick --repeat 3
k.py:6: TLL004 not-deterministic (hazard): lowered 3 times by one release, it has 2 forms
   [TileLang 0.1.15, sm_90]
      6 | @tilelang.jit   the kernel begins here; the line is not known
   kernel: k.py::gemm
   blame: TileLang 0.1.15
   help: pin another release; check the kernel with --repeat in CI; `tlcheck fix k.py::gemm --arch
         sm_90 --toolchain pinned --quick` looks for a workaround; `tlcheck explain TLL004`
```

## Use instead

Pin another release. Until then, compare measurements of this kernel with care, and check it with `--repeat` in CI.
"""

PROBLEM = "repetition"
