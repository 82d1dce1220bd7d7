"""`tlcheck diff A B`: what differs between two kernels, two releases, two goldens, two dumps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tlcheck.cli.lowered import lowered
from tlcheck.cli.options import CASE_HELP, LoweringOptions, add_form_arguments, add_lowering_arguments, form_of
from tlcheck.cli.parser import Parser, read
from tlcheck.cli.projects import one_project
from tlcheck.cli.scripts import add_script_arguments, scripts_of
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.golden.comparison import GoldenComparison, compare_goldens, focused, grouped
from tlcheck.golden.costs import REQUEST
from tlcheck.golden.diff_sides import of_path, of_snapshot
from tlcheck.golden.entry import Golden
from tlcheck.golden.recording import with_cost
from tlcheck.lower.runs import Lowered, of_saved
from tlcheck.lower.scripts import Scripts
from tlcheck.report.console import console
from tlcheck.report.golden_text import write_groups_and_notes
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.checking import with_inputs
from tlcheck.verdicts.results import read_snapshot


def add_arguments(parser: Parser) -> None:
    what = f"{CASE_HELP}, a golden (.tir), or a folder that `tlcheck dump` or `tlcheck golden` wrote"
    parser.add_argument("before", metavar="A", help=what)
    parser.add_argument("after", metavar="B", help="the same, to be compared with A")
    add_lowering_arguments(parser)
    add_script_arguments(parser)
    parser.add_argument(
        "--at",
        default="",
        metavar="CHECKPOINT",
        help="show the text at this checkpoint, or at `all` (default: lower-tile-op, or the first that differs)",
    )
    parser.add_argument("--cost", action="store_true", help="also execute the kernels, and compare their costs")
    add_form_arguments(parser)


def run(args: argparse.Namespace) -> int:
    failures: list[str] = []
    lowering, scripts = read(LoweringOptions, args), scripts_of(args)
    sides = [_side(side, lowering, scripts, failures, cost=args.cost) for side in (args.before, args.after)]
    pairs, notes = _paired(*sides)
    found = {name: _compared(name, *pair, args.at) for name, pair in pairs.items()}
    groups = grouped(found)
    changed = sum(len(group.names) for group in groups if not group.comparison.is_same)
    summary = f"{len(pairs)} compared, {changed} changed"
    write_groups_and_notes(console(), groups, [*notes, *failures], summary, form_of(args))
    return exit_code(found=bool(changed or notes), unchecked=bool(failures))


def _side(
    text: str, lowering: LoweringOptions, scripts: Scripts, failures: list[str], *, cost: bool
) -> Mapping[str, Golden]:
    """Return one side's goldens by the name of their run. Raises UsageError."""
    found = of_path(Path(text))
    return dict(found if found is not None else _lowered(text, lowering, scripts, failures, cost=cost))


def _lowered(
    text: str, lowering: LoweringOptions, scripts: Scripts, failures: list[str], *, cost: bool
) -> Iterator[tuple[str, Golden]]:
    project = one_project([text], lowering.for_kernel_files)
    chosen = project.selections
    if chosen[0].is_snapshot:
        snapshot = read_snapshot(chosen[0].path)
        done = of_saved(chosen[0].path, snapshot)
        yield f"{snapshot.file}::{snapshot.case} {snapshot.target}", _golden_of(done, snapshot, cost=cost)
        return
    remarks: list[str] = []
    settings = lowering.settings(project.config, scripts)
    for done in lowered(chosen, with_inputs(settings, REQUEST if cost else None), remarks):
        name = f"{done.run.case} {done.run.target}"
        if done.snapshot is not None:
            yield name, _golden_of(done, read_snapshot(done.snapshot), cost=cost)
        elif done.failure is not None:
            failures.append(f"{name} {done.run.tilelang}: not lowered: {done.failure.message}")
    for remark in remarks:
        print(f"note: {remark}", file=sys.stderr)


def _golden_of(done: Lowered, snapshot: Snapshot, *, cost: bool) -> Golden:
    golden = of_snapshot(snapshot)
    return with_cost(golden, done, snapshot) if cost else golden


def _paired(
    before: Mapping[str, Golden], after: Mapping[str, Golden]
) -> tuple[dict[str, tuple[Golden, Golden]], list[str]]:
    """Return what is to be compared by name, and what has no counterpart. One on either side are counterparts."""
    if len(before) == len(after) == 1:
        (one, first), (other, second) = next(iter(before.items())), next(iter(after.items()))
        return {one if one == other or not other else f"{one} -> {other}": (first, second)}, []
    pairs = {name: (golden, after[name]) for name, golden in before.items() if name in after}
    notes = [f"{name}: only in A" for name in before if name not in after]
    return pairs, [*notes, *(f"{name}: only in B" for name in after if name not in before)]


def _compared(name: str, before: Golden, after: Golden, at: str) -> GoldenComparison:
    """Raises UsageError where a side has no such checkpoint or its facts cannot be read."""
    common = [checkpoint for checkpoint in before.texts() if checkpoint in after.texts()]
    if not common or (at and at not in (*common, "all")):
        has = ", ".join(common) or "nothing in common"
        raise UsageError(f"{name}: no {at or 'text'!r} on both sides; there is {has}")
    try:
        return focused(compare_goldens(before, after), at)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
