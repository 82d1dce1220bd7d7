"""TLA007: a lane writes outside the destination

## What it does

The address of a lane lies before the destination's memory or beyond its end. Causes: a tail without its guard, a
vector wider than the rest of the buffer, or a layout whose image is larger than the buffer.

## Why is this bad?

The atomic changes other memory, or the device stops the kernel.

The witness names one such addition: block, thread, lane and element.

## Example

Bad in 0.1.15 (sm_90): the last vector starts inside `B` and ends two elements beyond it. TileLang guards only the
first lane.

```python
@T.prim_func
def main(A: T.Tensor((512,), "float32"), B: T.Tensor((510,), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        T.atomic_addx4(B[tx * 4], A[tx * 4])
```

## Use instead

Good in 0.1.15 (sm_90): element by element; each lane has a guard of its own.

```python
@T.prim_func
def main(A: T.Tensor((512,), "float32"), B: T.Tensor((510,), "float32")):
    with T.Kernel(1, threads=128):
        for i in T.Parallel(512):
            T.atomic_add(B[i], A[i])
```

Or pad the buffer to whole vectors and tiles, or use a release that gets it right.
"""

from __future__ import annotations

from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken

BASIC = 50


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by a lane whose offset is negative or not below the buffer's size."""
    count = evidence.difference.outside if evidence.difference else None
    if count is None:
        return None
    what = f"{count.wrong} of {count.total} lanes write outside the buffer"
    return Broken(what, count.witness, "pad to whole tiles", count.site)
