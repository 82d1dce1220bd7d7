"""Links of the documents lead somewhere: to a file from where the document lies, and to a heading that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (".", "docs", *(f"docs/{name}" for name in ("internals", "rules", "findings", "reference", "schemas")))
RESULTS = ("results", *(f"results/{name}" for name in ("h200", "h100", "cost", "amd", "attack", "blackwell")))
DOCUMENTS = [file for folder in (*FOLDERS, *RESULTS) for file in sorted((ROOT / folder).glob("*.md"))]
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]*))?\)")


def anchors(file: Path) -> set[str]:
    """Return what GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", file.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead(document: Path) -> list[str]:
    """The links of a document that lead nowhere."""
    found = []
    for place, anchor in _LINK.findall(_CODE.sub("", document.read_text())):
        file = document.parent / place if place else document
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            found.append(f"{place}#{anchor}" if anchor else place)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert dead(document) == []


def test_a_dead_link_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# One `two`: three\n```\n# no heading\n```\n")
    (tmp_path / "a.md").write_text("[x](b.md#one-two-three) [y](b.md#no-heading) [z](c.md) [u](#v) [w](http://a.b)")
    assert dead(tmp_path / "a.md") == ["b.md#no-heading", "c.md", "#v"]
