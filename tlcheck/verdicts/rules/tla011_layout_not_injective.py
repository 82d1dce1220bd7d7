"""TLA011: the destination's layout puts two elements in one place

## What it does

This rule finds an annotated layout that is not injective: it maps two logical elements to one physical offset.
It also finds one that maps an element before its tensor.
No release of TileLang checks this.

## Why is this bad?

The sums of the two elements are mixed, and no lowering can be right.

The finding names both elements and the offset.

## Example

Bad in 0.1.15 (sm_90): `j % 4` instead of `j % 8`.

```python
@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((64, 64), "float32")
        T.annotate_layout({B: T.Layout(B.shape, lambda i, j: [i // 8, j // 8, i % 8, j % 4])})
        T.copy(A, f)
        T.atomic_add(B, f)
```

## Use instead

Good in 0.1.15 (sm_90): an injective layout.

```python
@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((64, 64), "float32")
        T.annotate_layout({B: T.Layout(B.shape, lambda i, j: [i // 8, j // 8, i % 8, j % 8])})
        T.copy(A, f)
        T.atomic_add(B, f)
```
"""

from __future__ import annotations

from tlcheck.execute.request import SOURCE
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken
from tlcheck.witness import Addition

BASIC = 0


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by two elements of the destination with one offset, or one that lies before it."""
    root = evidence.match.source[0].target.root
    clash = subject.clash(root)
    if clash is None:
        return None
    one, other, offset = clash
    tensors = {str(buffer.data.value) for buffer in subject.snapshot.checkpoints[SOURCE].buffers}
    both = f"the elements {list(one)} and {list(other)} to the same offset"
    return Broken(
        f"its layout maps {both if one != other else f'the element {list(one)} to the offset'} {offset}",
        Addition({}, {}, None, None, other, offset, offset),
        "correct the annotated layout",
        own=root in tensors,  # a tensor has no other layout than the one that the kernel annotates
    )
