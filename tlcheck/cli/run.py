"""`tlcheck run`: run the compiled kernels on a GPU and compare them with torch."""

from __future__ import annotations

import argparse
import sys
from bdb import BdbQuit
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from tlcheck import exits
from tlcheck.cli.execution import request_of
from tlcheck.cli.interruption import end_code
from tlcheck.cli.lowered import working
from tlcheck.cli.options import (
    CASE_HELP,
    add_device_arguments,
    add_lowering_arguments,
    device_options,
    settings_of,
    without_device,
)
from tlcheck.cli.projects import one_project
from tlcheck.errors import UsageError
from tlcheck.execute.observe import console as kernels
from tlcheck.files import make_folder, require_place, save
from tlcheck.report import blame, device_json, device_text, times_report
from tlcheck.report.console import console
from tlcheck.run import environment, results
from tlcheck.run.blame import Blame, blamed, exit_code
from tlcheck.run.examination import Examination, RunRequest, compare_times, examine
from tlcheck.run.sanitizer import TOOLS
from tlcheck.run.suite import NoDeviceError
from tlcheck.verdicts.acceptance import Acceptances, read_acceptances
from tlcheck.verdicts.words import plural

_HINT = "; --device cpu executes the case without one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cases", nargs="*", metavar="CASE", help=CASE_HELP)
    add_lowering_arguments(parser, archs="auto, the arch of the device")
    add_device_arguments(parser)
    parser.add_argument(
        "--device", choices=("gpu", "cpu"), default="gpu", help="cpu: execute as written and as lowered, without a GPU"
    )
    parser.add_argument(
        "--as-written", action="store_true", help="with --device cpu: as written alone; T.print and breakpoint() work"
    )
    parser.add_argument("--sanitize", metavar="LIST", default="", help="tools of compute-sanitizer, such as memcheck")
    parser.add_argument("--bench", action="store_true", help="time the kernels and their torch baselines")
    parser.add_argument(
        "--from", dest="old", metavar="TOOLCHAIN", help="compare the times with those of --to, in turns"
    )
    parser.add_argument("--to", dest="new", metavar="TOOLCHAIN", help="see --from")
    parser.add_argument("--record", type=Path, metavar="DIR", help="keep the inputs and outputs of every case")
    parser.add_argument("--replay", type=Path, metavar="DIR", help="run on kept inputs, compare with kept outputs")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the report (default: text)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the report as JSON there as well")
    parser.set_defaults(runs_snapshots=True)


def run(args: argparse.Namespace) -> int:
    request = _request(args)
    if args.device == "cpu":
        return _blame(args, request)
    try:
        return _compare(args, request) if args.old else _run(args, request)
    except NoDeviceError as missing:
        return without_device(missing, if_available=args.if_available, hint=_HINT)


def _run(args: argparse.Namespace, request: RunRequest) -> int:
    examinations: list[Examination] = []
    try:
        with working(loudness=request.settings.loudness) as (folder, watcher):
            for each in examine(request, folder, watcher):
                examinations.append(each)
    except KeyboardInterrupt as ended:
        if examinations:
            _write_examinations(args, request, examinations, end_code(ended))
        raise
    code = results.exit_code(result for examination in examinations for result in examination.results)
    _write_examinations(args, request, examinations, code)
    return code


def _write_examinations(
    args: argparse.Namespace, request: RunRequest, examinations: Sequence[Examination], code: int
) -> None:
    passed_over = sum(examination.passed_over for examination in examinations)
    notes = [f"{plural(passed_over, 'file')} without a case for this device passed over"] if passed_over else []
    report = device_json.render(examinations, _commit(request), notes, code)
    _write(args, report, lambda console: device_text.write(console, examinations, notes))


