"""The places in TileLang's pipeline at which a kernel is recorded."""

from __future__ import annotations

from enum import Enum


class Checkpoint(str, Enum):
    """One of them, in pipeline order; as text it is its name in snapshots and reports."""

    SOURCE = "source"  # before the first pass
    INTENT = "intent"  # before LayoutInference
    TILE_OPS = "tile-ops"  # before LowerTileOp
    LOWER_TILE_OP = "lower-tile-op"
    TYPE_CAST = "type-cast"
    VECTORIZE_LOOP = "vectorize-loop"
    DEVICE_TIR = "device-tir"  # after the last pass

    @property
    def is_lowered(self) -> bool:
        """Whether tile operators have become loops. It was taken after its pass, the others before theirs."""
        return self not in (Checkpoint.SOURCE, Checkpoint.INTENT, Checkpoint.TILE_OPS)

    @property
    def is_unguarded(self) -> bool:
        """Whether newer releases have not cut the tails of loops yet, though tile operators are gone."""
        return self in (Checkpoint.LOWER_TILE_OP, Checkpoint.TYPE_CAST)

    @property
    def is_printed(self) -> bool:
        """Whether vectors are those that the code generator prints."""
        return self in (Checkpoint.VECTORIZE_LOOP, Checkpoint.DEVICE_TIR)

    def __str__(self) -> str:
        return self.value


BEFORE_LOWERING = tuple(checkpoint for checkpoint in Checkpoint if not checkpoint.is_lowered)
