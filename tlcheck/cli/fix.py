"""`tlcheck fix`: find the smallest change that makes a miscompiled kernel right."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from tlcheck.cli.execution_options import ExecutionOptions, add_execution_arguments
from tlcheck.cli.interruption import Interruption, stoppable
from tlcheck.cli.lowered import working
from tlcheck.cli.options import LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, read
from tlcheck.config import read_config
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.lower.selection import select
from tlcheck.lower.warm import WarmProcesses
from tlcheck.remedy.search import Workarounds, WorkaroundSearch, WrongKernel
from tlcheck.report import fix_json, fix_text
from tlcheck.report.console import console
from tlcheck.report.outputs import Outputs
from tlcheck.report.shared import put
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.results import Result, read_snapshot

FORMATS = ("text", "json")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="+", metavar="CASE", help="FILE::NAME[@TOOLCHAIN], or a file of cases")
    parser.add_argument("--all", action="store_true", help="try all changes, even after one has helped")
    add_lowering_arguments(parser, cluster=True)
    add_execution_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help="format of the report (default: text)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file of the report (default: stdout)")


def run(args: argparse.Namespace) -> int:
    target = Outputs((args.format,), args.output)
    with stoppable() as interruption:
        results, found = _searched(args, interruption)
    mended = all(each.found for each in found)
    failed = any(result.failure is not None for result in results)
    code = interruption.code(exit_code(found=not mended, unchecked=failed))
    target.deliver(
        "fix",
        {
            "text": lambda file: fix_text.write(console(file), results, found),
            "json": lambda file: put(file, fix_json.render(results, found, code)),
        },
    )
    return code


def _searched(args: argparse.Namespace, interruption: Interruption) -> tuple[list[Result], list[Workarounds]]:
    """Check the kernels, and look for workarounds of those that a release has wrong. Raises UsageError."""
    config, chosen = read_config(Path.cwd()), select(args.cases)
    if any(selection.is_snapshot for selection in chosen):
        raise UsageError("a saved snapshot cannot be lowered with a change: name its kernel, FILE::NAME")
    execution, lowering = read(ExecutionOptions, args), read(LoweringOptions, args)
    settings = lowering.settings(config).saying(execution.words)
    policy = Policy(excusing=False, execute=execution.request(config))
    with working(loudness=settings.loudness) as (folder, watcher), WarmProcesses() as warm:
        settings = replace(settings, warm=warm)
        with checking(settings, policy, folder, watcher) as checks:
            interruption.add(checks.stop)
            done = sorted(checks.results(chosen), key=lambda each: each[1].run.position)
        search = WorkaroundSearch(
            settings, policy, folder, watcher, args.all, interruption.add, lambda: bool(interruption.number)
        )
        found = [
            search.search(WrongKernel(result, read_snapshot(lowered.snapshot)))
            for lowered, result in done
            if lowered.snapshot is not None and any(claim.blames_compiler for claim in result.claims)
        ]
    return [result for _, result in done], found
