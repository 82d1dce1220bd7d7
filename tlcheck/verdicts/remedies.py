"""Pass configurations that avoid a finding. Only what was tried with the releases themselves stands here.

`TIR_DISABLE_VECTORIZE` keeps VectorizeLoop from making vector instructions: what it would get wrong stays scalar. Up to
0.1.7 it is of no use, since LowerTileOp makes them there; what goes wrong before VectorizeLoop stays wrong.
"""

from __future__ import annotations

from tlcheck.program.release import Release
from tlcheck.snapshot.checkpoint import Checkpoint

_FIRST, _LAST = Release.of("0.1.7.post3"), Release.of("0.1.14")  # with which it was tried
_OF_VECTORS = ("TLA001", "TLA004", "TLA010")


def pass_config(rule: str, checkpoint: str, release: str) -> str:
    """The name of a `tilelang.PassConfigKey` that avoids the finding when set to True; empty if none is known."""
    if checkpoint == Checkpoint.VECTORIZE_LOOP and rule in _OF_VECTORS and _FIRST <= Release.of(release) <= _LAST:
        return "TIR_DISABLE_VECTORIZE"
    return ""
