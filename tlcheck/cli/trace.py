"""`tlcheck trace`: where an element of an output comes from, as written and as lowered side by side."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from math import prod
from pathlib import Path

from tlcheck.cli.execution_options import ExecutionOptions, block
from tlcheck.cli.lowered import lowered
from tlcheck.cli.options import CASE_HELP, LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, count, read
from tlcheck.cli.projects import selections
from tlcheck.config import read_config
from tlcheck.errors import UsageError
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.onset import Levels
from tlcheck.execute.compare.origin import origin_of
from tlcheck.execute.compare.output_outcome import Difference
from tlcheck.execute.compare.trace import Traced, place_of, trace
from tlcheck.execute.compare.writers import Writer
from tlcheck.execute.memory.plain import index_of
from tlcheck.execute.memory.state import NOWHERE
from tlcheck.execute.memory.values import is_poison
from tlcheck.execute.observe.races import Race
from tlcheck.execute.request import ALL, LOWERED, SOURCE, Request
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.execute.worlds.kernel_traits import has_copies
from tlcheck.exits import exit_code
from tlcheck.reasons import INCOMPLETE, NOT_EXECUTED
from tlcheck.report import trace_report as report
from tlcheck.report.console import console
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.checking import saved, with_inputs
from tlcheck.verdicts.origins import origin_in_words
from tlcheck.verdicts.own_inputs import on_own_inputs
from tlcheck.verdicts.results import read_snapshot

_ELEMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*\[([-\d\s,]+)\]\s*")
_DEPTH = 8


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="+", metavar="CASE", help=CASE_HELP)
    parser.add_argument("--element", metavar="'NAME[I, J]'", help="element of an output (default: the first wrong one)")
    parser.add_argument(
        "--depth", type=count, default=_DEPTH, metavar="N", help=f"how many writes to go back (default: {_DEPTH})"
    )
    parser.add_argument(
        "--seed", type=int, metavar="S", help="inputs of this seed (default: the first that is wrong, or 0)"
    )
    parser.add_argument("--block", type=block, metavar="X,Y,Z", help="only this block")
    add_lowering_arguments(parser)
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the report (default: text)"
    )


def run(args: argparse.Namespace) -> int:
    wanted = _element(args.element)
    config = read_config(Path.cwd())
    request = ExecutionOptions(seed=args.seed, block=args.block).certain_request(config)
    lowering = read(LoweringOptions, args)
    settings = with_inputs(lowering.settings(config), request)
    chosen = selections(args.cases, config, lowering.for_kernel_files)
    found: list[report.Shown] = []
    failures: list[str] = []
    for done in chain(saved(chosen), lowered([s for s in chosen if not s.is_snapshot], settings)):
        if done.snapshot is None:
            assert done.failure is not None
            failures.append(f"{done.run.case} {done.run.target}: {done.failure.phase}: {done.failure.message}")
            continue
        snapshot = read_snapshot(done.snapshot)
        try:
            own = on_own_inputs(done, snapshot, request)
            traced, origin = _traced(snapshot, wanted, own, args.depth)
            found.append(report.Shown(done.run, snapshot, traced, origin))
        except Stopped as stopped:
            failures.append(f"{done.run.case} {done.run.target}: {stopped}")
    code = exit_code(found=any(not one.traced.agree for one in found), unchecked=bool(failures))
    if args.format == "json":
        sys.stdout.write(report.render_json(found, code))
    else:
        for one in found:
            report.write(console(), one)
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


def _traced(
    snapshot: Snapshot, wanted: tuple[str, tuple[int, ...]] | None, request: Request, depth: int
) -> tuple[Traced, str]:
    """The trace, and its origin in words, empty where that is not known. Raises Stopped for nothing to trace."""
    if SOURCE not in snapshot.checkpoints:
        raise Stopped("the snapshot has no source", INCOMPLETE)
    if wanted is not None:
        name, index = wanted
        element = place_of(snapshot, request, name, index)
        traced = trace(snapshot, request, name, index, element, depth)
        if traced.agree and has_copies(snapshot.checkpoints[LOWERED]):
            early = trace(snapshot, request, name, index, element, depth, early=True)
            traced = traced if early.agree else early
        values = traced.source.value, traced.lowered.value
        author = Writer(traced.block, -1, traced.source.origin or NOWHERE)
        found = Difference(element, index, traced.seed, *values, 1, author=author, early=traced.early)
        return traced, "" if traced.agree else _origin(snapshot, request, name, found, ())
    name, found, races = _wrong(snapshot, request)
    request = replace(request, seeds=(found.seed,), blocks=found.blocks or request.blocks)
    traced = trace(snapshot, request, name, found.index, found.element, depth, early=found.early)
    return traced, "" if traced.agree else _origin(snapshot, request, name, found, races)


def _origin(snapshot: Snapshot, request: Request, name: str, found: Difference, races: Sequence[Race]) -> str:
    """Return where the difference begins, in words; empty where that is not known."""
    levels = Levels(snapshot, request)
    origin = origin_of(snapshot, levels.showing(found.blocks, found.seed), name, found, races)
    return "" if origin is None else origin_in_words(snapshot, origin, races).words


def _wrong(snapshot: Snapshot, request: Request) -> tuple[str, Difference, Sequence[Race]]:
    """The first element that is wrong as lowered, its output and all races: of the usual blocks, else of all.

    Where none is, the first one of the source that depends on what nothing wrote. Raises Stopped without one.
    """
    reason, unset = "", None
    for blocks in dict.fromkeys((request.blocks, request.blocks if isinstance(request.blocks, tuple) else ALL)):
        execution = execute(snapshot, replace(request, blocks=blocks))
        for outcome in execution.outputs:
            if outcome.difference is not None:
                return outcome.name, outcome.difference, execution.races
            reason = reason or outcome.reason
            unset = unset or _unset(snapshot, request, execution, outcome.name)
    if unset is not None:
        return *unset, ()
    raise Stopped(f"{reason or 'no element is wrong as lowered'}; name one: --element 'NAME[I, J]'", NOT_EXECUTED)


def _unset(snapshot: Snapshot, request: Request, execution: Execution, name: str) -> tuple[str, Difference] | None:
    """An element of an output that is poison in the source."""
    left = execution.left.get(name)
    if left is None or left.values.dtype.kind != "f" or not is_poison(left.values).any():
        return None
    element = int(left.elements[is_poison(left.values)][0])
    shape = levels_of(snapshot, request).invocations().shapes[name]
    index = tuple(map(int, index_of(element, shape))) if element < prod(shape) else (element,)
    return name, Difference(element, index, execution.seeds[0], "poison", "poison", 0)
