"""Pages for tests, made from committed snapshots."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.cpu.checking import judge_here
from tests.fixtures.index import FOLDER
from tlcheck.golden.approvals import Approvals, decision
from tlcheck.golden.entry import Golden, Key
from tlcheck.golden.recording import Project, Recorded, saved
from tlcheck.golden.store import Contents
from tlcheck.page.golden_page import GoldenPage
from tlcheck.page.shown import Entry, Page, View

ATTENTION = FOLDER / "demo" / "attention_full_0.1.7.snapshot.json"
KERNELS = ("annotated_gemm", "cast_bf16", "loop_pipelined", "tile_small")
PROJECT = Project(Path.cwd(), Path.cwd() / "golden", ("lower-tile-op",))


def era(name: str, release: str) -> Path:
    return FOLDER / "era" / f"{name}-{release}.snapshot.json"


def recorded(file: Path) -> Recorded:
    return saved(file, PROJECT)


def approved(*files: Path) -> Contents:
    """Goldens of these snapshots, all of them accepted."""
    goldens: dict[Key, Golden] = {}
    for file in files:
        made = recorded(file)
        assert made.golden is not None
        goldens[made.key] = made.golden
    return Contents(goldens, Approvals({str(key): decision(g.digest, "read") for key, g in goldens.items()}))


def upgraded() -> Page:
    """Some kernels of 0.1.15 beside what 0.1.14 made; one of 0.1.7, which is wrong; one that nobody approved."""
    old = [era(name, "0.1.14") for name in KERNELS]
    made = GoldenPage(approved(*old), judge_here)
    for file in (*(era(name, "0.1.15") for name in KERNELS[1:]), era("annotated_gemm", "0.1.7"), ATTENTION):
        made.add(recorded(file))
    return made.page()


def large(page: Page, cases: int) -> Page:
    """The same kernels again and again, no two with a line in common: nothing is saved by what is equal."""
    return replace(page, entries=list(_copies(page, cases)), clusters=())


def _copies(page: Page, cases: int) -> Iterator[Entry]:
    for number in range(cases):
        entry = page.entries[number % len(page.entries)]
        views = [_copy(view, f"  # {number}") for view in entry.views]
        yield replace(entry, name=f"{entry.name}_{number}", views=views)


def _copy(view: View, mark: str) -> View:
    if view.diff is None:
        return replace(view, lines=[line + mark for line in view.lines])
    rows = tuple(
        replace(
            row,
            left=row.left and replace(row.left, text=row.left.text + mark),
            right=row.right and replace(row.right, text=row.right.text + mark),
        )
        for row in view.diff.rows
    )
    return replace(view, diff=replace(view.diff, rows=rows))


def unpacked(html: str) -> Any:
    """The data that a page's script reads."""
    found = re.search(r'id="data">([^<]*)<', html)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))
