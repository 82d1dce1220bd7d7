"""`tlcheck report`: the issue for TileLang about a kernel that it has wrong."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from tlcheck.cli.interruption import stoppable
from tlcheck.cli.parser import Parser
from tlcheck.cli.reduce import add_reducing_arguments, wrong_kernel
from tlcheck.exits import exit_code
from tlcheck.lower.runs import Lowered
from tlcheck.remedy.issue import IssueSearch
from tlcheck.remedy.search import WrongKernel
from tlcheck.report import issue_markdown
from tlcheck.report.outputs import Outputs
from tlcheck.verdicts.results import Result, read_snapshot


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--reduced", action="store_true", help="the kernel is small enough: take it as it is")
    add_reducing_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file of the issue (default: stdout)")


def run(args: argparse.Namespace) -> int:
    target = Outputs(("text",), args.output)
    seconds = 0.0 if args.reduced else args.seconds
    with stoppable() as interruption, wrong_kernel(args, interruption, seconds) as (reducer, lowered, result):
        reduced = replace(reducer, thorough=True).reduced(lowered, result)
        issue = IssueSearch.of(reducer, reduced, _whole(lowered, result) if seconds else None).issue()
    target.deliver("report", {"text": lambda file: issue_markdown.write(file, issue)})
    return interruption.code(exit_code())


def _whole(lowered: Lowered, result: Result) -> WrongKernel | None:
    """The kernel as it was; None where its script alone can make it."""
    if lowered.snapshot is None or result.run.is_captured:
        return None
    return WrongKernel(result, read_snapshot(lowered.snapshot))
