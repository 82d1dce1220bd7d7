"""TLA009: The addition is no longer atomic

The destination is updated by a plain store where the kernel asks for an atomic: additions of other threads or blocks
in between are lost.

Bad in 0.1.7 (sm_90): a tile of one element becomes `B[0] = f[0]`, from 0.1.6.post2 to 0.1.7.post3.

```python
@T.prim_func
def main(A: T.Tensor((1,), "float32"), B: T.Tensor((1,), "float32")):
    with T.Kernel(4, threads=128):
        f = T.alloc_fragment((1,), "float32")
        T.copy(A, f)
        T.atomic_add(B, f)
```

Good in 0.1.15 (sm_90): the same kernel.

What to do: use a release that has it right; before that, add single elements by a loop over threads.
"""

from __future__ import annotations

from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken

BASIC = 10


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by a plain store to the destination that the kernel does not have, where no atomic on it is left."""
    if evidence.match.sites or evidence.match.orphans or not evidence.stored or evidence.first is None:
        return None
    root = evidence.match.source[0].target.root
    return Broken(f"{root} is updated by a plain store", evidence.first)
