"""TLA013: the device library does not compile

## What it does

The lowered code calls TileLang's device library with types, or with a memory order, that its headers do not accept.
docs/device-library.md says how each release was measured with nvcc.

## Why is this bad?

nvcc refuses the kernel, or ptxas refuses the header's instruction.

The witness names the first addition by such a call: block, thread, lane and element.

## Example

Bad in 0.1.8 (sm_90): pairs of 16-bit values are passed by value, and the library of that release takes pointers only.

```python
@T.prim_func
def main(A: T.Tensor((256,), "float16"), B: T.Tensor((256,), "float16")):
    with T.Kernel(1, threads=128):
        for i in T.Parallel(256):
            T.atomic_add(B[i], A[i])
```

## Use instead

Good in 0.1.15 (sm_90): the same kernel; the library takes values too.

Use a release that gets it right. In 0.1.7.post3 and 0.1.8, a loop over threads written by hand also compiles: it is
not vectorized.
"""

from __future__ import annotations

from tlcheck.program.device_library import REFUSED
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.library import broken_call
from tlcheck.verdicts.rules.rule import Broken

BASIC = 90


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by a call that nvcc or ptxas refuses."""
    return broken_call(subject, evidence, REFUSED)
