"""Gathers the pages of the documentation site, and lets the navigation name folders.

python docs/site.py build/pages    links every page, and each file that a page links to, as they lie in the repository

MkDocs runs this file as a hook too. https://www.mkdocs.org/user-guide/configuration/#hooks
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")


def pages() -> list[Path]:
    """Return every page, relative to the repository."""
    files = [*ROOT.glob("*.md"), ROOT / "changelog.d" / "README.md"]
    files += [file for folder in ("docs", "examples", "results") for file in (ROOT / folder).rglob("*.md")]
    return sorted(file.relative_to(ROOT) for file in files)


def linked(page: Path) -> Iterator[Path]:
    """Yield the files that a page links to, relative to the repository."""
    for place in _LINK.findall(_CODE.sub("", (ROOT / page).read_text(encoding="utf-8"))):
        yield (ROOT / page.parent / place).resolve().relative_to(ROOT)


def gather(folder: Path) -> None:
    """Fill an empty folder with links to all that the site shows."""
    shutil.rmtree(folder, ignore_errors=True)
    for file in sorted({*pages(), *(file for page in pages() for file in linked(page))}):
        place = folder / file
        if not place.exists() and (ROOT / file).is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(ROOT / file)


def whole(nav: Any, named: frozenset[str]) -> Any:
    """Return a navigation in which `folder/*` is each page of the folder that no entry names."""
    if isinstance(nav, dict):
        return {title: whole(below, named) for title, below in nav.items()}
    if not isinstance(nav, list):
        return nav
    parts = [_under(Path(e).parent, named) if str(e).endswith("/*") else [whole(e, named)] for e in nav]
    return [part for several in parts for part in several]


def _under(folder: Path, named: frozenset[str]) -> list[str]:
    return [str(page) for page in pages() if page.parent == folder and str(page) not in named]


def entries(nav: Any) -> Iterator[str]:
    """Yield the pages and folders that a navigation names."""
    if isinstance(nav, str):
        yield nav
    else:
        for below in nav.values() if isinstance(nav, dict) else nav:
            yield from entries(below)


def on_config(config: Any) -> Any:
    """Let MkDocs see each page of a folder."""
    config.nav = whole(config.nav, frozenset(entries(config.nav)))
    return config


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
