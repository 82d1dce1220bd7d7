"""The report for people: a line for each run, a box for each finding, a summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.box import ROUNDED, Box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tlcheck.report.console import ENDLESS, OPEN_BOX
from tlcheck.verdicts.claim import Claim, Excerpt, Finding
from tlcheck.verdicts.commands import explain_of
from tlcheck.verdicts.results import Result, exit_code
from tlcheck.verdicts.words import also_in_words, content_in_words, counts_in_words, silence_in_words, summary_in_words
from tlcheck.witness import Element

_STYLES = {
    "proved": "green",
    "agreed": "green",
    "refuted": "bold red",
    "undecided": "yellow",
    "expected": "cyan",
    "accepted": "cyan",
}
_LINE, _NEIGHBOUR = 400, 56  # characters shown of the atomic's line (and of messages), and of the lines around it
_NAMED = 3  # of the runs that an interruption left undone
_WORST_FIRST = ("refuted", "undecided", "expected", "accepted", "agreed", "proved")


def write(console: Console, results: list[Result], notes: list[str], *, wrong_only: bool = False) -> None:
    """Print the report. Texts of kernels are no markup. wrong_only: without runs in which all is well."""
    edges = ROUNDED if console.width < ENDLESS else OPEN_BOX
    for result in results:
        if wrong_only and not exit_code([result], strict=True):
            continue
        for part in _result(result, edges) if not result.is_interrupted else ():
            console.print(part, highlight=False, soft_wrap=isinstance(part, Text))
    for part in _interrupted([result for result in results if result.is_interrupted]):
        console.print(part, highlight=False, soft_wrap=True)
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"), highlight=False, soft_wrap=True)
    console.print(Text(summary_in_words(results), style="bold"), highlight=False, soft_wrap=True)


def _interrupted(results: Sequence[Result]) -> Iterator[Text]:
    """Yield all that the user's interruption left undone, in one line however much it is."""
    if results:
        names = [_name(result) for result in results]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield Text(f"not checked, interrupted: {', '.join(names[:_NAMED])}{more}", style="bold red")


def _result(result: Result, edges: Box) -> Iterator[RenderableType]:
    yield _head(result)
    for note in result.notes:
        yield _indented("note", note, "yellow")
    for claim in result.claims:
        if claim.verdict == "undecided":
            yield _indented("undecided", f"{claim.buffer}, {claim.source.words}: {claim.reason}", "yellow")
    if why := silence_in_words(result):
        yield _indented("nothing decided", why, "yellow")
    yield from _agreed(result)
    yield from _unexamined(result)
    yield from _from_intent(result)
    for claim in result.claims:
        if claim.finding is not None:
            yield _box(result, claim, claim.finding, edges)
    if result.failure is not None:
        yield from _failure(result)
    for broken in result.broken:
        yield _indented("unexpectedly fine", broken, "bold red")


def _agreed(result: Result) -> Iterator[Text]:
    """`agreed: C; order of As, Bs (3 of 64 blocks, 2 inputs)`: what was executed and is as written, in one line."""
    clean = [claim for claim in result.claims if claim.executed is not None and claim.is_clean]
    named = {"atomic": "content of additions to ", "output": "", "order": "order of ", "legality": "accesses of "}
    parts = [
        f"{before}{', '.join(dict.fromkeys(claim.buffer for claim in clean if claim.kind == kind))}"
        for kind, before in named.items()
        if any(claim.kind == kind for claim in clean)
    ]
    if parts and clean[0].executed is not None:
        yield _indented("agreed", f"{'; '.join(parts)} ({clean[0].executed.short})", "green")


def _unexamined(result: Result) -> Iterator[Text]:
    """Yield the atomics of which only the additions are known."""
    found = [c for c in result.claims if c.kind == "atomic" and c.verdict == "proved" and c.executed is None]
    if found:
        yield _indented(
            "proved", f"{', '.join(dict.fromkeys(c.buffer for c in found))}: {content_in_words(found[0])}", "green"
        )


def _from_intent(result: Result) -> Iterator[Text]:
    """Yield the atomics that are not compared with the kernel as written, and why."""
    found = [claim for claim in result.claims if claim.not_source]
    if found:
        buffers = ", ".join(dict.fromkeys(claim.buffer for claim in found))
        what = f"{buffers}: compared with the kernel after the first passes, since {found[0].not_source}"
        yield _indented("intent", what, "yellow")


