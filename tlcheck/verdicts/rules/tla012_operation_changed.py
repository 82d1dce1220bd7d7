"""TLA012: the atomic performs a different operation

## What it does

The kernel names one operation and the lowered atomic performs another, such as a maximum instead of an addition. No
release is known to do this; a new pass could.

## Why is this bad?

The destination holds a maximum, say, where the kernel asks for a sum.

The witness names one such addition: block, thread, lane and element.

## Example

Bad in 0.1.15 (sm_90), changed by hand: at the last checkpoint the atomic takes the maximum.

```python
@T.prim_func
def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(4, threads=128):
        for i in T.Parallel(128):
            T.atomic_add(B[i], A[i])
```

## Use instead

Good in 0.1.15 (sm_90): the same kernel, as TileLang lowers it.

Use a release that gets it right.
"""

from __future__ import annotations

from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken

BASIC = 12


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by an atomic on the destination that does what none of those written there does."""
    wanted = {w.operation for w in evidence.match.source}
    for site in evidence.match.sites:
        if site.operation not in wanted:
            return Broken(f"{site.instruction} where the kernel says {' or '.join(sorted(wanted))}", evidence.first)
    return None
