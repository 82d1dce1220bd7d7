"""Define what the tests of goldens share: saved snapshots, the same with other names, a project to keep goldens in."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fixtures.index import FOLDER
from tlcheck.golden.entry import Golden
from tlcheck.golden.recording import golden_of
from tlcheck.snapshot import codec
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Snapshot

ERA = FOLDER / "era"
ATTENTION = FOLDER / "demo" / "attention_full_0.1.7.snapshot.json"


def saved(name: str, release: str = "0.1.15") -> Path:
    return ERA / f"{name}-{release}.snapshot.json"


def snapshot(name: str, release: str = "0.1.15") -> Snapshot:
    return codec.loads(saved(name, release).read_text(encoding="utf-8"))


def golden(name: str, release: str = "0.1.15") -> Golden:
    return golden_of(snapshot(name, release), ("lower-tile-op",))


def full(s: Snapshot) -> Golden:
    """At every checkpoint."""
    return golden_of(s, list(Checkpoint))


def renamed(s: Snapshot) -> Snapshot:
    """The same kernel with another name for every variable and buffer; `X_desc` stays the descriptor of `X`."""
    fields = json.loads(codec.dumps(s))
    for node in fields["nodes"]:
        if node[0] == "var":
            node[2] = f"new_{node[2]}"
        elif node[0] == "buffer":
            node[1] = f"new_{node[1]}"
    return codec.loads(json.dumps(fields))
