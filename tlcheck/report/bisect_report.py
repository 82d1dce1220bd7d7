"""Report what bisecting found, for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console
from rich.text import Text

from tlcheck.execute.request import Request
from tlcheck.gate.bisect import FAILS, RIGHT, UNDECIDED, WRONG, BisectRow, Point
from tlcheck.gate.bisect_passes import Guilty, Passes
from tlcheck.gate.compared_passes import ComparedPasses
from tlcheck.gate.outcome import AGREES, DIFFERS
from tlcheck.lower.runs import near
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.commands import bisect_passes_of
from tlcheck.verdicts.results import Result

_STYLES = {RIGHT: "green", WRONG: "bold red", UNDECIDED: "yellow", FAILS: "red"}
_IN_WORDS = {AGREES: "agrees with the reference", DIFFERS: "differs from the reference", UNDECIDED: "undecided"}
_STATE, _WIDTH = 9, 100  # characters of the longest state, and of messages
_FEW, _LONGEST = 6, 160  # lines of a difference that are shown, and characters of each


@dataclass(frozen=True)
class Bisected:
    """A record of what bisecting found: of releases, of pass configurations, of the passes of one compiler, or of two.

    results: of what was lowered for releases, else of what could not be lowered. remarks: on scripts.
    """

    rows: tuple[BisectRow, ...] = ()
    configs: tuple[BisectRow, ...] = ()
    passes: tuple[Passes, ...] = ()
    compared: tuple[ComparedPasses, ...] = ()
    results: tuple[Result, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether something is, anywhere."""
        return any(point.state == WRONG for row in self._judged for point in row.points)

    @property
    def is_silent(self) -> bool:
        """Whether nothing is decided of any kernel."""
        return all(point.state != RIGHT for row in self._judged for point in row.points)

    @property
    def _judged(self) -> list[BisectRow]:
        of_two = [passes for compared in self.compared for passes in compared.judged]
        return [*self.rows, *self.configs, *(found.row for found in (*self.passes, *of_two))]


def write(console: Console, found: Bisected, *, verbose: bool = False) -> None:
    """Print the rows, and of passes those that change something. verbose: with all of the TIR that they change."""
    for row in found.rows:
        _print(console, *_of_releases(row))
    _print(console, *_next(found.rows))
    for row in found.configs:
        _print(console, *_of_configs(row))
    told: dict[tuple[object, ...], str] = {}  # what is wrong with a kernel -> the case that it was said of
    for passes in found.passes:
        _print(console, *_of_passes(passes, told, verbose))
    for compared in found.compared:
        _print(console, *_of_two(compared, verbose))
    _print(console, *(Text(line, style="red") for line in _unlowered(found)))
    for remark in found.remarks:
        _print(console, Text(remark, style="dim"))


def _unlowered(found: Bisected) -> Iterator[str]:
    """Yield the kernels that have no passes to look at; among releases they have a state of their own."""
    shown = {compared.case for compared in found.compared}
    for result in found.results if not (found.rows or found.configs) else ():
        run, failure = result.run, result.failure
        if failure is not None and run.case not in shown:
            where = f" ({near(failure.where)})" if failure.where else ""
            yield f"{run.case} {run.target}, tilelang {run.tilelang}: fails  {failure.phase}: {failure.message}{where}"


def _print(console: Console, *lines: Text) -> None:
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _of_releases(row: BisectRow) -> Iterator[Text]:
    yield Text(f"{row.case} {row.target}".rstrip(), style="bold")
    yield from _points(row)
    yield from _transitions(row)
    yield from _unexecuted(row)
    yield from _as_written(row)


def _points(row: BisectRow) -> Iterator[Text]:
    width = max(len(point.at) for point in row.points)
    for point in row.points:
        why = _why(point)
        space = " " * (_STATE - len(point.word)) if why else ""
        yield Text.assemble(f"  {point.at:<{width}}  ", _word(point), space, why)


def _of_configs(row: BisectRow) -> Iterator[Text]:
    """The kernel as it is and with each of its pass configurations flipped, and which of these make a difference."""
    yield Text(f"{row.case} {row.target}, tilelang {row.release}", style="bold")
    yield from _points(row)
    first, *others = row.points
    differ = [f"{point.word} with {point.at}" for point in others if point.state != first.state]
    if not others:
        yield Text("  it sets no pass configuration to true or false", style="bold")
    elif differ:
        yield Text(f"  {first.word} {first.at}, {', '.join(differ)}", style="bold")
    else:
        yield Text(f"  {first.word} with each of them the other way round", style="bold")


