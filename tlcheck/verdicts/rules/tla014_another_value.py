"""TLA014: The device library adds another value

The call is the right one for the kernel, and the library takes the bits of its values for those of another type: two
float32 for two float16, the low 16 bits of a float32, a bfloat16 for a float16. The kernel runs, and is wrong.
What each release's library does was measured by compiling each call and executing its PTX: docs/device-library.md.

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

Good in 0.1.15 (sm_90): the same kernel; the library rounds both values.

What to do: use a release that has it right; before that, copy the values into a fragment of the destination's type
first. `T.cast` in the call is not enough: the destination may be redirected then (TLA008).
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
