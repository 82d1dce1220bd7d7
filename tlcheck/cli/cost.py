"""`tlcheck cost`: what each access of a kernel costs, counted by executing it on the CPU."""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from pathlib import Path

from tlcheck.cli.execution import ExecutionOptions, on_own_inputs
from tlcheck.cli.lowered import lowered
from tlcheck.cli.options import CASE_HELP, LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, count, read
from tlcheck.cli.projects import selections
from tlcheck.config import read_config
from tlcheck.cost.measure import BLOCKS, cost_of
from tlcheck.cost.model import KernelCost
from tlcheck.execute.reasons import Stopped
from tlcheck.execute.request import ALL
from tlcheck.exits import exit_code
from tlcheck.lower.runs import Run
from tlcheck.report import cost_json, cost_text
from tlcheck.report.console import console
from tlcheck.verdicts.checking import saved, with_inputs
from tlcheck.verdicts.results import read_snapshot


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="+", metavar="CASE", help=CASE_HELP)
    parser.add_argument(
        "--blocks", type=_blocks, default=BLOCKS, metavar="N", help=f"blocks that run, or `all` (default: {BLOCKS})"
    )
    parser.add_argument("--all", action="store_true", help="every access site, not only the first ones")
    add_lowering_arguments(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the report (default: text)")


def run(args: argparse.Namespace) -> int:
    config = read_config(Path.cwd())
    request = ExecutionOptions(blocks=args.blocks, seeds=1).certain_request(config)
    lowering = read(LoweringOptions, args)
    settings = with_inputs(lowering.settings(config), request)
    chosen = selections(args.cases, config, lowering.for_kernel_files)
    found: list[tuple[Run, str, KernelCost]] = []
    failures: list[str] = []
    for done in chain(saved(chosen), lowered([s for s in chosen if not s.is_snapshot], settings)):
        if done.snapshot is None:
            assert done.failure is not None
            failures.append(f"{done.run.case} {done.run.target}: {done.failure.phase}: {done.failure.message}")
            continue
        snapshot = read_snapshot(done.snapshot)
        try:
            own = on_own_inputs(done, snapshot, request)
            found.append((done.run, own.inputs, cost_of(snapshot, own)))
        except Stopped as stopped:
            failures.append(f"{done.run.case} {done.run.target}: {stopped}")
    code = exit_code(found=any(not cost.resident for *_, cost in found), unchecked=bool(failures))
    if args.format == "json":
        sys.stdout.write(cost_json.render_json(found, failures, code))
    else:
        for run_of, inputs, cost in found:
            cost_text.write(console(), run_of, inputs, cost, everything=args.all)
    sys.stdout.flush()
    for reason in failures:
        print(f"tlcheck: not counted: {reason}", file=sys.stderr)
    return code


def _blocks(text: str) -> int:
    return ALL if text == "all" else count(text)
