"""TLA009: the addition is no longer atomic

## What it does

The kernel asks for an atomic, and the lowered code updates the destination by a plain store.

## Why is this bad?

Additions by other threads or blocks between the load and the store are lost.

The witness names one such addition: block, thread, lane and element.

## Example

Bad in 0.1.7 (sm_90): a tile of one element becomes `B[0] = f[0]`, from 0.1.6.post2 to 0.1.7.post3.

```python
@T.prim_func
def main(A: T.Tensor((1,), "float32"), B: T.Tensor((1,), "float32")):
    with T.Kernel(4, threads=128):
        f = T.alloc_fragment((1,), "float32")
        T.copy(A, f)
        T.atomic_add(B, f)
```

## Use instead

Good in 0.1.15 (sm_90): the same kernel.

Use a release that gets it right, or add single elements by a loop over threads.
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
