"""TLA006: an addition is never made

## What it does

No thread makes some of the intended additions: a loop was cut short, lanes were dropped with a cast, or the atomic is
gone.

## Why is this bad?

The sums are too small.

The witness names one such addition: block, thread, lane and element.

## Example

Bad in 0.1.7 (sm_90): the loop is shortened for vectors, but scalars are emitted; one of two elements is dropped.

```python
@T.prim_func
def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "bfloat16")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.atomic_add(C, c)
```

## Use instead

Good in 0.1.15 (sm_90): the same kernel.

Use a release that gets it right. Here, casting into a fragment of the destination's type first avoids the bug.
"""

from __future__ import annotations

from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken

BASIC = 70


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by an intended element that no lane of any site writes; or by an atomic that is gone without a trace."""
    if evidence.difference is not None:
        count = evidence.difference.missing
        if count is None:
            return None
        return Broken(f"{count.wrong} of {count.total} intended additions are never made", count.witness)
    gone = not (evidence.match.sites or evidence.match.orphans or evidence.calls or evidence.stored)
    if gone and evidence.first is not None and not subject.opaque(evidence.checkpoint):
        return Broken("nothing is added: the atomic is gone", evidence.first)
    return None
