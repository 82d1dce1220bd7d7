"""TLA003: a value is added to the wrong element

## What it does

Each element gets as many additions as intended, but some values were meant for other elements. The layouts of source
and destination disagree.

## Why is this bad?

The numbers come out permuted, with the right sum.

The witness names one such addition: block, thread, lane and element.

## Example

Bad in 0.1.7 (sm_90): the layout of `s` puts every other element of a row side by side. A vector adds four of them to
four neighbours in `B`.

```python
@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((64, 64), "float32")
        T.annotate_layout({s: T.Layout(s.shape, lambda i, j: [i // 8, j // 8, j % 2, 4 * (i % 8) + (j % 8) // 2])})
        T.copy(A, s)
        T.atomic_add(B, s)
```

## Use instead

Good in 0.1.15 (sm_90): the same kernel.

Use a release that gets it right. Copying the source into a fragment, or into a shared tile without a layout of its
own, often avoids the bug.
"""

from __future__ import annotations

from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken

BASIC = 25


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by a lane that reads the source of one element and adds it to another one of the tile."""
    count = evidence.difference.source if evidence.difference else None
    if count is None:
        return None
    return Broken(
        f"{count.wrong} of {count.total} values are added to an element that another value was meant for",
        count.witness,
        "copy the source into a buffer of its own before the atomic",
        count.site,
    )
