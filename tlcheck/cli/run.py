"""`tlcheck run`: run the compiled kernels on a GPU and compare them with torch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tlcheck.gpu.examination import Examination, Request

NOT_CHECKED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from tlcheck.cli.options import CASE_HELP, add_lowering_arguments

    parser.add_argument("cases", nargs="*", metavar="CASE", help=CASE_HELP)
    add_lowering_arguments(parser)
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="sets of fresh inputs (default: 3)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="runs of each set (default: 3)")
    parser.add_argument("--exact", action="store_true", help="also on inputs with exact sums: results must be equal")
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="seconds on the GPU for one case")
    parser.add_argument("--sanitize", metavar="LIST", default="", help="tools of compute-sanitizer, such as memcheck")
    parser.add_argument("--bench", action="store_true", help="time the kernels and their torch baselines")
    parser.add_argument("--record", type=Path, metavar="DIR", help="keep the inputs and outputs of every case")
    parser.add_argument("--replay", type=Path, metavar="DIR", help="run on kept inputs, compare with kept outputs")
    parser.add_argument("--if-available", action="store_true", help="without a GPU: a note and exit code 0, not 3")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the report (default: text)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the report as JSON there as well")


def run(args: argparse.Namespace) -> int:
    from tlcheck.gpu import results
    from tlcheck.gpu.suite import NoDeviceError

    request = _request(args)
    try:
        examinations = _examine(request)
    except NoDeviceError as missing:
        print(f"tlcheck: {'skipped' if args.if_available else 'not run'}: no GPU: {missing}", file=sys.stderr)
        return 0 if args.if_available else NOT_CHECKED
    found = [result for examination in examinations for result in examination.results]
    code = results.exit_code(found)
    _write(args, request, examinations, code)
    return code


def _request(args: argparse.Namespace) -> Request:
    """Everything that can be wrong on the command line is found here. Raises UsageError."""
    from dataclasses import replace

    from tlcheck.acceptance import Acceptances, read_acceptances
    from tlcheck.cli.options import selections, settings_of
    from tlcheck.config import read_config
    from tlcheck.gpu.examination import Request
    from tlcheck.gpu.suite import Options

    tools = _tools(args.sanitize)
    if args.arch == "auto":
        args.arch = None
    config = read_config(Path.cwd())
    settings = settings_of(args, config)
    if args.arch is None:
        settings = replace(settings, arch=())  # the device's, whatever else the project checks for
    options = Options(
        seeds=_positive("--seeds", args.seeds),
        repeats=_positive("--repeats", args.repeats),
        exact=args.exact,
        limit=_positive("--limit", args.limit),
        jobs=args.jobs,
        pythonpath=settings.pythonpath,
        sanitize=tools,
        bench=args.bench,
        record=_folder(args.record, "--record", make=True),
        replay=_folder(args.replay, "--replay", make=False),
    )
    accepted = read_acceptances(config.acceptance) if config.acceptance else Acceptances()
    return Request(selections(args, args.cases, config), settings, options, accepted)


def _positive(name: str, value: float) -> int:
    from tlcheck.errors import UsageError

    if value < 1:
        raise UsageError(f"{name} {value:g}: expected at least 1")
    return int(value)


def _tools(text: str) -> tuple[str, ...]:
    from tlcheck.errors import UsageError
    from tlcheck.gpu.sanitizer import TOOLS

    tools = tuple(dict.fromkeys(tool.strip() for tool in text.split(","))) if text else ()
    for tool in tools:
        if tool not in TOOLS:
            raise UsageError(f"--sanitize {tool}: expected {', '.join(TOOLS)}, with commas between several")
    return tools


def _folder(path: Path | None, option: str, *, make: bool) -> str:
    from tlcheck.errors import UsageError

    if path is None:
        return ""
    if make:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{option} {path}: {error.strerror}") from error
    elif not path.is_dir():
        raise UsageError(f"{option} {path}: no such folder")
    return str(path.absolute())


def _examine(request: Request) -> list[Examination]:
    import tempfile

    from tlcheck.cli.progress import bar
    from tlcheck.gpu.examination import examine

    with tempfile.TemporaryDirectory(prefix="tlcheck-", ignore_cleanup_errors=True) as folder, bar() as watcher:
        return list(examine(request, Path(folder), watcher))


def _write(args: argparse.Namespace, request: Request, examinations: Sequence[Examination], code: int) -> None:
    from rich.console import Console

    from tlcheck.gpu import environment
    from tlcheck.report import device_json, device_text
    from tlcheck.report.words import plural

    passed_over = sum(examination.passed_over for examination in examinations)
    notes = [f"{plural(passed_over, 'file')} without a case for this device passed over"] if passed_over else []
    commit = environment.commit(request.selections[0].path.absolute().parent)
    report = device_json.render(examinations, commit, notes, code)
    if args.output is not None:
        args.output.write_text(report, encoding="utf-8")
    if args.format == "json":
        sys.stdout.write(report)
    else:
        device_text.write(Console(), examinations, notes)
