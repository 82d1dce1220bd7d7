"""The rules' pages, and that those in docs/ are up to date."""

from __future__ import annotations

import re
from pathlib import Path

from tlcheck.verdicts.rules.pages import index, pages, write
from tlcheck.verdicts.rules.rule import rules

DOCS = Path(__file__).parents[4] / "docs" / "rules"


def test_there_is_a_page_for_each_rule_as_the_rule_itself_says() -> None:
    found = {page.id: page for page in pages()}
    assert sorted(found) == sorted(rule.id for rule in rules())
    for rule in rules():
        page = found[rule.id]
        assert (page.name, page.title) == (rule.name, rule.title)
        assert page.text in rule.page


HEADINGS = ["What it does", "Why is this bad?", "Example", "Use instead"]


def test_every_page_has_the_same_headings() -> None:
    """Limits come last, where there are some."""
    for page in pages():
        headings = re.findall(r"^## (.*)$", page.text, re.MULTILINE)
        assert headings in (HEADINGS, [*HEADINGS, "Limits"]), page.id
        assert re.search(r"\n## Example\n\n[^#]*```python\n", page.text), page.id
        assert page.title[0].islower() or page.title.startswith("T."), page.id


def test_the_pages_in_docs_are_up_to_date(tmp_path: Path) -> None:
    """Else run `make docs`."""
    write(tmp_path)
    assert texts(DOCS) == texts(tmp_path)


def test_a_page_of_a_rule_that_is_gone_is_removed(tmp_path: Path) -> None:
    (tmp_path / "TLA999.md").touch()
    (tmp_path / "notes.txt").touch()
    write(tmp_path)
    assert not (tmp_path / "TLA999.md").exists()
    assert (tmp_path / "notes.txt").exists()


def test_the_index_links_every_page() -> None:
    assert all(f"[{page.id}]({page.id}.md)" in index(pages()) for page in pages())


def texts(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.glob("*.md")}
