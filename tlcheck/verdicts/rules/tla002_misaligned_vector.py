"""TLA002: A vector atomic is not aligned to its width

An atomic of N lanes needs an address that is a multiple of N elements. On the device a misaligned one ends the kernel
with "misaligned address", or is split silently. Where the device library makes scalars or pairs of it (float32 before
sm_90, four lanes of 16 bits before sm_90) only what these need counts.

Bad in 0.1.15 (sm_90): every address is a multiple of 4, plus 1.

```python
@T.prim_func
def main(A: T.Tensor((512,), "float32"), B: T.Tensor((516,), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        T.atomic_addx4(B[tx * 4 + 1], A[tx * 4])
```

Good in 0.1.15 (sm_90):

```python
@T.prim_func
def main(A: T.Tensor((512,), "float32"), B: T.Tensor((516,), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        T.atomic_addx4(B[tx * 4 + 4], A[tx * 4])
```

TileLang's own vectors can break it too: half of those that 0.1.7 makes of the kernel of TLA001 start at an odd
element.

What to do: start the tile at a multiple of the vector's width, or pad the row pitch to one.
"""

from __future__ import annotations

from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken

BASIC = 30


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by an instruction whose first lane is not at a multiple of the width."""
    count = evidence.difference.misaligned if evidence.difference else None
    if count is None:
        return None
    site = evidence.match.sites[count.site]
    destination, source = site.aligned
    fails = f"are not aligned to {destination} elements"
    if (count.witness.written or 0) % destination == 0:
        fails = f"read values that are not aligned to {source} elements"
    what = f"{count.wrong} of {count.total} {site.instruction} {fails}"
    moved = count.witness.written != count.witness.intended
    own = not moved and any(intended.width == site.width for intended in evidence.match.source)
    return Broken(what, count.witness, "start the tile at a multiple of the vector's width", count.site, own)
