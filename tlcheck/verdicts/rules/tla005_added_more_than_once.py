"""TLA005: an addition is made more often than intended

## What it does

Some additions happen twice or more. Causes: each of several threads adds a register that they all hold; a tail runs
into the next row; an atomic is repeated at each use of its result; a loop is duplicated.

## Why is this bad?

The sums are too large.

The witness names one such addition: block, thread, lane and element.

## Example

Bad in 0.1.7 (sm_90): 64 elements on 128 threads; two threads hold, and add, each of them.

```python
@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((64,), "float32")
        T.copy(A, f)
        T.atomic_add(B, f)
```

## Use instead

Good in 0.1.15 (sm_90): the same kernel; one of the two threads adds.

Use a release that gets it right. A tile in shared memory, or one with at least as many elements as threads, is not
replicated.
"""

from __future__ import annotations

from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken

BASIC = 60


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by a lane that adds what was added before, or what nobody meant."""
    count = evidence.difference.repeated if evidence.difference else None
    if count is None:
        return None
    what = f"{count.wrong} of {count.total} additions are more than intended"
    return Broken(what, count.witness, site=count.site)
