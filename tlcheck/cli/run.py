"""`tlcheck run`: run the compiled kernels on a GPU and compare them with torch."""

from __future__ import annotations

import argparse
import sys
from bdb import BdbQuit
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from tlcheck import exits
from tlcheck.cli.device import GpuOptions, add_device_arguments, without_device
from tlcheck.cli.execution_options import ExecutionOptions
from tlcheck.cli.interruption import end_code
from tlcheck.cli.lowered import working
from tlcheck.cli.options import CASE_HELP, LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, read
from tlcheck.cli.projects import one_project
from tlcheck.errors import UsageError
from tlcheck.files import make_folder, require_place, save
from tlcheck.report import cpu_report, device_json, device_text, times_report
from tlcheck.report.console import console
from tlcheck.run import circumstances, device_results
from tlcheck.run.blame import Blame, blamed, exit_code
from tlcheck.run.examination import Examination, RunRequest, compare_times, examine
from tlcheck.run.sanitizer import TOOLS
from tlcheck.run.suite import NoDeviceError
from tlcheck.verdicts.acceptance import project_acceptances
from tlcheck.verdicts.words import plural

_HINT = "; --device cpu executes the case without one"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="*", metavar="CASE", help=CASE_HELP)
    add_lowering_arguments(parser, archs="auto, the arch of the device")
    add_device_arguments(parser)
    parser.add_argument(
        "--device",
        choices=("gpu", "cpu"),
        default="gpu",
        help="cpu: source and lowered kernel, without a GPU (default: gpu)",
    )
    parser.add_argument(
        "--as-written", action="store_true", help="with --device cpu: only the source; T.print and breakpoint() work"
    )
    parser.add_argument("--sanitize", metavar="LIST", default="", help="tools of compute-sanitizer, such as memcheck")
    parser.add_argument("--bench", action="store_true", help="time the kernels and their torch baselines")
    parser.add_argument(
        "--from", dest="old", metavar="TOOLCHAIN", help="compare the times with those of --to, in turns"
    )
    parser.add_argument("--to", dest="new", metavar="TOOLCHAIN", help="the other toolchain of --from")
    parser.add_argument("--record", type=Path, metavar="DIR", help="keep the inputs and outputs of every case")
    parser.add_argument("--replay", type=Path, metavar="DIR", help="run on kept inputs, compare with kept outputs")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the report (default: text)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the report as JSON there as well")


@dataclass(frozen=True)
class ReportOptions:
    """The format of the report on standard output, and the file that has it as JSON too."""

    format: str = "text"
    output: Path | None = None

    def write(self, report: str, show: Callable[[Console], None]) -> None:
        """The report as JSON where asked, else for people; and into a file."""
        if self.output is not None:
            save(self.output, report)
        if self.format == "json":
            sys.stdout.write(report)
        else:
            show(console())


def run(args: argparse.Namespace) -> int:
    request, report = _request(args), ReportOptions(args.format, args.output)
    if args.device == "cpu":
        return _blame(request, report, as_written=args.as_written)
    try:
        return _compare(request, report, args.old, args.new) if args.old else _run(request, report)
    except NoDeviceError as missing:
        return without_device(missing, if_available=args.if_available, hint=_HINT)


def _run(request: RunRequest, report: ReportOptions) -> int:
    examinations: list[Examination] = []
    try:
        with working(loudness=request.settings.loudness) as (folder, watcher):
            for each in examine(request, folder, watcher):
                examinations.append(each)
    except KeyboardInterrupt as ended:
        if examinations:
            _write_examinations(request, report, examinations, end_code(ended))
        raise
    code = device_results.exit_code(result for examination in examinations for result in examination.results)
    _write_examinations(request, report, examinations, code)
    return code


def _write_examinations(
    request: RunRequest, report: ReportOptions, examinations: Sequence[Examination], code: int
) -> None:
    passed_over = sum(examination.passed_over for examination in examinations)
    notes = [f"{plural(passed_over, 'file')} without a case for this device passed over"] if passed_over else []
    text = device_json.render(examinations, _commit(request), notes, code)
    report.write(text, lambda console: device_text.write(console, examinations, notes))


def _blame(request: RunRequest, report: ReportOptions, *, as_written: bool) -> int:
    prints = sys.stderr if report.format == "json" else sys.stdout
    talks = partial(print, file=prints, flush=True) if as_written else None
    found: list[Blame] = []
    try:
        with working(loudness=request.settings.loudness) as (folder, watcher):
            for each in blamed(request, folder, watcher, talks):
                found.append(each)
    except BdbQuit as quitted:  # the user has left the debugger
        raise KeyboardInterrupt from quitted
    except KeyboardInterrupt as ended:
        if found:
            _write_blames(request, report, found, end_code(ended))
        raise
    code = exit_code(found)
    _write_blames(request, report, found, code)
    return code


def _write_blames(request: RunRequest, report: ReportOptions, found: Sequence[Blame], code: int) -> None:
    report.write(cpu_report.render(found, _commit(request), code), lambda console: cpu_report.write(console, found))


def _compare(request: RunRequest, report: ReportOptions, old: str, new: str) -> int:
    """Time the cases with both toolchains: one that has become slower is a finding."""
    with working(loudness=request.settings.loudness) as (folder, watcher):
        found = compare_times(request, old, new, folder, watcher)
    changes = [comparison.change for comparison in found.comparisons]
    slower = any(change is not None and change.verdict == "slower" for change in changes)
    code = exits.exit_code(found=slower, unchecked=None in changes)
    text = times_report.render(found, _commit(request), code)
    report.write(text, lambda console: times_report.write(console, found))
    return code


def _commit(request: RunRequest) -> str:
    return circumstances.commit(request.selections[0].path.absolute().parent)


def _request(args: argparse.Namespace) -> RunRequest:
    """Everything that can be wrong on the command line is found here. Raises UsageError."""
    if bool(args.old) != bool(args.new):
        raise UsageError("--from and --to belong together")
    gpu = read(GpuOptions, args)
    _require_gpu(args, gpu)
    if args.output is not None:
        require_place(args.output)
    tools = _tools(args.sanitize)
    lowering = read(LoweringOptions, args)
    if lowering.arch == "auto":
        lowering = replace(lowering, arch=None)
    found = one_project(args.cases)
    config = found.config
    settings = lowering.settings(config)
    if lowering.arch is None and args.device == "gpu":
        settings = replace(settings, arch=())  # the device's, whatever else the project checks for
    options = replace(
        gpu.device_options(settings),
        sanitize=tools,
        bench=args.bench,
        seeds=gpu.seeds or (1 if args.device == "cpu" else 3),
        record=_folder(args.record, "--record", make=True),
        replay=_folder(args.replay, "--replay", make=False),
    )
    execute = ExecutionOptions().request(config)
    return RunRequest(found.selections, settings, options, project_acceptances(config), execute)


def _require_gpu(args: argparse.Namespace, gpu: GpuOptions) -> None:
    """Raises UsageError for options that need a GPU where none is used."""
    named = (
        ("--sanitize", args.sanitize),
        ("--bench", args.bench),
        ("--from", args.old),
        ("--record", args.record),
        ("--replay", args.replay),
    )
    given = [name for name, value in named if value]
    given += [name for name in gpu.given if name not in ("--seeds", "--exact")]
    if args.device == "cpu" and given:
        raise UsageError(f"{given[0]} needs a GPU, and has no meaning with --device cpu")
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
