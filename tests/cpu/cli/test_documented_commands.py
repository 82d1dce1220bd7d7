"""README and docs: each command is understood, and names kernels that are there."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from pathlib import Path

import pytest

from tlcheck.toolchain.releases import PINNED, RELEASES

ROOT = Path(__file__).parents[3]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{page.name}" for page in DOCS)]
COMMAND = re.compile(r"^[ \t]*(?:\$ |- run: |run: )?(?:\w+=\S+ )*tlcheck ((?:[^#\n\\]|\\\n|(?<! )#)+)", re.MULTILINE)
WHOLE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)


def commands(page: str) -> list[str]:
    """Return what follows `tlcheck` in a page's blocks, with [options] given and of a|b the first."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [match.strip() for block in WHOLE.findall(text) for match in COMMAND.findall(block)]
    plain = [re.sub(r"\[([^\]]*?)\]|\.\.\.", r"\1", command.replace("\\\n", " ")) for command in found]
    return [re.sub(r"(\w+)\|[\w|]+", r"\1", command.partition(" > ")[0]) for command in plain]


FOUND = [pytest.param(command, id=f"{page}: {command}") for page in PAGES for command in commands(page)]


def test_there_are_many() -> None:
    assert len(FOUND) > 60
    assert sum(bool(commands(page)) for page in PAGES) > 12


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    inner = sorted((ROOT / "docs" / "internals").glob("*.md"))
    pages = [str(page.relative_to(ROOT / "docs")) for page in (*DOCS, *inner)]
    assert [page for page in pages if page != "README.md" and f"({page})" not in index] == []


MADE = {"findings.md", "reasons.md"}  # as long as what they are made from
WORDS = {page.name: len(re.findall(r"\S*\w\S*", page.read_text(encoding="utf-8"))) for page in DOCS}


def test_pages_are_short() -> None:
    """Each page has two screens of a book at most. Those that are written by hand have a budget together."""
    written = {name: count for name, count in WORDS.items() if name not in MADE}
    assert {name: count for name, count in written.items() if count > 1500} == {}
    assert sum(written.values()) <= 26_200


def test_pages_say_for_whom_they_are() -> None:
    """The line below the heading names the reader."""
    starts = {page.name: page.read_text(encoding="utf-8").split("\n\n")[1] for page in DOCS}
    tables = {"README.md", "reasons.md"}
    assert [name for name, line in starts.items() if not line.startswith("For ") and name not in tables] == []


HAND = [*DOCS, *sorted((ROOT / "docs" / "internals").glob("*.md")), ROOT / "README.md"]


def long_cells(text: str) -> list[str]:
    """Return the cells of a page's tables that have more than 120 characters, links' addresses aside."""
    rows = [line for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines() if line.startswith("|")]
    cells = [cell.strip() for row in rows for cell in re.sub(r"\]\([^)]*\)", "]", row).split(" | ")]
    return [cell for cell in cells if len(cell) > 120]


@pytest.mark.parametrize("page", HAND, ids=lambda page: page.name)
def test_cells_of_tables_hold_phrases(page: Path) -> None:
    assert long_cells(page.read_text(encoding="utf-8")) == []


def test_a_long_cell_is_noticed() -> None:
    assert long_cells(f"| a | {'b' * 121} |\n| [c]({'d' * 200}) | e |") == [f"{'b' * 121} |"]


def test_the_readme_knows_the_releases() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    oldest, *_, newest = RELEASES
    assert f"TileLang from {oldest} to {newest}" in text
    assert f"with TileLang {PINNED} unless" in text


@pytest.mark.parametrize("command", FOUND)
def test_it_is_understood(command: str) -> None:
    name, *own = shlex.split(command.replace("NAME=VALUE", "name=1").replace("--seeds N", "--seeds 1"))
    own = own[: own.index("--")] if "--" in own else own
    parser = argparse.ArgumentParser(prog=name, exit_on_error=False)
    importlib.import_module(f"tlcheck.cli.{name}").add_arguments(parser)
    parser.parse_args(own)


@pytest.mark.parametrize("command", FOUND)
def test_the_kernels_of_this_repository_are_there(command: str) -> None:
    for file, case in re.findall(r"((?:cases|tests|golden)/[\w/.-]+)(?:::(\w+))?", command):
        path = ROOT / file
        if path.name.startswith("test_") or not path.parent.is_dir() or path.parent == ROOT / "tests":
            continue  # a file of the reader's own project
        assert path.exists(), file
        declared = rf"^{case} = |case_{case} = |^def {case}\("
        assert not case or re.search(declared, path.read_text(encoding="utf-8"), re.MULTILINE)
