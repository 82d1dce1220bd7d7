"""`tlcheck dump`: the TIR of a kernel at its checkpoints, and its CUDA source."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tlcheck.cli.lowered import lowered
from tlcheck.cli.options import CASE_HELP, LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, read
from tlcheck.cli.projects import one_project
from tlcheck.cli.scripts import add_script_arguments, scripts_of
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.files import replace_all, save
from tlcheck.lower.runs import Lowered, near, unique_name
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.report.listing import CUDA, listings
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.results import read_snapshot


def add_arguments(parser: Parser) -> None:
    parser.add_argument("case", metavar="CASE", help=CASE_HELP)
    add_lowering_arguments(parser)
    add_script_arguments(parser)
    parser.add_argument(
        "--at", default="", metavar="CHECKPOINT", help="one checkpoint, or `cuda`; with --every-pass a pass"
    )
    parser.add_argument("--every-pass", action="store_true", help="the TIR after each pass instead of at checkpoints")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="a file for one output, a folder for several (default: stdout)",
    )


def run(args: argparse.Namespace) -> int:
    may_hold_any = args.every_pass or args.case.endswith(".json")
    if args.at and not may_hold_any and args.at not in (*Checkpoint, CUDA):
        raise UsageError(f"no checkpoint {args.at!r}: there are {', '.join((*Checkpoint, CUDA))}")
    lowering = read(LoweringOptions, args)
    project = one_project([args.case], lowering.for_kernel_files)
    settings = lowering.settings(project.config, scripts_of(args), every_pass=args.every_pass)
    snapshots, failures = _snapshots(project.selections, settings, args.verbose)
    found = {name: listings(snapshot, args.at) for name, snapshot in snapshots.items()}
    for name, texts in found.items():
        if not texts:
            raise UsageError(f"{name} has no {args.at!r}; it has {', '.join(snapshots[name].checkpoints)}")
    _write(found, args.output)
    for failure in failures:
        print(failure, file=sys.stderr)
    return exit_code(unchecked=bool(failures))


def _snapshots(
    chosen: Sequence[Selection], settings: Settings, with_traceback: bool
) -> tuple[dict[str, Snapshot], list[str]]:
    """Return snapshots by a name that tells them apart, and a line for each run that has none."""
    if chosen[0].is_snapshot:
        return {chosen[0].path.name.removesuffix(".json").removesuffix(".snapshot"): read_snapshot(chosen[0].path)}, []
    snapshots: dict[str, Snapshot] = {}
    failures: list[str] = []
    remarks: list[str] = []
    for done in lowered(chosen, settings, remarks):
        failures += _failure(done, with_traceback)
        file = done.snapshot or done.until
        if file is not None:
            snapshots[unique_name(done.run.slug, snapshots)] = read_snapshot(file)
    for remark in remarks:
        print(f"note: {remark}", file=sys.stderr)
    return snapshots, failures


def _failure(done: Lowered, with_traceback: bool) -> Iterator[str]:
    failure, run = done.failure, done.run
    if failure is not None:
        yield f"{run.case} {run.target} {run.tilelang}: {failure.phase}: {failure.message}"
        if failure.where:
            yield f"    at {near(failure.where)}"
        yield from (f"    {line}" for line in (failure.trace if with_traceback else failure.detail).splitlines())
    yield from (f"{run.case} {run.target}: no checkpoint {name}: {why}" for name, why in done.unsaved.items())


def _write(found: dict[str, dict[str, str]], output: Path | None) -> None:
    """One text to the file, several into a folder, of which each run has its own where there are several."""
    several = len(found) > 1
    texts = {Path(run if several else "", name): text for run, named in found.items() for name, text in named.items()}
    if output is None:
        print("\n".join(texts.values()), end="")
    elif len(texts) == 1 and not output.is_dir():
        save(output, next(iter(texts.values())))
    else:
        replace_all({output / name: text for name, text in texts.items()})
        print(f"{len(texts)} files in {output}")
