"""The issue for TileLang as Markdown: what is wrong, since when, a script that shows it, and what mends it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from tlcheck import __version__
from tlcheck.program.release import Release
from tlcheck.remedy.issue import Issue
from tlcheck.remedy.kernel_changes import keyed
from tlcheck.report import issue_cuda
from tlcheck.report.fix_text import named
from tlcheck.toolchain.releases import RELEASES
from tlcheck.verdicts.claim import Finding, FindingHistory
from tlcheck.verdicts.problems import value_in_words

LONGEST = 60  # lines
_COLUMNS = 160
_TITLES: Mapping[str, str] = {
    "overwritten": "`{}` is overwritten before it is read",
    "early": "`{}` is read before it is written",
    "late": "`{}` is read after it is overwritten",
    "unwritten": "`{}` is not written",
    "unguarded": "`{}` is written where a condition forbids it",
    "other-index": "another element of `{}` is accessed",
    "other-operand": "another buffer is read than `{}`",
    "repeated": "values of `{}` are counted several times",
    "incomplete": "terms of `{}` are missing",
    "rounded": "`{}` is rounded to a narrower type",
    "other-value": "a value of `{}` is computed wrongly",
    "unordered": "{missing} is missing between two accesses to `{}`",
}


def write(file: TextIO, issue: Issue) -> None:
    """Write the issue. CUDA is left out where it does not fit."""
    above, below = [*_above(issue)], [*_below(issue)]
    room = LONGEST - len(above) - len(below) - 5
    file.write("\n".join([*above, "", *issue_cuda.section(issue, room), *below]) + "\n")


def _above(issue: Issue) -> Iterator[str]:
    finding, run = issue.claim.finding, issue.reduced.result.run
    assert finding is not None
    yield f"# [Bug] {_title(issue, finding)} ({run.target}, {run.release})"
    yield ""
    yield " ".join(_cause(issue, finding))
    yield ""
    yield f"**Releases**: {_releases(issue)}"
    if (found := _workaround(issue)) is not None:
        yield f"**Workaround**: {found}"
    yield ""
    yield f"**Reproduce**: {_what_it_prints(issue)}"
    yield "```python"
    yield from issue.script.strip().splitlines()
    yield "```"


def _below(issue: Issue) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in issue.reduced.result.run.versions.items())
    yield (
        f"**Environment**: {versions}; target {issue.reduced.result.run.target}. Found by tlcheck {__version__}, which"
        " executes a kernel on the CPU before and after lowering. This was not run on a GPU."
    )


def _title(issue: Issue, finding: Finding) -> str:
    """The pass that is to blame, and what happens first."""
    history = _history(finding)
    guilty = f"{history.pass_name}: " if history.pass_name and history.role != "may-break" else ""
    origin = finding.origin
    words = _TITLES.get(origin.kind, "") if origin is not None and origin.buffers else ""
    if origin is None or not words or (origin.kind == "unordered" and not origin.missing):
        return f"{guilty}{finding.what}"
    return guilty + words.format(origin.buffers[0], missing=origin.missing)


def _cause(issue: Issue, finding: Finding) -> Iterator[str]:
    """Yield what happens first, what comes of it, and the pass."""
    lines, history = issue.text.splitlines(), _history(finding)
    names = (issue.claim.buffer, *(finding.origin.buffers if finding.origin is not None else ()))
    if finding.origin is not None and issue.claim.kind == "atomic":
        yield _sentence(quoted(f"{finding.what}, at line {finding.origin.line}", lines), names)
        yield f"For example in {finding.words}."
    elif finding.origin is not None:
        yield _sentence(quoted(finding.origin.words, lines), names)
    else:
        yield _sentence(quoted(finding.words, lines), names)
    if (stmt := _lowered_statement(finding)) and not (finding.origin is not None and finding.origin.line):
        yield f"In the TIR that is `{stmt}`."
    if issue.shown is not None and finding.origin is not None:
        yield f"This makes `{issue.shown.output}` wrong."
    if (name := issue.reduced.pass_name) == "the code generator":
        yield "The TIR after the last pass is still right; the code made of it, or the device library, is not."
    elif name and not history.pass_name:
        yield f"It is there after `{name}`; which pass is to blame was not examined."
    elif name and history.role == "may-break":
        yield f"The TIR is wrong after `{name}`: to blame is this pass, {history.note}."
    elif name and history.role == "orders":
        yield f"`{name}` should have ordered them."
    elif name:
        yield f"The TIR is right before `{name}`, and wrong after it{f' ({history.note})' if history.note else ''}."


def _lowered_statement(finding: Finding) -> str:
    """The statement of the TIR that a finding marks; empty where it marks none, or one that is too long."""
    excerpt = finding.excerpt
    stmt = excerpt.lines[excerpt.marked - excerpt.first].strip() if excerpt is not None else ""
    return stmt if len(stmt) <= _COLUMNS else ""


def _history(finding: Finding | None) -> FindingHistory:
    """Return where else it is wrong; an empty history where nobody looked."""
    return finding.history if finding is not None and finding.history is not None else FindingHistory(())


def _releases(issue: Issue) -> str:
    """Return where it is wrong and right, as far as that was tried."""
    history, release = _history(issue.claim.finding), issue.reduced.result.run.release
    wrong = sorted({release, *history.wrong_in}, key=Release.of)
    if len(wrong) > 2 and not (history.right_in or history.open_in):
        return f"wrong in all {len(wrong)} that were tried, {wrong[0]} to {wrong[-1]}."
    parts = [f"wrong in {_listed(wrong)}"]
    parts += [f"right in {_listed(history.right_in)}"] if history.right_in else []
    parts += [f"not decided in {_listed(history.open_in)}"] if history.open_in else []
    return "; ".join(parts) + "."


def _workaround(issue: Issue) -> str | None:
    if issue.workarounds is None or issue.workarounds.interrupted:
        return None
    found = [trial for trial in issue.workarounds.found if not trial.change.release]
    if not found:
        return "only another release." if issue.workarounds.found else "none found."
    change = found[0].change
    own = keyed(issue.workarounds.kernel.result.pass_configs)
    flipped = [own[name] for name, _ in change.variation.pass_configs if name in own]
    text = named(dict(change.variation.pass_configs)) or change.words
    return f"`{text}`" + (f", which `configs` has at {' and '.join(flipped)}." if flipped else ".")


def _what_it_prints(issue: Issue) -> str:
    language = issue_cuda.language_of(issue.reduced.result.run.target)
    if issue.shown is None:
        return f"this prints the {language} source; it needs no GPU."
    element = issue.shown.element
    return (
        f"on a GPU ({issue.reduced.result.run.target}) this prints an element that should be {element.expected}."
        f" In the lowered kernel, executed on the CPU, the element is {value_in_words(element.got)}."
        f" Without a GPU, this prints the {language} source."
    )


def quoted(words: str, lines: Sequence[str]) -> str:
    """Return words with the statement in the place of its line's number, and without lines of TIR."""
    words = re.sub(r"(, )?TIR line \d+( at [\w-]+)?", "", words).replace(" ()", "")

    def statement(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"in `{lines[number - 1].strip()}`" if 0 < number <= len(lines) else found[0]

    return re.sub(r"at line (\d+)", statement, words)


def _sentence(words: str, names: Sequence[str] = ()) -> str:
    """Words with a full stop; an element, an instruction or one of these names at their beginning keeps its
    spelling.
    """
    named = "|".join(re.escape(name) for name in names if name) or "$^"
    if element := re.match(rf"\w+\[[^\]]*\]|\w*_\w*|\w+(\.\w+)+|({named})(?= is )", words):
        return f"`{element[0]}`{words[element.end() :]}."
    return f"{words[:1].upper()}{words[1:]}."


def _listed(names: Sequence[str]) -> str:
    """`0.1.8, 0.1.9`; `0.1.7 to 0.1.13` for many that follow one another."""
    known = sorted(RELEASES, key=Release.of)
    places = [known.index(name) for name in names if name in RELEASES]
    if len(places) == len(names) > 3 and places == list(range(places[0], places[0] + len(places))):
        return f"{names[0]} to {names[-1]}"
    return ", ".join(names)
