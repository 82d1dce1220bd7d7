"""Checkpoints as members, and as the text that they are in snapshots and reports."""

from __future__ import annotations

import json

import msgspec

from tlcheck.snapshot.checkpoint import BEFORE_LOWERING, Checkpoint

NAMES = ["source", "intent", "tile-ops", "lower-tile-op", "type-cast", "vectorize-loop", "device-tir"]


def test_they_stand_in_the_order_of_the_pipeline() -> None:
    assert list(Checkpoint) == NAMES
    assert list(BEFORE_LOWERING) == NAMES[:3]
    assert [c for c in Checkpoint if c.is_lowered] == NAMES[3:]
    assert [c for c in Checkpoint if c.is_unguarded] == ["lower-tile-op", "type-cast"]
    assert [c for c in Checkpoint if c.is_printed] == ["vectorize-loop", "device-tir"]


def test_each_is_its_name_wherever_text_is() -> None:
    last = Checkpoint.DEVICE_TIR
    assert (str(last), f"{last}", "%s" % last, ",".join([last])) == ("device-tir",) * 4  # noqa: UP031
    assert {"device-tir": 1}[last] == 1
    assert json.dumps({last: last}) == '{"device-tir": "device-tir"}'
    assert msgspec.json.encode({last: last}) == b'{"device-tir":"device-tir"}'
    assert type(msgspec.to_builtins({"at": last})["at"]) is str
