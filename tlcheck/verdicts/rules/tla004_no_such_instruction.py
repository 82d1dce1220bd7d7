"""TLA004: The device has no such vector atomic

Vector atomics exist for float32 (2 and 4 lanes) on sm_90 and later, in global memory only, and for float16 and
bfloat16 (2 lanes, and from 0.1.12 on 4). Before sm_90 TileLang's device library makes scalar atomics of float32
vectors, from 0.1.7 on. From 0.1.7.post3 to 0.1.11 it adds 4 lanes of 16 bits as if they were float32. A vector atomic
that is given one value instead of one for each lane has no meaning either.

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

from tlcheck.program.device_library import STOPS
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.library import broken_call
from tlcheck.verdicts.rules.rule import Broken

BASIC = 15


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by the call itself, which stops, or has one value for several lanes."""
    sites = evidence.match.sites
    for number, made in subject.calls(sites, evidence.checkpoint):
        if made.missing:
            site = sites[number]
            return Broken(f"{site.instruction} on {site.target.dtype} {made.missing}", evidence.first, site=number)
    return broken_call(subject, evidence, STOPS)
