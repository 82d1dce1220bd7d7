"""`tlcheck capture`: run scripts as they are, and keep the kernels that they compile as case files and snapshots."""

from __future__ import annotations

import argparse
from pathlib import Path

from tlcheck.cli.interruption import stoppable
from tlcheck.cli.lowered import session
from tlcheck.cli.options import add_lowering_arguments, settings_of, without_device
from tlcheck.cli.projects import one_project
from tlcheck.cli.scripts import add_live_arguments, add_script_arguments, live_settings
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.files import make_folder
from tlcheck.lower.captured import write
from tlcheck.lower.runs import Lowered
from tlcheck.lower.scripts import is_script
from tlcheck.run.suite import NoDeviceError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cases", nargs="+", metavar="SCRIPT", help="FILE[@TOOLCHAIN] or a folder: files without cases")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for what is written")
    parser.add_argument("--force", action="store_true", help="overwrite case files that are there")
    add_lowering_arguments(parser)
    add_script_arguments(parser)
    add_live_arguments(parser, record=True)


def run(args: argparse.Namespace) -> int:
    found = one_project(args, args.cases)
    config, chosen = found.config, found.selections
    for selection in chosen:
        if not is_script(selection) and not selection.found:
            raise UsageError(f"{selection.path} is no script: a whole file without cases is run and captured")
    scripts = [selection for selection in chosen if is_script(selection)]
    make_folder(args.output)
    try:
        settings = live_settings(args, settings_of(args, config), chosen)
    except NoDeviceError as missing:
        return without_device(missing)
    # beside the output: recorded calls are large, and are moved; absolute: a script may go to another folder
    with session(settings, beside=args.output.absolute()) as opened, stoppable(opened.stop) as interruption:
        kernels = sorted(opened.lower(scripts), key=lambda lowered: lowered.run.position)
        written = write(kernels, args.output, force=args.force, pythonpath=settings.pythonpath)
    return interruption.code(_told(written, opened.remarks))


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
