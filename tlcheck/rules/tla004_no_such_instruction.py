"""TLA004: The device has no such vector atomic

Vector atomics exist for float32 (2 and 4 lanes) on sm_90 and later, in global memory only, and for float16 and
bfloat16 (2 lanes, or 4 as a vector of pairs). From 0.1.9 on, TileLang's device library falls back to scalar atomics
for float32 before sm_90; nothing helps in shared memory.

Bad in 0.1.14 (sm_90): an instruction for global memory with an address in shared memory.

```python
@T.prim_func
def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((512,), "float32")
        T.clear(s)
        for i in T.Parallel(512):
            T.atomic_add(s[i], A[i])
        T.copy(s, B)
```

Good in 0.1.15 (sm_90): the same kernel; atomics on shared float32 stay scalar.

What to do: use a release that has it right; before that, write the loop over threads by hand, so that it is not
vectorized.
"""

from __future__ import annotations

from tlcheck.analysis.evidence import Evidence
from tlcheck.analysis.subject import Subject
from tlcheck.rules.rule import Broken

BASIC = 15
FALLBACK = (0, 1, 9)  # first release whose device library has float32 vectors before sm_90, as scalars
_PAIRS = frozenset(("float16", "bfloat16"))


def check(subject: Subject, evidence: Evidence) -> Broken | None:
    """Refuted by the instruction itself: its width, type, memory or arch."""
    for site in evidence.match.sites:
        if site.width == 1 or site.tma or evidence.first is None:
            continue
        scope = site.target.buffer.scope
        if not scope and site.target.root in subject.memory.declared:
            scope = subject.memory.declared[site.target.root].scope
        why = _missing(subject, site.operation, site.target.dtype, scope)
        if why:
            return Broken(f"{site.instruction} on {site.target.dtype} {why}", evidence.first)
    return None


def _missing(subject: Subject, operation: str, dtype: str, scope: str) -> str:
    if operation != "add" or dtype not in (*_PAIRS, "float32"):
        return "does not exist"
    if dtype == "float32" and scope.startswith("shared"):
        return "exists for global memory only, the destination is shared memory"
    if dtype == "float32" and subject.arch < 90 and subject.release < FALLBACK:
        return f"exists from sm_90 on, the target is {subject.snapshot.target}"
    return ""
