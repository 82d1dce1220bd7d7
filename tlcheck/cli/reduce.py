"""`tlcheck reduce`: the smallest kernel with the same finding."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tlcheck.cli.execution_options import ExecutionOptions, add_execution_arguments
from tlcheck.cli.interruption import Interruption, stoppable
from tlcheck.cli.lowered import working
from tlcheck.cli.options import LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, positive, read
from tlcheck.cli.scripts import add_script_arguments, scripts_of
from tlcheck.config import read_config
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.lower.runs import Lowered
from tlcheck.lower.selection import select
from tlcheck.lower.warm import WarmProcesses
from tlcheck.remedy.reducing import Reduced, Reducer
from tlcheck.report import reduce_text
from tlcheck.report.outputs import Outputs
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.results import Result

_SECONDS = 1200.0


def add_arguments(parser: Parser) -> None:
    add_reducing_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file of the kernel (default: stdout)")


def add_reducing_arguments(parser: Parser) -> None:
    """Add what commands have in common that reduce a kernel."""
    parser.add_argument("case", metavar="CASE", help="FILE::NAME[@TOOLCHAIN], or a script")
    parser.add_argument(
        "--seconds", type=positive, default=_SECONDS, metavar="S", help="wall-clock seconds for trials (default: 1200)"
    )
    add_lowering_arguments(parser, cluster=True)
    add_execution_arguments(parser)
    add_script_arguments(parser)


def run(args: argparse.Namespace) -> int:
    target = Outputs(("text",), args.output)
    with stoppable() as interruption:
        found = reduced(args, interruption)
    target.deliver("reduce", {"text": lambda file: reduce_text.write(file, found)})
    return interruption.code(exit_code())


def reduced(args: argparse.Namespace, interruption: Interruption) -> Reduced:
    """Check a kernel, and reduce it. Raises UsageError where there is nothing to reduce."""
    with wrong_kernel(args, interruption, args.seconds) as (reducer, lowered, result):
        return reducer.reduced(lowered, result)


@contextmanager
def wrong_kernel(
    args: argparse.Namespace, interruption: Interruption, seconds: float
) -> Iterator[tuple[Reducer, Lowered, Result]]:
    """Check a kernel; yield it with what reduces it. Files are there until the end.

    seconds: of wall-clock time for trials; 0 leaves the kernel as it is. Raises UsageError where no release is to
    blame for anything.
    """
    config, chosen = read_config(Path.cwd()), select([args.case])
    if any(selection.is_snapshot for selection in chosen):
        raise UsageError("a saved snapshot has no source to reduce: name its kernel, FILE::NAME")
    execution, lowering = read(ExecutionOptions, args), read(LoweringOptions, args)
    settings = lowering.settings(config, scripts_of(args)).saying(execution.words)
    request = execution.certain_request(config)
    with working(loudness=settings.loudness) as (folder, watcher), WarmProcesses() as warm:
        settings = replace(settings, warm=warm)
        with checking(settings, Policy(excusing=False, execute=request), folder, watcher) as checks:
            interruption.add(checks.stop)
            done = sorted(checks.results(chosen), key=lambda each: each[1].run.position)
        wrong = [(one, result) for one, result in done if any(c.blames_compiler for c in result.claims)]
        if not wrong:
            raise UsageError(_nothing([result for _, result in done]))
        reducer = Reducer(
            settings, request, folder, watcher, seconds, interruption.add, lambda: bool(interruption.number)
        )
        yield reducer, *wrong[0]


def _nothing(results: list[Result]) -> str:
    """Return why there is nothing to reduce, of the first kernel that says more than that it is right."""
    for result in results:
        if result.failure is not None:
            return f"{result.run.case}: not checked: {result.failure.phase}: {result.failure.message}"
        if any(claim.kind == "source" and claim.finding is not None for claim in result.claims):
            return f"{result.run.case}: the finding is in the kernel itself, not in TileLang (`tlcheck check` shows it)"
    return "nothing is wrong: there is no finding to reduce"
