"""`tlcheck bisect`: which releases have a kernel wrong, and which pass makes it so."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from tlcheck.cli.execution import add_quick_argument, request_of, with_inputs
from tlcheck.cli.lowered import judge, lowered, session
from tlcheck.cli.options import add_lowering_arguments, settings_of
from tlcheck.cli.projects import one_project
from tlcheck.config import Config
from tlcheck.errors import UsageError
from tlcheck.files import require_place
from tlcheck.gate import bisect
from tlcheck.gate.bisect import BisectRow
from tlcheck.gate.bisect_passes import Passes, judge_passes
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.report import bisect_report
from tlcheck.report.console import console
from tlcheck.report.outputs import Outputs
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.results import Result, read_snapshot

_CASE_HELP = "FILE[::NAME] or a folder of kernel files"
CLEAN, FOUND, NOT_CHECKED = 0, 1, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cases", nargs="+", metavar="CASE", help=_CASE_HELP)
    parser.add_argument("--from", dest="first", metavar="TOOLCHAIN", help="the first of the releases to look at")
    parser.add_argument("--to", dest="last", metavar="TOOLCHAIN", help="the last of them")
    parser.add_argument("--passes", action="store_true", help="look at the passes of the one --toolchain instead")
    add_quick_argument(parser)
    add_lowering_arguments(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the report (default: text)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the report there")


def run(args: argparse.Namespace) -> int:
    _check(args)
    if args.output is not None and not args.output.is_dir():
        require_place(args.output)
    found = one_project(args, args.cases)
    config, chosen = found.config, found.selections
    _require_files(chosen)
    settings = settings_of(args, config, every_pass=args.passes)
    rows: list[BisectRow] = []
    passes: list[Passes] = []
    results: list[Result] = []
    if args.passes:
        passes, results = _passes(chosen, settings, _policy(args, config))
    else:
        toolchains = bisect.range_of(args.first, args.last, config.requirements)
        results = _releases(chosen, toolchains, settings, _policy(args, config))
        rows = bisect.rows(results, toolchains)
    states = [point.state for row in [*rows, *(found.row for found in passes)] for point in row.points]
    code = FOUND if bisect.WRONG in states else NOT_CHECKED if any(r.failure for r in results) else CLEAN
    _write(args, rows, passes, code)
    return code


def _policy(args: argparse.Namespace, config: Config) -> Policy:
    """Neither an expectation nor an acceptance makes a release right."""
    return Policy(excusing=False, execute=request_of(args, config))


def _check(args: argparse.Namespace) -> None:
    """Raises UsageError for options that do not go together."""
    if args.passes and (args.first or args.last):
        raise UsageError("--passes looks at one --toolchain: leave out --from and --to")
    if not args.passes and not (args.first and args.last):
        raise UsageError("give --from and --to, or --passes and a --toolchain")
    if not args.passes and args.toolchain:
        raise UsageError("--toolchain goes with --passes: leave it out, or --from and --to")


def _require_files(chosen: Sequence[Selection]) -> None:
    """Raises UsageError for what names a toolchain itself."""
    for selection in chosen:
        if selection.toolchain or selection.is_snapshot:
            raise UsageError(f"{selection.path}: bisecting needs {_CASE_HELP}, without a toolchain")


def _releases(
    chosen: Sequence[Selection], toolchains: Sequence[str], settings: Settings, policy: Policy
) -> list[Result]:
    """Every case with every toolchain."""
    wanted = [replace(selection, toolchain=toolchain) for toolchain in toolchains for selection in chosen]
    inputs = with_inputs(settings, policy.execute)
    with judge(settings, policy) as judged, session(inputs, judged=judged) as made:
        return [result for _, result in judged.each(made.lower(wanted))]


def _passes(chosen: Sequence[Selection], settings: Settings, policy: Policy) -> tuple[list[Passes], list[Result]]:
    """Every case after each pass, and those that cannot be lowered. Raises UsageError if there are only these."""
    passes, failed = [], []
    with judge(settings, policy) as judged:
        for done in lowered(chosen, settings):
            if done.snapshot is None:
                failed.append(judged(done))
            else:
                passes.append(judge_passes(done.run, read_snapshot(done.snapshot)))
    if not passes:
        failure = next(result.failure for result in failed if result.failure)
        raise UsageError(f"nothing to judge: {failure.phase}: {failure.message}")
    return passes, failed


def _write(args: argparse.Namespace, rows: Sequence[BisectRow], passes: Sequence[Passes], code: int) -> None:
    def write(file: TextIO) -> None:
        if args.format == "json":
            file.write(bisect_report.as_json(rows, passes, code))
        else:
            bisect_report.write(console(file), rows, passes)

    Outputs((args.format,), args.output).write("bisect", {args.format: write})
