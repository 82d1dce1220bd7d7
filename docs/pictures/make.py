"""Draws the pictures of the README from what the commands print: `python docs/pictures/make.py`."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from tlcheck.lower.runs import of_saved
from tlcheck.report import text
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.judging import judged
from tlcheck.verdicts.results import read_snapshot

ROOT = Path(__file__).resolve().parents[2]
WRONG = ROOT / "tests/fixtures/era/annotated_gemm-0.1.7.snapshot.json"
FINDING = Path(__file__).with_name("finding.svg")
_WIDTH = 120  # columns
_REMOTE = re.compile(r"@font-face\s*\{[^}]*\}|<!--.*?-->", re.DOTALL)  # a picture asks no network


def finding() -> str:
    """Draw what `tlcheck check --quick` says of a product that TileLang 0.1.7 adds to the wrong elements."""
    snapshot = read_snapshot(WRONG)
    run = of_saved(WRONG, snapshot).run
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    result = replace(Policy().apply(judged(run, snapshot)), saved=WRONG.name)
    text.write(console, [result], [])
    drawn = console.export_svg(title=f"tlcheck check --quick {WRONG.name}", unique_id="finding")
    return _REMOTE.sub("", drawn)


if __name__ == "__main__":
    FINDING.write_text(finding(), encoding="utf-8")
