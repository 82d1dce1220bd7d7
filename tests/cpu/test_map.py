"""The maps of docs/architecture.md and the pages beside it: complete, and of what is there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = Path(__file__).parents[2] / "tlcheck"
DOCS = PACKAGE.parent / "docs"
MAP = (DOCS / "architecture.md").read_text(encoding="utf-8")
EXECUTION = (DOCS / "internals" / "execution.md").read_text(encoding="utf-8")
PAGES = "\n".join([MAP, *(page.read_text(encoding="utf-8") for page in (DOCS / "internals").glob("*.md"))])
PACKAGES = [path.name for path in PACKAGE.iterdir() if path.name[0] != "_" and (path.is_dir() or path.suffix == ".py")]


def test_every_package_is_in_it() -> None:
    assert len(PACKAGES) > 20
    table = MAP.partition("| package | what it does |")[2].partition("\n\n")[0]
    assert [name for name in PACKAGES if not re.search(rf"`(tlcheck/)?{re.escape(name)}/?`", table)] == []


def test_every_folder_that_executes_is_in_its_table() -> None:
    table = EXECUTION.partition("| folder | |")[2].partition("\n\n")[0]
    folders = [path.stem for path in (PACKAGE / "execute").iterdir() if path.name[0] != "_"]
    assert len(folders) > 5
    assert [name for name in folders if not re.search(rf"`{name}`|`{name}/", table)] == []


def test_every_path_that_it_names_is_there() -> None:
    named = set(re.findall(r"`(?:tlcheck/)?([a-z_]+(?:/[a-z_]+)+)(?:\.py)?/?`", PAGES))
    places = [PACKAGE, PACKAGE.parent]
    gone = [n for n in named if not any((p / n).exists() or (p / f"{n}.py").exists() for p in places)]
    assert len(named) > 10
    assert gone == []


def test_every_file_that_it_names_is_there() -> None:
    named = set(re.findall(r"`(?:[a-z_]+/)*([a-z_]+\.py)`", PAGES))
    assert len(named) > 5
    assert named - {path.name for path in PACKAGE.rglob("*.py")} == set()


@pytest.mark.parametrize(
    ("page", "packages", "words"),
    [
        ("proofs", ("algebra", "program", "prove"), {"and", "intent", "or", "source"}),
        ("goldens", ("gate", "golden"), set()),
    ],
)
def test_names_on_a_page_are_modules_of_its_packages(page: str, packages: tuple[str, ...], words: set[str]) -> None:
    named = set(re.findall(r"`([a-z_]+)`", (DOCS / "internals" / f"{page}.md").read_text(encoding="utf-8")))
    modules = {path.stem for package in packages for path in (PACKAGE / package).glob("*.py")}
    assert len(named) > 8
    assert named - modules - words - set(packages) == set()


def test_every_package_above_the_cluster_is_kept_from_importing_it() -> None:
    """A package below it may not anyway."""
    rules = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    contracts = {contract["name"]: contract for contract in rules["contracts"]}
    layers = [layer.split(" | ") for layer in contracts["Rooms import those below them"]["layers"]]
    above = {f"tlcheck.{name}" for layer in layers[: layers.index(["cluster"])] for name in layer}
    kept = contracts["Only the command line imports the cluster, and when it is asked to"]["source_modules"]
    assert set(kept) == above
