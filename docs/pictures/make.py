"""Draws the pictures of the README and of docs/finding.md from what the commands make: `python docs/pictures/make.py`.

The picture of the page is taken by Chromium; without one it stays as it is.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import struct
import subprocess
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from rich.console import Console

from tlcheck.lower.runs import of_saved
from tlcheck.page.check_page import entry_of, page_of
from tlcheck.page.html import render
from tlcheck.page.pack import packed
from tlcheck.page.shown import Page
from tlcheck.report import check_text
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.judging import judged
from tlcheck.verdicts.results import Result, exit_code, read_snapshot

ROOT = Path(__file__).resolve().parents[2]
WRONG = ROOT / "tests/fixtures/era/annotated_gemm-0.1.7.snapshot.json"
FINDING = Path(__file__).with_name("finding.svg")
PAGE = Path(__file__).with_name("page.png")
SIZE = (1280, 860)  # pixels of the page
_WIDTH = 120  # columns
_REMOTE = re.compile(r"@font-face\s*\{[^}]*\}|<!--.*?-->", re.DOTALL)  # a picture asks no network
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_KEY = b"shows"


def finding() -> str:
    """Draw what `tlcheck check --quick` says of a product that TileLang 0.1.7 adds to the wrong elements."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    check_text.write(console, [_result()], [])
    drawn = console.export_svg(title=f"tlcheck check --quick {WRONG.name}", unique_id="finding")
    return _REMOTE.sub("", drawn)


def page() -> Page:
    """The page of the same: `tlcheck check --quick --format html`."""
    result, snapshot = _result(), read_snapshot(WRONG)
    entry = entry_of(result, snapshot)
    entry = replace(entry, views=[view for view in entry.views if view.name in (*snapshot.checkpoints, "cuda")])
    shown = page_of([result], [entry], [], exit_code([result], strict=False))
    return replace(shown, made=())  # commits change, and so do the kernel's file and its place


def photograph(browser: str) -> bytes:
    """The page's case as a browser shows it, as a PNG that says what it shows."""
    shown = page()
    with tempfile.TemporaryDirectory() as folder:
        file, picture = Path(folder, "page.html"), Path(folder, "page.png")
        file.write_text(render(shown), encoding="utf-8")
        address = f"{file.as_uri()}#{urlencode({'case': shown.entries[0].title})}"
        looks = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--force-color-profile=srgb"]
        command = [browser, *looks, f"--window-size={SIZE[0]},{SIZE[1]}", "--virtual-time-budget=5000"]
        subprocess.run([*command, f"--screenshot={picture}", address], check=True, capture_output=True)
        taken = picture.read_bytes()
    said = _chunk(b"tEXt", _KEY + b"\0" + digest(shown).encode())
    return taken[:33] + said + taken[33:]  # behind the header, which comes first


def digest(shown: Page) -> str:
    """Of all that a page shows."""
    return hashlib.sha256(json.dumps(packed(shown)).encode()).hexdigest()


def shown_by(picture: bytes) -> str:
    """The digest in a PNG that `photograph` made."""
    return picture.partition(b"tEXt" + _KEY + b"\0")[2][:64].decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _result() -> Result:
    snapshot = read_snapshot(WRONG)
    run = of_saved(WRONG, snapshot).run
    return replace(Policy().apply(judged(run, snapshot)), saved=WRONG.name)


if __name__ == "__main__":
    FINDING.write_text(finding(), encoding="utf-8")
    for found in filter(None, map(shutil.which, _BROWSERS)):
        PAGE.write_bytes(photograph(found))
        break
