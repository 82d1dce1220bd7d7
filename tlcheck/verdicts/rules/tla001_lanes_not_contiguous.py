"""TLA001: the lanes of a vector atomic are not contiguous in the destination's memory

## What it does

`AtomicAddx2` and `AtomicAddx4` add 2 or 4 values to consecutive elements of memory. This rule finds one whose
intended elements are not consecutive, because the destination has an annotated layout, or because its index does not
depend on the vectorized variable.

## Why is this bad?

All lanes but the first are added to elements that belong to others. The intended elements are never updated.

The witness names one lane, its intended element and offset, and the offset that it is added to.

## Example

Bad in 0.1.7 (sm_90): two neighbours of a row are 32 elements apart in `D`.

```python
@T.prim_func
def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), D: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.annotate_layout({D: T.Layout(D.shape, lambda l, d: [l // 8, d // 8, d % 2, 4 * (l % 8) + (d % 8) // 2])})
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.atomic_add(D, c)
```

## Use instead

Good in 0.1.15 (sm_90): the same kernel; every element has an atomic of its own.

Use a release that gets it right, or annotate a layout whose innermost physical dimension is the one along which the
source's registers run.
"""

from __future__ import annotations

from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken

BASIC = 20


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by a lane whose intended element is not at the instruction's address plus the lane's number."""
    count = evidence.difference.lanes if evidence.difference else None
    if count is None:
        return None
    stride = count.witness.stride
    apart = "" if stride is None else f"; its lanes belong {stride} elements apart"
    if stride == 0:
        apart = "; its lanes all belong to one element"
    site = evidence.match.sites[count.site]
    return Broken(
        f"{count.wrong} of {count.total} lanes of {site.instruction} are added to another element than intended{apart}",
        count.witness,
        "make the destination's index contiguous in the vectorized dimension, or keep the loop from being vectorized",
        count.site,
    )
