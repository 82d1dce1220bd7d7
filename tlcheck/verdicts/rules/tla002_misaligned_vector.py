"""TLA002: a vector atomic is not aligned to its width

## What it does

An atomic of N lanes needs an address that is a multiple of N elements. This rule finds one whose address is
not such a multiple.

The device library splits some atomics into scalars or pairs: before sm_90, those of float32 and of four 16-bit lanes.
Then only the alignment of the parts counts.

## Why is this bad?

A misaligned atomic ends the kernel with "misaligned address", or is split silently.

The witness names one such addition: block, thread, lane and element.

## Example

Bad in 0.1.15 (sm_90): every address is a multiple of 4, plus 1.

```python
@T.prim_func
def main(A: T.Tensor((512,), "float32"), B: T.Tensor((516,), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        T.atomic_addx4(B[tx * 4 + 1], A[tx * 4])
```

TileLang's own vectors can break the rule too: half of those that 0.1.7 makes of TLA001's kernel start at an odd
element.

## Use instead

Good in 0.1.15 (sm_90): every address is a multiple of 4.

```python
@T.prim_func
def main(A: T.Tensor((512,), "float32"), B: T.Tensor((516,), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        T.atomic_addx4(B[tx * 4 + 4], A[tx * 4])
```

If rows have an odd pitch, pad it to a multiple of the width.
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
