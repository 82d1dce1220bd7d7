"""The last line of a report: how many kernels are right, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlcheck.verdicts.claim import PROVED
from tlcheck.verdicts.kernels import CheckedKernel, is_clean, kernels_of
from tlcheck.verdicts.problems import Problem
from tlcheck.verdicts.results import Result

_OPEN = "not decided"


def summary_in_words(results: Sequence[Result]) -> str:
    """`1 ok, 1 bug in TileLang, 1 bug in your kernel, 1 not decided`."""
    return ", ".join(_parts(kernels_of(results))) or "nothing was checked"


def _parts(kernels: Sequence[CheckedKernel]) -> Iterator[str]:
    problems = [problem for kernel in kernels for problem, _ in kernel.problems]
    errors = [problem for problem in problems if problem.weight == "error"]
    hazards = [problem for problem in problems if problem.weight == "hazard"]
    failed = [[result.excuse for result in kernel.failed] for kernel in kernels if kernel.failed]
    numbers = (
        (sum(all(map(is_clean, kernel.results)) for kernel in kernels), f"ok{_proved(kernels)}", ""),
        (_bugs(errors, compilers=True), "bug in TileLang", "bugs in TileLang"),
        (_bugs(hazards, compilers=True), "hazard in TileLang", "hazards in TileLang"),
        (_bugs(problems, compilers=False), "bug in your kernel", "bugs in your kernel"),
        (sum(problem.excuse.startswith("expected") for problem in problems), "expected", ""),
        (sum(problem.excuse.startswith("accepted") for problem in problems), "accepted", ""),
        (sum(problem.excuse.startswith("warning") for problem in problems), "warning", "warnings"),
        (sum(bool(kernel.open) for kernel in kernels), _OPEN, ""),
        (sum(not all(excuses) for excuses in failed), "not checked", ""),
        (sum(all(excuses) for excuses in failed), "expected error", "expected errors"),
        (sum(len(r.broken) for kernel in kernels for r in kernel.results), "unexpectedly fine", ""),
    )
    for number, one, several in numbers:
        if number:
            codes = _codes(kernels) if one == _OPEN else ""
            yield f"{number} {several if several and number > 1 else one}{codes}"


def _proved(kernels: Sequence[CheckedKernel]) -> str:
    """` (3 outputs proved)`: outputs that hold in all blocks and on all inputs."""
    claims = [claim for kernel in kernels for result in kernel.results for claim in result.claims]
    number = sum(claim.kind == "output" and claim.verdict == PROVED for claim in claims)
    return f" ({number} output{'s' if number > 1 else ''} proved)" if number else ""


def _codes(kernels: Sequence[CheckedKernel]) -> str:
    """` (U001, U018)`: the reasons for what is not decided."""
    found = sorted({opened.code for kernel in kernels for opened, _ in kernel.open if opened.code})
    return f" ({', '.join(found)})" if found else ""


def _bugs(problems: Sequence[Problem], *, compilers: bool) -> int:
    return sum(problem.is_compilers == compilers and not problem.excuse for problem in problems)
