"""The report for people: a line for each kernel that is fine, a clickable line for each problem, a summary."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from tlcheck.lower.runs import line_of, near
from tlcheck.report.console import ENDLESS
from tlcheck.report.finding_details import details
from tlcheck.verdicts.brief_names import brief_names
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.kernels import CheckedKernel, is_clean, kernels_of
from tlcheck.verdicts.problems import Problem, marked_lines
from tlcheck.verdicts.results import Result, exit_code
from tlcheck.verdicts.summary import summary_in_words
from tlcheck.verdicts.words import content_in_words, counts_in_words

_LINE = 400  # characters shown of a message
_SHORTEST = 0.05  # seconds that are told
_NAMED = 3  # of the runs that an interruption left undone
_UNREFERENCED = "no reference: tlcheck compared the compiler with the source, not the source with what you meant"


@dataclass(frozen=True)
class TextForm:
    """How much is shown. wrong_only: no kernel in which all is well. verbose: every claim, TIR, trace, whole names."""

    wrong_only: bool = False
    verbose: bool = False


USUAL = TextForm()


def write(console: Console, results: list[Result], notes: list[str], form: TextForm = USUAL) -> None:
    """Print the report."""
    names = {} if form.verbose else brief_names(dict.fromkeys(result.run.case for result in results))
    left = [result for result in results if result.is_interrupted]
    for kernel in kernels_of(result for result in results if not result.is_interrupted):
        if form.wrong_only and not exit_code(kernel.results, strict=True):
            continue
        for line in _kernel(console, kernel, form.verbose, names):
            _print(console, line)
    if not form.wrong_only:
        for line in _unreferenced(results):
            _print(console, line)
    for line in _interrupted(left, names):
        _print(console, line)
    for note in notes:
        _print(console, Text(f"note: {note}", style="yellow"))
    _print(console, _summary(results))


def _print(console: Console, line: Text) -> None:
    """Texts of kernels are no markup."""
    console.print(line, highlight=False, soft_wrap=True)


def _summary(results: Sequence[Result]) -> Text:
    """Green where nothing is wrong and nothing is open."""
    fine = bool(results) and not exit_code(results, strict=True)
    wrong = exit_code(results, strict=False)
    return Text(summary_in_words(results), style="bold green" if fine else "bold red" if wrong else "bold yellow")


def _interrupted(results: Sequence[Result], names: Mapping[str, str]) -> Iterator[Text]:
    """Yield all that the user's interruption left undone, in one line however much it is."""
    if results:
        cases = [result.saved or names.get(result.run.case, result.run.case) for result in results]
        left = [f"{case} {result.run.target}".strip() for case, result in zip(cases, results, strict=True)]
        more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        yield Text(f"not checked, interrupted: {', '.join(left[:_NAMED])}{more}", style="bold red")


def _kernel(console: Console, kernel: CheckedKernel, verbose: bool, names: Mapping[str, str]) -> Iterator[Text]:
    """names: those that are shown instead of long ones."""
    for words, targets in kernel.clean:
        taken = kernel.seconds(targets)
        time = f"  {taken:.1f} s" if taken >= _SHORTEST else ""
        yield Text.assemble(("ok", "green"), f"  {_name(kernel, targets, names)}  {words}", (time, "dim"))
    for problem, targets in kernel.problems:
        yield from _problem(console, problem, targets, names)
        if verbose:
            yield from _verbose(kernel, problem, console.width)
        yield Text()
    for opened, targets in kernel.open:
        yield Text.assemble(f"{_name(kernel, targets, names)}  ", (opened.words, "yellow"))
    for result in kernel.failed:
        yield from _failure(result, names)
    for note, targets in kernel.notes:
        yield Text.assemble(f"{_name(kernel, targets, names)}  ", ("note", "yellow"), f": {note}")
    for result in kernel.results:
        yield from (_broken(result, broken, names) for broken in result.broken)
        if verbose:
            yield from _claims(result)


def _name(kernel: CheckedKernel, targets: Sequence[str], names: Mapping[str, str]) -> str:
    case = kernel.results[0].run.case
    name = kernel.name.replace(case, names.get(case, case))
    return "  ".join(part for part in (name, " ".join(targets)) if part)


def _problem(console: Console, problem: Problem, targets: Sequence[str], names: Mapping[str, str]) -> Iterator[Text]:
    style = "yellow" if problem.excuse.startswith("warning") else "cyan" if problem.excuse else "red"
    title, blamed = (problem.title, f"bold {style}"), (f"   {problem.blamed_for(targets)}", style)
    head = Text.assemble((f"{problem.place}: ", "bold"), title, blamed)
    for number, line in enumerate(head.wrap(console, console.width - 3) if console.width < ENDLESS else [head]):
        yield Text.assemble("   " if number else "", line)
    yield from (Text(line, style="bold") for line in marked_lines(problem.marks, min(console.width, 100)))
    for heading, words in problem.rows:
        yield from _wrapped(heading, names.get(words, words) if heading == "kernel" else words, console.width)


