"""The documentation site: navigation, pages that are made from code, Markdown that MkDocs and GitHub read alike."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tlcheck.cli import reference
from tlcheck.report import schemas

ROOT = Path(__file__).parents[2]
MKDOCS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "docs" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def named() -> list[str]:
    """The pages and folders of the navigation, in its order."""
    nav = MKDOCS.partition("\nnav:\n")[2]
    return re.findall(r"[\w./-]+(?:\.md|/\*)", nav)


def test_the_navigation_lists_every_page(site: ModuleType) -> None:
    shown = site.whole(named(), frozenset(named()))
    assert len(shown) == len(set(shown)) > 100
    assert sorted(set(shown) ^ {str(page) for page in site.pages()}) == []


def test_a_folder_stands_for_the_pages_that_nothing_else_names(site: ModuleType) -> None:
    nav = [{"Rules": ["docs/rules/README.md", "docs/rules/*"]}, "README.md"]
    whole = site.whole(nav, frozenset(site.entries(nav)))
    rules = whole[0]["Rules"]
    assert rules[:2] == ["docs/rules/README.md", "docs/rules/TLA001.md"]
    assert rules.count("docs/rules/README.md") == 1
    assert whole[1:] == ["README.md"]


def test_the_site_has_every_page_and_every_file_that_one_links_to(site: ModuleType, tmp_path: Path) -> None:
    site.gather(tmp_path / "pages")
    for file in ("README.md", "docs/check.md", "docs/pictures/page.png", "tests/wrong_code/kernels.py"):
        assert (tmp_path / "pages" / file).read_bytes() == (ROOT / file).read_bytes()


@pytest.mark.parametrize("name", reference.pages())
def test_pages_that_are_made_from_code_are_fresh(name: str) -> None:
    written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert written == reference.pages()[name], "run `make docs`"


def test_the_index_of_schemas_is_fresh() -> None:
    assert (ROOT / "docs" / "schemas" / "README.md").read_text(encoding="utf-8") == schemas.index(), "run `make docs`"


def test_every_field_of_a_case_is_explained() -> None:
    assert "| `tolerance` | `None` | bound of" in reference.case_page()
    assert reference.field_texts("One.\n\na: the first,\n    in two lines.\nb: the second.\n\nMore.") == {
        "a": "the first, in two lines.",
        "b": "the second.",
    }


def misread(text: str) -> Iterator[int]:
    """Yield the lines that MkDocs does not read as part of a list, or as one, but GitHub does."""
    fenced, before = False, ""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r" *```", line):
            fenced = not fenced
            if re.match(r" {1,3}```", line):
                yield number
        elif not fenced:
            item = re.match(r"([-*]|\d+\.) ", line)
            if item and before and not re.match(r"( +|[-*] |\d+\. )", before):
                yield number  # a list without an empty line before it
            if re.match(r" {1,3}\S", line) and not before:
                yield number  # a paragraph of a list item: four columns
        before = line.strip() and line


def test_a_list_that_is_read_in_two_ways_is_noticed() -> None:
    assert list(misread("One:\n- a\n- b\n")) == [2]
    assert list(misread("One:\n\n- a\n\n  more\n- b\n\n   ```\n   x\n   ```\n")) == [5, 8, 10]
    assert list(misread("One:\n\n- a\n  goes on\n\n    more\n\n    ```\n    - x\n    ```\n")) == []


def test_pages_are_read_alike_on_github_and_on_the_site(site: ModuleType) -> None:
    found = {str(page): list(misread((ROOT / page).read_text(encoding="utf-8"))) for page in site.pages()}
    assert {page: lines for page, lines in found.items() if lines} == {}
