"""`tlcheck trace`: where an element of an output comes from, as written and as lowered side by side."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path

from tlcheck.cli.execution import ExecutionOptions, block, on_own_inputs
from tlcheck.cli.lowered import lowered
from tlcheck.cli.options import CASE_HELP, LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, count, read
from tlcheck.cli.projects import selections
from tlcheck.config import read_config
from tlcheck.errors import UsageError
from tlcheck.execute.compare.outcome import Difference
from tlcheck.execute.compare.run import execute
from tlcheck.execute.compare.trace import Traced, place_of, trace
from tlcheck.execute.reasons import Stopped
from tlcheck.execute.request import ALL, LOWERED, SOURCE, Request
from tlcheck.execute.worlds.traits import has_copies
from tlcheck.exits import exit_code
from tlcheck.lower.runs import Run
from tlcheck.reasons import INCOMPLETE, NOT_EXECUTED
from tlcheck.report import trace_report as report
from tlcheck.report.console import console
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.checking import saved, with_inputs
from tlcheck.verdicts.results import read_snapshot

_ELEMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*\[([-\d\s,]+)\]\s*")
_DEPTH = 8


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="+", metavar="CASE", help=CASE_HELP)
    parser.add_argument(
        "--element", metavar="'NAME[I, J]'", help="of an output (default: the first that is wrong as lowered)"
    )
    parser.add_argument("--depth", type=count, default=_DEPTH, metavar="N", help=f"writes deep (default: {_DEPTH})")
    parser.add_argument(
        "--seed", type=int, metavar="S", help="inputs of this seed (default: the first that is wrong, or 0)"
    )
    parser.add_argument("--block", type=block, metavar="X,Y,Z", help="only this block")
    add_lowering_arguments(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the report (default: text)")


def run(args: argparse.Namespace) -> int:
    wanted = _element(args.element)
    config = read_config(Path.cwd())
    request = ExecutionOptions(seed=args.seed, block=args.block).certain_request(config)
    lowering = read(LoweringOptions, args)
    settings = with_inputs(lowering.settings(config), request)
    chosen = selections(args.cases, config, lowering.for_kernel_files)
    found: list[tuple[Run, Snapshot, Traced]] = []
    failures: list[str] = []
    for done in chain(saved(chosen), lowered([s for s in chosen if not s.is_snapshot], settings)):
        if done.snapshot is None:
            assert done.failure is not None
            failures.append(f"{done.run.case} {done.run.target}: {done.failure.phase}: {done.failure.message}")
            continue
        snapshot = read_snapshot(done.snapshot)
        try:
            found.append(
                (done.run, snapshot, _traced(snapshot, wanted, on_own_inputs(done, snapshot, request), args.depth))
            )
        except Stopped as stopped:
            failures.append(f"{done.run.case} {done.run.target}: {stopped}")
    code = exit_code(found=any(not t.agree for *_, t in found), unchecked=bool(failures))
    if args.format == "json":
        sys.stdout.write(report.render_json(found, code))
    else:
        for run_of, snapshot, traced in found:
            report.write(console(), run_of, snapshot, traced)
    sys.stdout.flush()
    for reason in failures:
        print(f"tlcheck: not traced: {reason}", file=sys.stderr)
    return code


def _element(text: str | None) -> tuple[str, tuple[int, ...]] | None:
    """Raises UsageError."""
    if text is None:
        return None
    found = _ELEMENT.fullmatch(text)
    try:
        index = tuple(int(part) for part in found[2].split(",")) if found else ()
    except ValueError:
        index = ()
    if found is None or not index:
        raise UsageError(f"--element {text}: expected a tensor and an index, such as 'dQ[0, 0, 0, 1]'")
    return found[1], index


def _traced(snapshot: Snapshot, wanted: tuple[str, tuple[int, ...]] | None, request: Request, depth: int) -> Traced:
    """Raises Stopped where there is nothing to trace."""
    if SOURCE not in snapshot.checkpoints:
        raise Stopped("the snapshot has no source", INCOMPLETE)
    if wanted is not None:
        name, index = wanted
        element = place_of(snapshot, request, name, index)
        late = trace(snapshot, request, name, index, element, depth)
        if not late.agree or not has_copies(snapshot.checkpoints[LOWERED]):
            return late
        early = trace(snapshot, request, name, index, element, depth, early=True)
        return late if early.agree else early
    name, found = _wrong(snapshot, request)
    request = replace(request, seeds=(found.seed,), blocks=found.blocks or request.blocks)
    return trace(snapshot, request, name, found.index, found.element, depth, early=found.early)


def _wrong(snapshot: Snapshot, request: Request) -> tuple[str, Difference]:
    """The first element that is wrong as lowered, and its output: of the usual blocks, else of all.

    Raises Stopped where none is.
    """
    reason = ""
    for blocks in dict.fromkeys((request.blocks, request.blocks if isinstance(request.blocks, tuple) else ALL)):
        execution = execute(snapshot, replace(request, blocks=blocks))
        for outcome in execution.outputs:
            if outcome.difference is not None:
                return outcome.name, outcome.difference
            reason = reason or outcome.reason
    raise Stopped(f"{reason or 'no element is wrong as lowered'}; name one: --element 'NAME[I, J]'", NOT_EXECUTED)
