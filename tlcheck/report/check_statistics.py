"""Report what was found by rule and by reason, with the number of kernels: for runs with many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from tlcheck.reasons import kind_of_code
from tlcheck.verdicts.kernels import CheckedKernel, kernels_of
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.summary import summary_in_words


def write_statistics(console: Console, results: list[Result], notes: list[str]) -> None:
    """Print a line for each rule that is broken and each reason for *not decided*, then the summary."""
    for line in statistics(kernels_of(results)):
        console.print(Text(line), highlight=False, soft_wrap=True)
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"), highlight=False, soft_wrap=True)
    console.print(Text(summary_in_words(results), style="bold"), highlight=False, soft_wrap=True)


def statistics(kernels: Sequence[CheckedKernel]) -> Iterator[str]:
    """`U018     3 kernels  source-race: the source races with itself`."""
    found: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    for kernel in kernels:
        for problem, _ in kernel.problems:
            found.setdefault(problem.rule, set()).add(kernel.name)
            names[problem.rule] = problem.name
        for opened, _ in kernel.open:
            found.setdefault(opened.code, set()).add(kernel.name)
            kind = kind_of_code(opened.code)
            names[opened.code] = opened.reason if kind is None else f"{kind.name}: {kind.title}"
    for code in sorted(found):
        number = len(found[code])
        yield f"{code:<6}  {number:>5} kernel{'s' if number > 1 else ' '}  {names[code]}"
