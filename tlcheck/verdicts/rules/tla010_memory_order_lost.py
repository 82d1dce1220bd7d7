"""TLA010: the memory order is lost on the way

## What it does

The kernel asks for a memory order (acquire, release, acq_rel, seq_cst), but the instruction is relaxed.

## Why is this bad?

Other threads may see accesses around the addition in an order that the kernel does not expect. This is a `hazard`: it
breaks a rule of the manual, and no executed value was wrong.

The witness names one such addition: block, thread, lane and element.

## Example

Bad in 0.1.12 (sm_90): the scalar call passes the order on, but the vector call that replaces it does not.

```python
@T.prim_func
def main(A: T.Tensor((256,), "float16"), B: T.Tensor((256,), "float16")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((256,), "float16")
        T.copy(A, f)
        T.atomic_add(B, f, memory_order="acq_rel")
```

## Use instead

Good in 0.1.15 (sm_90): the same kernel; the vector call passes the order on.

Use a release that gets it right. A loop that is not vectorized keeps the order.
"""

from __future__ import annotations

from tlcheck.program.device_library import LOST, ORDERS
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.library import broken_call
from tlcheck.verdicts.rules.rule import Broken

BASIC = 80


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by a call that names another order than the kernel or none, or that loses it on the device."""
    wanted = {w.order or 0 for w in evidence.match.source}
    if wanted == {0} or len(wanted) != 1:
        return None
    order = wanted.pop()
    for site in evidence.match.sites:
        if (site.order or 0) != order:
            return Broken(
                f"the kernel asks for {_name(order)}, {site.instruction} is {_name(site.order or 0)}", evidence.first
            )
    return broken_call(subject, evidence, LOST)


def _name(order: int) -> str:
    return ORDERS[order] if 0 <= order < len(ORDERS) else str(order)
