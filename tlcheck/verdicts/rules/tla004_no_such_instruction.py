"""TLA004: the device has no such vector atomic

## What it does

This rule finds a vector atomic that the arch or the device library does not have. They have:

- 2 and 4 lanes of float32, on sm_90 and later, in global memory only. For older archs, releases from 0.1.7 on split
  such an atomic into scalars.
- 2 lanes of float16 and bfloat16, and from 0.1.12 on 4. From 0.1.7.post3 to 0.1.11 the library adds 4 lanes as if
  they were float32.

The rule also finds a vector atomic that gets one value instead of one for each lane.

## Why is this bad?

The kernel stops with an error, or adds wrong numbers.

The witness names one such addition: block, thread, lane and element.

## Example

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

## Use instead

Good in 0.1.15 (sm_90): the same kernel; atomics on shared float32 stay scalar.

Use a release that gets it right, or write the loop over threads by hand, so that it is not vectorized.
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