def _unexecuted(row: BisectRow) -> Iterator[Text]:
    """The releases whose outputs nobody has looked at."""
    names = [point.at for point in row.points if not point.executed]
    if names:
        some = f"{_span(names)}: {len(names)} releases" if len(names) > 1 else names[0]
        yield Text(f"  proofs alone in {some}, not executed (--blocks {Request().blocks} executes all)", style="dim")


def _as_written(row: BisectRow) -> Iterator[Text]:
    """Yield what the kernel as written is, where that was compared with the reference: each answer with releases."""
    points = [(point, point.source_answer) for point in row.points if point.source_answer is not None]
    if not points:
        return
    answers = list(dict.fromkeys(answer.answer for _, answer in points))
    runs = [(answer, list(own)) for answer, own in groupby(points, key=lambda pair: pair[1].answer)]
    said = [f"{_IN_WORDS[answer]} in {_span([p.at for p, _ in own])}" for answer, own in runs]
    if len(answers) == 1:
        advice = ": the kernel's author, or the reference" if answers[0] == DIFFERS else ""
        reason = points[0][1].why if not advice else ""
        words = f"{_IN_WORDS[answers[0]]} in all of them{advice}" + (f" ({reason})" if reason else "")
        yield Text(f"  as written: {words}", style="bold" if advice else "dim")
    else:
        why = ": TileLang traces the same file to another kernel" if DIFFERS in answers else ""
        yield Text(f"  as written: {', '.join(said)}{why}", style="bold")


