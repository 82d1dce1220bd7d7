"""The rules' pages: read from their files without importing them, so that `tlcheck explain` is instant.

python -m tlcheck.verdicts.rules.rule_pages docs/rules    writes one Markdown file for each rule and an index
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

MODULE = re.compile(r"(tl[aorls]\d{3})_(\w+)")  # atomics, outputs, order, legality, the source
_INDEX = "README.md"


@dataclass(frozen=True)
class RulePage:
    """A record of what a rule means. text: Markdown, without the title."""

    id: str
    name: str
    title: str
    text: str

    @property
    def markdown(self) -> str:
        """The whole page."""
        return f"# {self.id}: {self.title}\n\n`{self.name}`\n\n{self.text}\n"


def pages() -> list[RulePage]:
    """All rules' pages, by id."""
    files = sorted(Path(__file__).parent.glob("tl*.py"))
    return [_page(file, found[1], found[2]) for file in files if (found := MODULE.fullmatch(file.stem))]


def _page(file: Path, identifier: str, slug: str) -> RulePage:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    head, _, text = (docstring or "").partition("\n")
    return RulePage(identifier.upper(), slug.replace("_", "-"), head.partition(": ")[2], text.strip())


def index(of: list[RulePage]) -> str:
    """A table of all rules."""
    rows = "".join(f"| [{page.id}]({page.id}.md) | `{page.name}` | {page.title} |\n" for page in of)
    return (
        "# Rules\n\n"
        "For people who see a rule's id in a report. Each page is what `tlcheck explain ID` shows. "
        "`make docs` writes it from the rule's file.\n\n"
        f"| id | name | what is wrong |\n|---|---|---|\n{rows}"
    )


def write(folder: Path) -> None:
    """Write the pages and their index; pages of rules that are gone are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    every = pages()
    texts = {f"{page.id}.md": page.markdown for page in every} | {_INDEX: index(every)}
    for stale in {file.name for file in folder.glob("*.md")} - set(texts):
        (folder / stale).unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
