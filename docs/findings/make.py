"""Writes docs/findings.md, and the heads of the pages beside this file: `make docs`.

A finding is one page: TOML in a comment, then its heading and where it is wrong, which are made here from the TOML and
from tests/wrong_code/expected.toml, then what there is to say. Pages come in the order of their names.
"""

from __future__ import annotations

import csv
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
FIXES = HERE.parents[1] / "results" / "fixes.csv"
ORDER = tuple(RELEASES)
Expected = Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]  # case -> arch -> release -> verdict, rules
Fixes = Mapping[tuple[str, str], str]  # case and arch -> what mends it in the newest release that has it wrong
RULE = re.compile(r"TL\w\d{3}")
PUBLIC = re.compile(r"(issue|pull request) (\d+)")
BEFORE = """# Findings

For people who ask what their release gets wrong: TileLang's bugs that give wrong code without an error. Each row is a
short kernel in [`kernels.py`](../tests/wrong_code/kernels.py) or
[`repaired.py`](../tests/wrong_code/repaired.py). To see one:

```
tlcheck check tests/wrong_code/kernels.py::loop --arch sm_80
```

Click a name for the wrong CUDA, the guilty pass, TileLang's issue (searched 2026-11-29) and what an H200 did.
Tests keep the verdicts of 13 releases in [`expected.toml`](../tests/wrong_code/expected.toml).

{newest} gets {wrong} of the kernels wrong, {order} in the order or legality of accesses. 50 were wrong on
[an H200](../results/h200/README.md), or stopped there. Workarounds are what
[`tlcheck fix`](fix.md#how-often-there-is-one) found for the newest wrong release (`-`: not tried).
"""
AFTER = """More: [larger kernels](findings/others.md), [cases on sm_80](findings/cases.md),
[what was searched](findings/searched.md), [runs on the H200](../results/h200/README.md).
"""


@dataclass(frozen=True)
class Written:
    """One finding. cases: of `expected.toml`. public: an issue about the same. device: what a GPU says of it.

    guilty: the pass that makes it wrong, in the last release that does. file: the name of its page.
    """

    cases: tuple[str, ...]
    title: str
    text: str = ""
    public: str = ""
    device: str = ""
    guilty: str = ""
    file: str = ""

    @property
    def heading(self) -> str:
        return f"# {' and '.join(f'`{case}`' for case in self.cases)}: {self.title}"


def read(file: Path) -> Written:
    head, _, rest = file.read_text(encoding="utf-8").removeprefix("<!--\n").partition("-->\n\n")
    _heading, _facts, text = rest.split("\n\n", 2)
    return msgspec.convert({**msgspec.toml.decode(head), "text": text, "file": file.name}, Written)


def with_head(file: Path, found: Written, expected: Expected) -> str:
    """Return the finding's page with its heading and facts as the data say."""
    comment = file.read_text(encoding="utf-8").partition("-->\n")[0]
    return f"{comment}-->\n\n{found.heading}\n\n{facts(found, expected)}\n\n{found.text}"


def facts(found: Written, expected: Expected) -> str:
    told = [
        f"- `{case}` is wrong on {archs.replace(', ', ' and ')} in TileLang {releases} ({RULE.sub(page_of, rules)})"
        for case, archs, releases, rules in wrong_in(found, expected)
    ]
    told += [f"- Guilty pass: {found.guilty}"] if found.guilty else []
    told += [f"- Public: {PUBLIC.sub(linked, found.public)}"] if found.public else []
    told += [f"- On an H200 with {found.device}"] if found.device else []
    return "\n".join(told)


def page_of(rule: re.Match[str]) -> str:
    return f"[{rule[0]}](../rules/{rule[0]}.md)"


def linked(public: re.Match[str]) -> str:
    kind = "issues" if public[1] == "issue" else "pull"
    return f"[{public[0]}](https://github.com/tile-ai/tilelang/{kind}/{public[2]})"


def page(findings: Iterable[Written], expected: Expected, fixes: Fixes) -> str:
    """Return the page that lists all of them."""
    findings = list(findings)
    wrong, order = wrong_now([case for found in findings for case in found.cases], expected)
    before = BEFORE.format(newest=ORDER[-1], wrong=wrong, order=order)
    return "\n".join([before, *table(findings, expected, fixes), "", AFTER])


def wrong_now(cases: Iterable[str], expected: Expected) -> tuple[int, int]:
    """How many of the kernels the newest release has wrong on some arch, and how many of these in order or legality."""
    newest = ([of.get(ORDER[-1], {}) for of in expected[case].values()] for case in cases)
    wrong = [[of for of in archs if of.get("verdict") == "refuted"] for archs in newest]
    rules = [{rule for of in archs for rule in of["rules"]} for archs in wrong if archs]
    return len(rules), sum(any(rule.startswith(("TLR", "TLL")) for rule in each) for each in rules)


def table(findings: Iterable[Written], expected: Expected, fixes: Fixes) -> Iterator[str]:
    """A row for each kernel, or for each arch of it where they differ."""
    yield "| finding | what happens | arch | wrong in | rules | workaround |"
    yield "|---|---|---|---|---|---|"
    for found in findings:
        for case, archs, releases, rules in wrong_in(found, expected):
            mended = next((fixes[case, arch] for arch in archs.split(", ") if (case, arch) in fixes), "-")
            yield f"| [`{case}`](findings/{found.file}) | {found.title} | {archs} | {releases} | {rules} | {mended} |"


def fixes_of(file: Path) -> Fixes:
    """Return the smallest change that mends each kernel, `none` where none does."""
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return {(row["case"], row["arch"]): _words(row["workaround"].split("; ")[0]) for row in rows}


def _words(change: str) -> str:
    """A release by its number, a pass configuration as code."""
    if not change:
        return "none"
    return f"`{change}`" if "=" in change else change.removeprefix("TileLang ")


def wrong_in(found: Written, expected: Expected) -> Iterator[tuple[str, str, str, str]]:
    """Case, archs, releases and rules, in words: archs together of which all the rest is equal."""
    for case in found.cases:
        rows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for arch, releases in expected[case].items():
            wrong = {release: of for release, of in releases.items() if of["verdict"] == "refuted"}
            rules = sorted({rule for of in wrong.values() for rule in of["rules"]})
            if wrong:
                rows[spans(wrong), ", ".join(rules)].append(arch)
        for (releases_in_words, rules_in_words), archs in rows.items():
            yield case, ", ".join(archs), releases_in_words, rules_in_words


def spans(wrong: Mapping[str, Any]) -> str:
    """`0.1.7, 0.1.9 to 0.1.13`."""
    found: list[list[str]] = []
    for place, release in enumerate(ORDER):
        if release not in wrong:
            continue
        if found and place and found[-1][-1] == ORDER[place - 1]:
            found[-1].append(release)
        else:
            found.append([release])
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in found)


def made() -> dict[Path, str]:
    """Return all pages as they have to be."""
    expected = msgspec.toml.decode(EXPECTED.read_text())
    findings = {file: read(file) for file in sorted(HERE.glob("[0-9]*.md"))}
    heads = {file: with_head(file, found, expected) for file, found in findings.items()}
    return {PAGE: page(findings.values(), expected, fixes_of(FIXES)), **heads}


if __name__ == "__main__":
    for file, text in made().items():
        file.write_text(text, encoding="utf-8")
