"""Writes docs/findings.md: `make docs`.

The table comes from tests/wrong_code/expected.toml, the rest from the files beside this one: a finding is one file,
some lines of TOML between `+++` and what there is to say. Files come in the order of their names. Their links are
right where they lie; on the page, one to another finding's file leads to its heading.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tlcheck.toolchain.releases import RELEASES

HERE = Path(__file__).parent
PAGE = HERE.parent / "findings.md"
EXPECTED = HERE.parents[1] / "tests" / "wrong_code" / "expected.toml"
ORDER = tuple(RELEASES)
Expected = Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]  # case -> arch -> release -> verdict, rules


@dataclass(frozen=True)
class Written:
    """One finding. cases: of `expected.toml`. public: an issue about the same. device: what a GPU says of it.

    guilty: the pass that makes it wrong, in the last release that does.
    """

    cases: tuple[str, ...]
    title: str
    text: str = ""
    public: str = ""
    device: str = ""
    guilty: str = ""

    @property
    def heading(self) -> str:
        return f"{' and '.join(f'`{case}`' for case in self.cases)}: {self.title}"

    @property
    def anchor(self) -> str:
        """What GitHub makes of the heading."""
        return re.sub(r"[^\w -]", "", self.heading.lower()).replace(" ", "-")


def read(file: Path) -> Written:
    _, head, text = file.read_text(encoding="utf-8").split("+++\n", 2)
    return msgspec.convert({**msgspec.toml.decode(head), "text": text.strip()}, Written)


def page(findings: Mapping[str, Written], expected: Expected) -> str:
    """The whole page. findings: by the names of their files."""
    sections = [section(found) for found in findings.values()]
    text = "\n\n".join([part("before"), "\n".join(table(findings.values(), expected)), *sections, part("after")])
    headings = re.sub(r"\]\((\d\d-\w+\.md)\)", lambda link: f"](#{findings[link[1]].anchor})", text)
    return headings.replace("](../", "](") + "\n"


def part(name: str) -> str:
    return (HERE / f"{name}.md").read_text(encoding="utf-8").strip()


def section(found: Written) -> str:
    told = [f"Guilty pass: {found.guilty}."] if found.guilty else []
    told += [f"Public: {found.public}."] if found.public else []
    told += [f"On an H200: {found.device}."] if found.device else []
    return "\n\n".join([f"### {found.heading}", found.text, *([" ".join(told)] if told else [])])


def table(findings: Iterable[Written], expected: Expected) -> Iterator[str]:
    """A row for each kernel, or for each arch of it where they differ."""
    yield "| case | arch | wrong in | rules |"
    yield "|---|---|---|---|"
    for found in findings:
        for case in found.cases:
            rows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
            for arch, releases in expected[case].items():
                wrong = {release: of for release, of in releases.items() if of["verdict"] == "refuted"}
                rules = sorted({rule for of in wrong.values() for rule in of["rules"]})
                if wrong:
                    rows[spans(wrong), ", ".join(rules)].append(arch)
            for (releases_in_words, rules_in_words), archs in rows.items():
                link = f"[`{case}`](#{found.anchor})"
                yield f"| {link} | {', '.join(archs)} | {releases_in_words} | {rules_in_words} |"


def spans(wrong: Mapping[str, Any]) -> str:
    """`0.1.7, 0.1.9 to 0.1.13`; `all 13` where it is that."""
    if len(wrong) == len(ORDER):
        return f"all {len(ORDER)}, {ORDER[0]} to {ORDER[-1]}"
    found: list[list[str]] = []
    for place, release in enumerate(ORDER):
        if release not in wrong:
            continue
        if found and place and found[-1][-1] == ORDER[place - 1]:
            found[-1].append(release)
        else:
            found.append([release])
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in found)


def made() -> str:
    """The page as it has to be."""
    files = sorted(HERE.glob("[0-9]*.md"))
    return page({file.name: read(file) for file in files}, msgspec.toml.decode(EXPECTED.read_text()))


if __name__ == "__main__":
    PAGE.write_text(made(), encoding="utf-8")
