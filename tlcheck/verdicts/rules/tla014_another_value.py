"""TLA014: the device library adds another value

## What it does

The lowered call fits the kernel, but the library misreads the values. It reads two float32 as two float16, a bfloat16
as a float16, or only the low 16 bits of a float32. docs/device-library.md says how each release was measured by
executing its PTX.

## Why is this bad?

The kernel runs and adds wrong numbers.

The witness names one such addition: block, thread, lane and element.

## Example

Bad in 0.1.9 (sm_90): the values are float32 and the destination is float16; nothing converts the pair.

```python
@T.prim_func
def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float16")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((256,), "float32")
        T.copy(A, f)
        for i in T.Parallel(256):
            T.atomic_add(B[i], f[i])
```

## Use instead

Good in 0.1.15 (sm_90): the same kernel; the library rounds both values.

Use a release that gets it right, or copy the values into a fragment of the destination's type first. `T.cast` in the
call is not enough: the destination may then be redirected (TLA008).
"""

from __future__ import annotations

from tlcheck.program.device_library import WRONG
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.library import broken_call
from tlcheck.verdicts.rules.rule import Broken

BASIC = 91


def check(subject: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    """Refuted by a call that leaves or returns another number than it says."""
    return broken_call(subject, evidence, WRONG)
