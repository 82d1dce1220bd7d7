"""TLA005: An element is added more often than intended

Some additions happen twice or more: registers that several threads replicate are added by each of them, a tail runs
into the next row, an atomic's result is substituted where it is used, or a loop was duplicated.

Bad in 0.1.7 (sm_90): 64 elements on 128 threads; each is held, and added, by two of them.

```python
@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((64,), "float32")
        T.copy(A, f)
        T.atomic_add(B, f)
```

Good in 0.1.15 (sm_90): the same kernel; one of the two threads adds.

What to do: use a release that has it right; a tile of at least as many elements as threads is not replicated, nor is
one in shared memory.
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
    what = f"{count.wrong} of {count.total} additions are more than what is intended"
    return Broken(what, count.witness, site=count.site)
