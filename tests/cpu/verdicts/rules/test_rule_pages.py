"""The rules' pages, and that those in docs/ are up to date."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

import pytest

from tests.cpu import wrong_kernels
from tests.cpu.checking import installed
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED
from tlcheck.verdicts.rules.rule import rules
from tlcheck.verdicts.rules.rule_pages import index, pages, write

DOCS = Path(__file__).parents[4] / "docs" / "rules"
KERNELS = wrong_kernels.FILE  # a user's `kernels.py` on the pages


def test_there_is_a_page_for_each_rule_as_the_rule_itself_says() -> None:
    found = {page.id: page for page in pages()}
    assert sorted(found) == sorted(rule.id for rule in rules())
    for rule in rules():
        page = found[rule.id]
        assert (page.name, page.title) == (rule.name, rule.title)
        assert page.text in rule.page


PAGES = "\n".join(page.text for page in pages())
HEADINGS = ["What it does", "Why is this bad?", "Example", "Use instead"]


def test_every_page_has_the_same_headings() -> None:
    """Limits come last, where there are some."""
    for page in pages():
        headings = re.findall(r"^## (.*)$", page.text, re.MULTILINE)
        assert headings in (HEADINGS, [*HEADINGS, "Limits"]), page.id
        assert re.search(r"\n## Example\n\n[^#]*```python\n", page.text), page.id
        assert page.title[0].islower() or page.title.startswith("T."), page.id


LOWERED = re.compile(r"```python\n([^`]*?)```\n\n```\n\$ tlcheck (check \S+::[^\n]*)\n(.*?)```", re.DOTALL)
SHOWN = [(page.id, *shown) for page in pages() for shown in LOWERED.findall(page.text)]


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
@pytest.mark.parametrize(("rule", "code", "command", "output"), SHOWN, ids=[rule for rule, *_ in SHOWN])
def test_examples_that_are_lowered_say_what_the_page_shows(
    rule: str,
    code: str,
    command: str,
    output: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Else paste what the command says, then `make docs`."""
    words = shlex.split(command)
    installed(words[words.index("--toolchain") + 1] if "--toolchain" in words else PINNED)
    file, _, name = words[1].partition("::")
    if file == KERNELS.name:
        wrong_kernels.written(name, tmp_path)
    else:
        (tmp_path / file).write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    main(words)
    assert capsys.readouterr().out == output


def test_pages_name_no_file_of_this_project() -> None:
    """Who runs `tlcheck explain` has none of them."""
    assert re.findall(r"\b(?:tests|cases|golden|examples)/\S*", PAGES) == []


def test_excerpts_of_kernels_are_theirs() -> None:
    kernels = KERNELS.read_text()
    excerpts = re.findall(r"```python\n([^`]*?)```\n\n```\n\$ tlcheck check kernels\.py", PAGES)
    assert len(excerpts) >= 6
    for code in excerpts:
        assert any(textwrap.indent(code, " " * depth) in kernels for depth in range(0, 24, 4)), code


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
