"""TLA008: The atomic goes to other memory than the kernel says

A pass replaced the destination by a copy in registers or shared memory: the atomic updates the copy, and the memory that
the kernel names is never updated.

Bad in 0.1.12:

```python
@T.prim_func
def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "bfloat16")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.atomic_add(C, c)
```

Good in 0.1.15: the same kernel.

What to do: use a release that has it right; casting into a fragment of the destination's type first avoids it.
"""

from __future__ import annotations

from tlcheck.analysis.evidence import Evidence
from tlcheck.analysis.subject import Subject
from tlcheck.rules.rule import Broken

BASIC = 5


def check(subject: Subject, evidence: Evidence) -> Broken | None:
    """Refuted by an atomic that does the same on memory of another kind, where none is left on the destination."""
    if evidence.match.sites or not evidence.match.orphans or evidence.first is None:
        return None
    for orphan, scope in zip(evidence.match.orphans, evidence.scopes, strict=True):
        if scope.startswith(("local", "shared")):
            kind = "registers" if scope.startswith("local") else "shared memory"
            root = evidence.match.written[0].target.root
            return Broken(
                f"the atomic goes to {orphan.target.root} in {kind}; {root} is never updated",
                evidence.first,
                "cast the source into a fragment of the destination's type before the atomic",
            )
    return None
