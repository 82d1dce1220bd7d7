"""TLA008: the atomic updates memory that the kernel does not name

## What it does

A pass replaced the destination by a copy in registers or shared memory. The atomic updates the copy.

## Why is this bad?

The memory that the kernel names is never updated.

The witness names one such addition: block, thread, lane and element.

## Example

Bad in 0.1.13 (sm_90): two elements of `B` are read into registers; the sums are made there and lost.

```python
@T.prim_func
def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "bfloat16")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((512,), "float32")
        T.copy(A, f)
        for i in T.Parallel(512):
            T.atomic_add(B[i], T.cast(f[i], "bfloat16"))
```

## Use instead

Good in 0.1.15 (sm_90): the same kernel.

Use a release that gets it right. Casting into a fragment of the destination's type first avoids the bug.
"""

from __future__ import annotations

from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken

BASIC = 5


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by an atomic that does the same on memory of another kind, where none is left on the destination."""
    if evidence.match.sites or not evidence.match.orphans or evidence.first is None:
        return None
    root = evidence.match.source[0].target.root
    for orphan, scope in zip(evidence.match.orphans, evidence.scopes, strict=True):
        if scope.startswith(("local", "shared")):
            kind = "registers" if scope.startswith("local") else "shared memory"
            return Broken(
                f"the atomic goes to {orphan.target.root} in {kind}; {root} is never updated",
                evidence.first,
                "cast the source into a fragment of the destination's type before the atomic",
            )
        if orphan.target.root in subject.memory.declared:
            return Broken(f"the atomic goes to {orphan.target.root}; {root} is never updated", evidence.first)
    return None