def _blame(args: argparse.Namespace, request: RunRequest) -> int:
    said = sys.stderr if args.format == "json" else sys.stdout
    talks = kernels.Console(lambda line: print(line, file=said, flush=True)) if args.as_written else None
    found: list[Blame] = []
    try:
        with working(loudness=request.settings.loudness) as (folder, watcher):
            for each in blamed(request, folder, watcher, talks):
                found.append(each)
    except BdbQuit as quitted:  # the user has left the debugger
        raise KeyboardInterrupt from quitted
    except KeyboardInterrupt as ended:
        if found:
            _write_blames(args, request, found, end_code(ended))
        raise
    code = exit_code(found)
    _write_blames(args, request, found, code)
    return code


def _write_blames(args: argparse.Namespace, request: RunRequest, found: Sequence[Blame], code: int) -> None:
    _write(args, blame.render(found, _commit(request), code), lambda console: blame.write(console, found))


def _compare(args: argparse.Namespace, request: RunRequest) -> int:
    """Time the cases with both toolchains: one that has become slower is a finding."""
    with working(loudness=request.settings.loudness) as (folder, watcher):
        found = compare_times(request, args.old, args.new, folder, watcher)
    changes = [comparison.change for comparison in found.comparisons]
    slower = any(change is not None and change.verdict == "slower" for change in changes)
    code = exits.exit_code(found=slower, unchecked=None in changes)
    report = times_report.render(found, _commit(request), code)
    _write(args, report, lambda console: times_report.write(console, found))
    return code


def _commit(request: RunRequest) -> str:
    return environment.commit(request.selections[0].path.absolute().parent)


def _request(args: argparse.Namespace) -> RunRequest:
    """Everything that can be wrong on the command line is found here. Raises UsageError."""
    if bool(args.old) != bool(args.new):
        raise UsageError("--from and --to belong together")
    _require_gpu(args)
    if args.output is not None:
        require_place(args.output)
    tools = _tools(args.sanitize)
    if args.arch == "auto":
        args.arch = None
    found = one_project(args, args.cases)
    config = found.config
    settings = settings_of(args, config)
    if args.arch is None and args.device == "gpu":
        settings = replace(settings, arch=())  # the device's, whatever else the project checks for
    options = replace(
        device_options(args, settings),
        sanitize=tools,
        bench=args.bench,
        seeds=args.seeds or (1 if args.device == "cpu" else 3),
        record=_folder(args.record, "--record", make=True),
        replay=_folder(args.replay, "--replay", make=False),
    )
    accepted = read_acceptances(config.acceptance) if config.acceptance else Acceptances()
    execute = request_of(argparse.Namespace(quick=False), config)
    return RunRequest(found.selections, settings, options, accepted, execute)


def _require_gpu(args: argparse.Namespace) -> None:
    """Raises UsageError for options that need a GPU where none is used."""
    names = ("sanitize", "bench", "old", "record", "replay", "repeats", "limit", "if_available")
    given = [name for name in names if getattr(args, name)]
    if args.device == "cpu" and given:
        option = "from" if given[0] == "old" else given[0].replace("_", "-")
        raise UsageError(f"--{option} needs a GPU, and has no meaning with --device cpu")
    if args.as_written and args.device != "cpu":
        raise UsageError("--as-written interprets the kernel: add --device cpu")


def _tools(text: str) -> tuple[str, ...]:
    tools = tuple(dict.fromkeys(tool.strip() for tool in text.split(","))) if text else ()
    for tool in tools:
        if tool not in TOOLS:
            raise UsageError(f"--sanitize {tool}: expected {', '.join(TOOLS)}, with commas between several")
    return tools


def _folder(path: Path | None, option: str, *, make: bool) -> str:
    if path is None:
        return ""
    if make:
        make_folder(path)
    elif not path.is_dir():
        raise UsageError(f"{option} {path}: no such folder")
    return str(path.absolute())


def _write(args: argparse.Namespace, report: str, show: Callable[[Console], None]) -> None:
    """The report as JSON where asked, else for people; and into a file."""
    if args.output is not None:
        save(args.output, report)
    if args.format == "json":
        sys.stdout.write(report)
    else:
        show(console())
