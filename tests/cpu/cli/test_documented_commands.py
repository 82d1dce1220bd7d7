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
    """What follows `tlcheck` in a page's blocks, with [options] given and of a|b the first."""
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
    assert [page.name for page in DOCS if page.name != "README.md" and f"({page.name})" not in index] == []


def test_pages_are_short() -> None:
    """Two screens of a book at most; what is made from code is as long as it is."""
    made = {"findings.md", "reasons.md"}
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in DOCS if page.name not in made}
    assert {name: count for name, count in words.items() if count > 1600} == {}


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
