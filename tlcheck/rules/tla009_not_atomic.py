"""TLA009: The addition is no longer atomic

The destination is updated by a plain store where the kernel asks for an atomic: additions of other threads or blocks
in between are lost.

No released wheel is known to do this; a new pass could.

Bad in 0.1.15 (sm_90), changed by hand: at the last checkpoint the atomic is replaced by a plain store of the sum.

```python
@T.prim_func
def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(4, threads=128):
        for i in T.Parallel(128):
            T.atomic_add(B[i], A[i])
```

Good in 0.1.15 (sm_90): the same kernel as it is lowered.

What to do: use a release that has it right.
"""

from __future__ import annotations

from tlcheck.analysis.evidence import Evidence
from tlcheck.analysis.subject import Subject
from tlcheck.rules.rule import Broken

BASIC = 10


def check(subject: Subject, evidence: Evidence) -> Broken | None:
    """Refuted by a plain store to the destination that the kernel does not have, where no atomic on it is left."""
    if evidence.match.sites or evidence.match.orphans or not evidence.stored or evidence.first is None:
        return None
    root = evidence.match.written[0].target.root
    return Broken(f"{root} is updated by a plain store", evidence.first)