def _wrapped(heading: str, text: str, width: int) -> Iterator[Text]:
    """A row below the first line of a problem; on a terminal its further lines stand below its first."""
    said = f"{heading}: " if heading else ""
    lines = text.splitlines() or [""]
    if width < ENDLESS:
        lines = [part for line in lines for part in textwrap.wrap(line, max(20, width - 5 - len(said))) or [""]]
    for number, line in enumerate(lines):
        yield Text.assemble("   ", (said if not number else " " * len(said), "dim"), line)


def _verbose(kernel: CheckedKernel, problem: Problem, width: int) -> Iterator[Text]:
    """The TIR, the trace and what was executed."""
    for result in kernel.results:
        for claim in result.claims:
            if (
                claim.finding is not None
                and result.run.target == problem.target
                and claim.finding.words == problem.witness
            ):
                for heading, words in details(claim, claim.finding):
                    yield from _wrapped(heading, words, width)
                return


def _failure(result: Result, names: Mapping[str, str]) -> Iterator[Text]:
    """Yield why a kernel was not checked, at the line where it was raised."""
    failure, run = result.failure, result.run
    assert failure is not None
    line = line_of(run, failure)
    place = result.saved or f"{near(run.file)}{f':{line}' if line else ''}"
    what = failure.message if failure.kind == "usage" else f"{failure.phase}: {failure.message}"
    release = f"TileLang {run.tilelang}" if run.tilelang else ""
    name = names.get(run.case, run.case).removeprefix(f"{run.file}::") if run.name else ""
    where = ", ".join(part for part in (name, release, run.target) if part)
    known = f"fails as {result.excuse.kind}" if result.excuse is not None else "not checked"
    style = "cyan" if result.excuse is not None else "bold red"
    yield Text.assemble((f"{place}: ", "bold"), (f"{known}: {_cut(what, _LINE)}", style), f"   [{where}]")
    for detail in failure.detail.splitlines():
        yield Text(f"   {_cut(detail, _LINE)}", style="dim")
    if failure.where:
        yield Text(f"   raised at {failure.where}", style="dim")
    if result.excuse is not None:
        yield Text(f"   {result.excuse.kind}: {result.excuse.reason}", style="cyan")


def _broken(result: Result, broken: str, names: Mapping[str, str]) -> Text:
    case = names.get(result.run.case, result.run.case)
    name = " ".join(part for part in (case, result.run.target) if part)
    return Text.assemble(f"{name}  ", ("unexpectedly fine", "bold red"), f": {broken}")


def _unreferenced(results: Sequence[Result]) -> Iterator[Text]:
    """Yield what agreement with the source does not say, and how to have it said."""
    found = dict.fromkeys(r.run.case for r in results if is_clean(r) and not r.saved and not r.run.has_reference)
    if found:
        first = next((case for case in found if "::" in case and "[" not in case), "FILE::NAME")
        number = f" ({len(found)} kernels)" if len(found) > 1 else ""
        yield Text(f"    {_UNREFERENCED}{number}", style="dim")
        yield Text(f"    `tlcheck case {first}` writes the stub of a case with a reference", style="dim")


def _claims(result: Result) -> Iterator[Text]:
    """Yield what is counted and clean, for `-v`."""
    name = " ".join(part for part in (result.saved or result.run.case, result.run.target) if part)
    if result.claims:
        yield Text(f"    {name}: {counts_in_words([result])}", style="dim")
    clean = [claim for claim in result.claims if claim.executed is not None and claim.is_clean]
    named = {"atomic": "content of additions to ", "output": "", "order": "order of ", "legality": "accesses of "}
    outputs = [claim for claim in clean if claim.kind == "output" and claim.verdict == "proved"]
    agreed = [claim for claim in clean if claim not in outputs]
    parts = [f"{before}{_buffers(agreed, kind)}" for kind, before in named.items() if _buffers(agreed, kind)]
    if clean and clean[0].executed is not None:
        proven = [f"proved: {_buffers(outputs, 'output')}"] if outputs else []
        said = "; ".join([*proven, *([f"agreed: {'; '.join(parts)}"] if parts else [])])
        yield Text(f"    {said} ({clean[0].executed.words})", style="dim")
    reach: dict[str, list[str]] = {}
    for claim in clean:
        if claim.scope is not None:
            reach.setdefault(claim.scope.words, []).append(claim.buffer)
    for words, buffers in reach.items():
        yield Text(f"    scope of {', '.join(buffers)}: {words}", style="dim")
    proved = [c for c in result.claims if c.kind == "atomic" and c.verdict == "proved" and c.executed is None]
    if proved:
        yield Text(f"    proved: {_buffers(proved, 'atomic')}: {content_in_words(proved[0])}", style="dim")


def _buffers(claims: Sequence[Claim], kind: str) -> str:
    return ", ".join(dict.fromkeys(claim.buffer for claim in claims if claim.kind == kind))


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3] + "..."