def _head(result: Result) -> Text:
    name = _name(result)
    if result.is_silent:
        counts = f" ({counts_in_words([result])})" if result.claims else ""
        return Text.assemble(name, "  ", (f"lowers; nothing decided{counts}", "yellow"))
    if result.failure is None:
        worst = next((v for v in _WORST_FIRST if result.count(v)), "proved")
        return Text.assemble(name, "  ", (counts_in_words([result]), _STYLES[worst]))
    if result.excuse is not None:
        return Text.assemble(name, "  ", (f"{result.excuse.kind} error", "cyan"))
    return Text.assemble(name, "  ", ("not checked", "bold red"))


def _name(result: Result) -> str:
    run = result.run
    return result.saved or " ".join(part for part in (run.case, run.target, run.tilelang) if part)


def _indented(word: str, text: str, style: str) -> Text:
    return Text.assemble("    ", (word, style), f": {text}")


def _failure(result: Result) -> Iterator[Text]:
    failure = result.failure
    assert failure is not None
    where = f" ({failure.where})" if failure.where else ""
    yield _indented(failure.phase, f"{_cut(failure.message, _LINE)}{where}", "red")
    for line in failure.detail.splitlines():
        yield Text(f"        {_cut(line, _LINE)}", style="dim")
    if result.excuse is not None:
        yield _indented(result.excuse.kind, result.excuse.reason, "cyan")


def _box(result: Result, claim: Claim, finding: Finding, edges: Box) -> Panel:
    style = "cyan" if claim.excuse else "red"
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(overflow="fold")
    for key, value in _rows(result, claim, finding):
        rows.add_row(key, Text(value) if isinstance(value, str) else value)
    what = Text(finding.what[0].upper() + finding.what[1:] + ".", style="bold")
    excuse = f" ({claim.excuse.kind})" if claim.excuse else ""
    blamed = finding.blamed(result.run.tilelang)
    title = Text(f"{finding.rule} {finding.name}{excuse} [{blamed}]", style=f"bold {style}")
    return Panel(
        Group(what, Text(), rows),
        edges,
        title=title,
        title_align="left",
        border_style=style,
        expand=edges is not OPEN_BOX,
    )


def _rows(result: Result, claim: Claim, finding: Finding) -> Iterator[tuple[str, RenderableType]]:
    run = result.run
    yield "case", f"{run.case}, {run.target}, tilelang {run.tilelang}"
    if finding.origin is not None:
        yield "origin", finding.origin.words
    yield "source", claim.source.words
    if claim.source.text:
        yield "", Text(claim.source.text, style="bold")
    if claim.buffer != "?":
        yield "buffer", claim.buffer
    if finding.layout:
        yield "layout", finding.layout
    yield "found", finding.place
    if finding.excerpt is not None:
        yield "TIR", _excerpt(finding.excerpt)
    yield "witness", finding.words
    if isinstance(finding.witness, Element) and finding.witness.steps:
        yield "trace", "\n".join(finding.witness.steps)
    if finding.others:
        yield "also", ", ".join(finding.others)
    for words in also_in_words(claim):
        yield "also", words
    if claim.executed is not None:
        yield "executed", claim.executed.words
    if claim.excuse is not None:
        yield claim.excuse.kind, claim.excuse.reason
    yield "to do", _advice(claim, finding)
    yield "more", explain_of(finding.rule)


def _advice(claim: Claim, finding: Finding) -> str:
    known = finding.right_from
    own = finding.blame == "author" or (finding.advice and not finding.pass_name)  # no pass makes it
    ways = (
        [f"use TileLang {known}, which has it right"] if known else [] if own else ["try another release of TileLang"]
    )
    ways += [f"set the pass config {finding.pass_config} to True"] if finding.pass_config else []
    return "; or ".join([*ways, *([finding.advice] if finding.advice else [])])


def _excerpt(excerpt: Excerpt) -> Table:
    """The atomic's line and its neighbours, cut where long; what all lines are indented by is left out."""
    indent = min((len(line) - len(line.lstrip()) for line in excerpt.lines if line.strip()), default=0)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, justify="right")
    table.add_column(overflow="fold")
    for number, line in enumerate(excerpt.lines, excerpt.first):
        here = number == excerpt.marked
        shown = _cut(line[indent:], _LINE if here else _NEIGHBOUR)
        style = "bold red" if here else "dim"
        table.add_row(Text(f"{'> ' if here else ''}{number}", style), Text(shown, style))
    return table


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3] + "..."
