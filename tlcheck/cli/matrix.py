"""`tlcheck matrix`: check kernels with many toolchains, and say how each fares with each."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tlcheck.cli.execution_options import ExecutionOptions, add_execution_arguments
from tlcheck.cli.lowered import working
from tlcheck.cli.options import REPEAT_HELP, LoweringOptions, add_lowering_arguments, add_report_arguments
from tlcheck.cli.parser import Parser, count, read
from tlcheck.cli.projects import one_project
from tlcheck.cli.scripts import add_script_arguments, scripts_of
from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.gate.bisect import require_installed
from tlcheck.gate.repetition import Repetition
from tlcheck.lower.runs import Run, toolchain_title
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.matrix.cell import Cell, cells_of
from tlcheck.matrix.resume import Known, read_known
from tlcheck.matrix.table import Column, Matrix, rows_of
from tlcheck.page.matrix_page import matrix_page
from tlcheck.report import matrix_json, matrix_markdown, matrix_text, shared
from tlcheck.report.console import console
from tlcheck.report.outputs import Outputs
from tlcheck.toolchain.releases import PINNED, RELEASES
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.words import plural

FORMATS = ("text", "json", "markdown", "html")
_ALL = "all"
_COST = "cost"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="*", metavar="CASE", help="FILE[::NAME] or a folder of kernel files")
    parser.add_argument(
        "--toolchains",
        required=True,
        metavar="LIST",
        help="releases, paths of wheels or checkouts, with commas between; `all` for every known release",
    )
    add_report_arguments(parser, FORMATS)
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="reuse the verdicts of this JSON report for unchanged files",
    )
    parser.add_argument("--show", choices=(_COST,), help="show what each kernel costs with each toolchain")
    parser.add_argument("--repeat", type=count, default=1, metavar="N", help=REPEAT_HELP)
    add_lowering_arguments(parser, toolchain=False, cluster=True)
    add_execution_arguments(parser)
    add_script_arguments(parser)


def run(args: argparse.Namespace) -> int:
    target = Outputs(args.format, args.output)
    lowering = read(LoweringOptions, args)
    project = one_project(args.cases, lowering.for_kernel_files)
    config, chosen = project.config, project.selections
    settings = lowering.settings(config, scripts_of(args))
    request = _with_cost(read(ExecutionOptions, args).request(config), args.show)
    _require_kernel_files(chosen)
    toolchains = _toolchains(args.toolchains)
    require_installed([name for name in toolchains if name in RELEASES], settings.requirements)
    asked = _asked(settings, request, args.repeat)
    known = read_known(args.resume, asked) if args.resume is not None else Known()
    # Neither an expectation nor an acceptance makes a kernel right.
    found = _matrix(chosen, toolchains, settings, Policy(excusing=False, execute=request), known, args.repeat)
    found = replace(found, asked=asked)
    if not found.rows:
        raise UsageError("; ".join([f"no kernel in {plural(len(chosen), 'file')}", *found.notes]))
    target.deliver(
        "matrix",
        {
            "text": lambda file: matrix_text.write(console(file), found),
            "json": lambda file: shared.put(file, matrix_json.render(found)),
            "markdown": lambda file: shared.put(file, matrix_markdown.render(found)),
            "html": lambda file: shared.put(file, matrix_page(found)),
        },
    )
    return found.exit_code


def _require_kernel_files(chosen: Sequence[Selection]) -> None:
    """Raises UsageError for what has a toolchain of its own."""
    for selection in chosen:
        if selection.is_snapshot:
            raise UsageError(f"{selection.path} is a saved snapshot: give kernel files, to lower with each toolchain")
        if selection.toolchain:
            raise UsageError(f"{selection.path}@{selection.toolchain}: toolchains are given by --toolchains")


def _toolchains(text: str) -> list[str]:
    """Each once, in their order. Raises UsageError."""
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise UsageError(f"--toolchains {text!r}: expected such as 0.1.12,0.1.15, or {_ALL}")
    listed = (RELEASES if name == _ALL else [PINNED] if name == "pinned" else [name] for name in names)
    return list(dict.fromkeys(name for part in listed for name in part))


def _with_cost(request: Request | None, shown: str | None) -> Request | None:
    """Raises UsageError where nothing is executed that could be counted."""
    if shown is None:
        return request
    if request is None:
        raise UsageError("--show cost counts what is executed: leave out --quick")
    return replace(request, cost=True)


def _asked(settings: Settings, request: Request | None, repeat: int) -> Mapping[str, str]:
    """Return what a cell stands for besides its kernel and toolchain."""
    executed = "none" if request is None else f"blocks {request.blocks}, seeds {', '.join(map(str, request.seeds))}"
    given = {"arguments": " ".join(f"{name}={value}" for name, value in settings.args.items())} if settings.args else {}
    counted = {"shown": _COST} if request is not None and request.cost else {}
    lowered = {"lowered": plural(repeat, "time")} if repeat > 1 else {}
    return {"archs": ",".join(settings.arch) or "as declared", "executed": executed, **given, **counted, **lowered}


def _matrix(
    chosen: Sequence[Selection],
    toolchains: Sequence[str],
    settings: Settings,
    policy: Policy,
    known: Known,
    repeat: int,
) -> Matrix:
    """Lower and judge everything that is not known. Positions count from the whole list, so that order is one.

    repeat: how often each kernel is lowered.
    """
    wanted = [replace(s, toolchain=name) for name in toolchains for s in known.left(chosen, name)]
    made: list[Cell] = []
    runs: list[Run] = []
    remarks: list[str] = []
    if wanted:
        with (
            working(loudness=settings.loudness, judging=True) as (folder, watcher),
            checking(settings, policy, folder, watcher) as checks,
        ):
            found = list(checks.results(wanted))
            if repeat > 1:
                found = Repetition(repeat, settings, folder, watcher).judged(found, wanted, checks.judge)
            results = [result for _, result in found]
        made, remarks = cells_of(results, checks.session.ends), checks.session.remarks
        runs = [result.run for result in results]
    kept = known.of(chosen, toolchains)
    taken = [f"{plural(len(kept), 'cell')} taken from the earlier report"] if kept else []
    columns = tuple(_columns(toolchains, runs, known.columns))
    return Matrix({}, columns, rows_of([*made, *kept], toolchains), (*taken, *dict.fromkeys(remarks)))


def _columns(toolchains: Iterable[str], runs: Iterable[Run], known: Iterable[Column]) -> Iterable[Column]:
    versions = {column.name: column.versions for column in known} | {run.toolchain: run.versions for run in runs}
    for name in toolchains:
        found = versions.get(name, {})
        yield Column(name, toolchain_title(name, found), dict(sorted(found.items())))