def _span(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _next(rows: Sequence[BisectRow]) -> Iterator[Text]:
    """The command that names the pass: each once, for the newest release in which a claim is refuted."""
    newest = (next((p.result for p in reversed(row.points) if p.wrong), None) for row in rows)
    runs = [result.run for result in newest if result is not None]
    for command in dict.fromkeys(map(bisect_passes_of, runs)):
        yield Text(f"by which pass: {command}")


def _word(point: Point) -> tuple[str, str]:
    return point.word, _STYLES.get(point.state, "dim")


def _why(point: Point) -> str:
    differs = point.source_answer is not None and point.source_answer.answer == DIFFERS
    if point.wrong or differs:
        own = [f"as written: {point.source_answer.why[:_WIDTH]}"] if point.source_answer is not None and differs else []
        return "  " + "; ".join([*own, *(_finding_in_words(claim) for claim in point.wrong)])
    if point.result is not None and point.result.failure is not None:
        failure = point.result.failure
        return f"  {failure.phase}: {failure.message[:_WIDTH]}"
    undecided = [a for a in point.result.claims if a.verdict == "undecided"] if point.result else []
    return f"  {undecided[0].buffer}: {undecided[0].reason[:_WIDTH]}" if undecided else ""


def _finding_in_words(claim: Claim) -> str:
    found = claim.finding
    assert found is not None
    return f"{claim.buffer}: {found.rule} {found.name}" + (f" after {found.pass_name}" if found.pass_name else "")


def _transitions(row: BisectRow) -> Iterator[Text]:
    for before, after in row.transitions:
        yield Text(f"  {before.word} in {before.at}, {after.word} in {after.at}", style="bold")
    if not row.transitions:
        yield Text(f"  {_in_all(row)} in all of them", style="bold")


def _in_all(row: BisectRow) -> str:
    """The word for all points of a row of one state: one that only agrees says it of all."""
    return next((point.word for point in row.points if point.agreed), row.points[0].word)


def _of_passes(found: Passes, told: dict[tuple[object, ...], str], verbose: bool) -> Iterator[Text]:
    """A script compiles a kernel for several arguments: what is equally wrong with all of these is told once."""
    row = found.row
    yield Text(f"{row.case} {row.target}, tilelang {row.release}", style="bold")
    first, last = row.points[0], row.points[-1]
    yield Text.assemble(f"  {len(row.points)} passes, {first.at} to {last.at}: ", _word(last))
    for before, after in row.transitions:
        yield Text(f"  {before.word} after {before.at}, {after.word} after {after.at}")
    first_of_it = told.setdefault(_what_is_wrong(found), row.case)
    if found.guilty and first_of_it != row.case:
        yield Text(f"  {'; '.join(dict.fromkeys(map(_culprit, found.guilty)))}: as in {first_of_it}", style="bold red")
    else:
        yield from _of_all_guilty(found.guilty, verbose)
    if not found.guilty:
        yield Text("  no pass makes it wrong", style="green")


def _what_is_wrong(found: Passes) -> tuple[object, ...]:
    row, guilty = found.row, found.guilty
    wrong = [(g.pass_name, g.number, g.claim.source.line, _finding_in_words(g.claim)) for g in guilty]
    return row.case.partition("[")[0], row.target, row.release, *wrong


def _of_two(compared: ComparedPasses, verbose: bool) -> Iterator[Text]:
    yield Text(f"{compared.case} {compared.target}: {compared.old} and {compared.new}", style="bold")
    first = compared.first
    if first is None:
        yield Text("  both end with the same TIR", style="green")
    else:
        only = {(True, False): compared.old, (False, True): compared.new}
        side = only.get((first.old is not None, first.new is not None))
        name = first.name or "the kernel before the first pass"
        numbers = "" if side or not first.name else f" (passes {first.old} and {first.new})"
        yield Text(f"  they differ since {name}{numbers}" + (f", only in {side}" if side else ""), style="bold")
        buffers = [name for passes in compared.judged for g in passes.guilty for name in g.buffers]
        yield from _of_difference(compared.difference, buffers, verbose)
    for title, passes in zip((compared.old, compared.new), compared.judged, strict=True):
        last = passes.row.points[-1]
        yield Text.assemble(f"  {title}: ", _word(last), _why(last) if last.state == FAILS else "")
        yield from _of_all_guilty(passes.guilty, verbose)


def _of_difference(lines: Sequence[str], buffers: Sequence[str], verbose: bool) -> Iterator[Text]:
    """All lines, or the first of those that are about the buffers."""
    shown = list(lines) if verbose else _about(lines, buffers)
    for line in shown:
        text = line if verbose or len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
        yield Text(f"    {text}", style={"-": "red", "+": "green"}.get(line[:1], "dim"))
    if len(shown) < len(lines):
        yield Text(f"    {len(lines) - len(shown)} more lines of TIR: -v", style="dim")


def _about(lines: Sequence[str], buffers: Sequence[str]) -> list[str]:
    """The first lines of a difference that were changed and name one of the buffers; without such, the first ones."""
    changed = [line for line in lines if line.startswith(("-", "+")) and not line.startswith(("---", "+++"))]
    named = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in buffers)) if buffers else None
    own = [line for line in changed if named is not None and named.search(line)]
    return (own or changed)[:_FEW]


def _culprit(guilty: Guilty) -> str:
    if not guilty.number:
        return f"{guilty.pass_name}, which puts such an order into a kernel, is not among the passes"
    if guilty.pass_name:
        number = "" if guilty.pass_name.startswith("pass ") else f" (pass {guilty.number})"
        return f"{guilty.pass_name}{number} makes it wrong"
    return "no pass makes it wrong, the code generator does: the CUDA computes something else than the last TIR says"


def _of_all_guilty(guilty: Sequence[Guilty], verbose: bool) -> Iterator[Text]:
    """Each pass once, with all that it makes wrong, then what it changed."""
    for place in dict.fromkeys((g.number, g.pass_name) for g in guilty):
        own = [g for g in guilty if (g.number, g.pass_name) == place]
        yield Text(f"  {_culprit(own[0])}", style="bold red")
        for note in dict.fromkeys(note for g in own for note in g.notes):
            yield Text(f"    {note}", style="bold")
        for one in own:
            finding = one.claim.finding
            assert finding is not None
            yield Text(f"    {one.claim.buffer}, {one.claim.source.words}: {finding.rule} {finding.what}")
            yield Text(f"    {finding.words}")
        shown = [g for g in own if g.claim.kind != "order" or len(own) == 1]
        for difference in dict.fromkeys(g.difference for g in shown):
            buffers = [name for g in shown if g.difference == difference for name in g.buffers]
            yield from _of_difference(difference, buffers, verbose)
