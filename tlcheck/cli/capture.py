"""`tlcheck capture`: run scripts as they are, and keep the kernels that they compile as case files and snapshots."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from tlcheck.cli.device import without_device
from tlcheck.cli.interruption import stoppable
from tlcheck.cli.lowered import lowering_session
from tlcheck.cli.options import LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, count, read
from tlcheck.cli.projects import one_project
from tlcheck.cli.scripts import add_live_argument, add_script_arguments, on_device, scripts_of
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.files import make_folder
from tlcheck.lower.captured import write
from tlcheck.lower.runs import Lowered
from tlcheck.lower.scripts import is_script
from tlcheck.run.suite import NoDeviceError

_RECORD_LIMIT = 1024  # MiB


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="+", metavar="SCRIPT", help="FILE[@TOOLCHAIN] or a folder: files without cases")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for what is written")
    parser.add_argument("--force", action="store_true", help="overwrite case files that are there")
    add_lowering_arguments(parser)
    add_script_arguments(parser)
    add_live_argument(parser)
    parser.add_argument(
        "--record-limit",
        type=count,
        metavar="MIB",
        help=f"with --live: keep at most this much of one call's tensors (default: {_RECORD_LIMIT})",
    )


def run(args: argparse.Namespace) -> int:
    lowering = read(LoweringOptions, args)
    project = one_project(args.cases, lowering.for_kernel_files)
    chosen = project.selections
    for selection in chosen:
        if not is_script(selection) and not selection.found:
            raise UsageError(f"{selection.path} is no script: a whole file without cases is run and captured")
    scripts = [selection for selection in chosen if is_script(selection)]
    make_folder(args.output)
    if args.record_limit is not None and not args.live:
        raise UsageError("--record-limit has a meaning with --live only")
    limit = (args.record_limit or _RECORD_LIMIT) * 2**20 if args.live else 0
    how = replace(scripts_of(args), live=args.live, record_limit=limit)
    try:
        settings = on_device(lowering.settings(project.config, how), chosen, lowering.arch)
    except NoDeviceError as missing:
        return without_device(missing)
    # beside the output: recorded calls are large, and are moved; absolute: a script may go to another folder
    with lowering_session(settings, args.output.absolute()) as session, stoppable(session.stop) as interruption:
        kernels = sorted(session.lower(scripts), key=lambda lowered: lowered.run.position)
        written = write(kernels, args.output, force=args.force, pythonpath=settings.pythonpath)
    return interruption.code(_told(written, session.remarks))


def _told(lowered: list[tuple[Lowered, str]], remarks: list[str]) -> int:
    """Say what was written, and return the exit code."""
    for one, what in lowered:
        if one.failure is not None:
            what = one.failure.message + (f" ({one.failure.where})" if one.failure.where else "")
        print(f"{one.run.case} {one.run.target} {one.run.tilelang}  {what}")
    for remark in remarks:
        print(f"note: {remark}")
    kinds = [one.failure.kind for one, _ in lowered if one.failure is not None]
    return exit_code(usage="usage" in kinds or not lowered, unchecked=bool(kinds))
