"""TLA002: A vector atomic is not aligned to its width

An atomic of N lanes needs an address that is a multiple of N elements. On the device a misaligned one ends the kernel with
"misaligned address", or is split silently.

Bad in 0.1.7: the kernel of TLA001, where half of the instructions start at an odd element.

```python
@T.prim_func
def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), D: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.annotate_layout({D: T.Layout(D.shape, lambda l, d: [l // 8, d // 8, d % 2, 4 * (l % 8) + (d % 8) // 2])})
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.atomic_add(D, c)
```

Good in 0.1.15: the same kernel.

What to do: start the tile at a multiple of the vector's width, or pad the row pitch to one.
"""

from __future__ import annotations

from tlcheck.analysis.evidence import Evidence
from tlcheck.analysis.subject import Subject
from tlcheck.rules.rule import Broken

BASIC = 30


def check(subject: Subject, evidence: Evidence) -> Broken | None:
    """Refuted by an instruction whose first lane is not at a multiple of the width."""
    count = evidence.difference.misaligned if evidence.difference else None
    if count is None:
        return None
    site = evidence.match.sites[count.witness.site]
    return Broken(
        f"{count.wrong} of {count.total} {site.instruction} are not aligned to {site.width} elements",
        count.witness,
        "start the tile at a multiple of the vector's width",
    )
