"""`tlcheck gate`: lower kernels with two toolchains and say whether the upgrade is safe."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tlcheck.cli.device import GpuOptions, add_device_arguments
from tlcheck.cli.execution_options import ExecutionOptions, add_quick_argument
from tlcheck.cli.options import LoweringOptions, add_lowering_arguments, add_report_arguments
from tlcheck.cli.parser import Parser, read
from tlcheck.cli.progress import bar
from tlcheck.cli.projects import one_project
from tlcheck.cli.scripts import add_script_arguments, scripts_of
from tlcheck.cost.risen_cost import Threshold
from tlcheck.errors import UsageError
from tlcheck.gate.device_run import Wanted
from tlcheck.gate.gate import NO_REFERENCE, Gate, GatePlan, gate
from tlcheck.gate.nvcc import find_compiler
from tlcheck.gate.outcome import CLASSES, DEFAULT_FAILING
from tlcheck.lower.scripts import is_script
from tlcheck.lower.session import Settings
from tlcheck.report import gate_json, gate_text, shared
from tlcheck.report.console import console
from tlcheck.report.gate_notices import document_of
from tlcheck.report.outputs import PAGE_FORMATS, Outputs, Writer
from tlcheck.verdicts.acceptance import project_acceptances


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="*", metavar="CASE", help="FILE[::NAME] or a folder of kernel files")
    parser.add_argument("--from", dest="before", metavar="TOOLCHAIN", help="toolchain in use (default: the project's)")
    parser.add_argument("--to", dest="after", required=True, metavar="TOOLCHAIN", help="toolchain to upgrade to")
    parser.add_argument(
        "--fail",
        default=",".join(DEFAULT_FAILING),
        metavar="LIST",
        help=f"classes that fail, or `none`: {', '.join(CLASSES)} (default: {','.join(DEFAULT_FAILING)})",
    )
    parser.add_argument("--compile", action="store_true", help="compile the CUDA with nvcc too; needs no GPU")
    parser.add_argument("--run", dest="device", action="store_true", help="run the kernels of both on this GPU too")
    add_report_arguments(parser, PAGE_FORMATS)
    add_lowering_arguments(parser, toolchain=False, cluster=True)
    add_quick_argument(parser)
    add_device_arguments(parser.add_argument_group("with --run"))
    add_script_arguments(parser)


def run(args: argparse.Namespace) -> int:
    target = Outputs(args.format, args.output)
    plan = _plan(args)
    with tempfile.TemporaryDirectory(prefix="tlcheck-") as folder:
        with bar(plan.settings.loudness) as watcher:
            found = gate(plan, Path(folder), watcher)
        writers: Mapping[str, Writer] = {
            "text": lambda file: gate_text.write(console(file), found),
            "json": lambda file: shared.put(file, gate_json.render(found)),
            "html": lambda file: shared.put(file, _page(found)),
            **shared.writers(lambda: document_of(found)),
        }
        target.deliver("gate", writers)  # the page reads the snapshots
    return found.exit_code


def _plan(args: argparse.Namespace) -> GatePlan:
    """Raises UsageError."""
    lowering = read(LoweringOptions, args)
    project = one_project(args.cases, lowering.for_kernel_files)
    config, chosen = project.config, project.selections
    execution = ExecutionOptions(quick=args.quick)
    scripts = replace(scripts_of(args), sides=2)  # a gate of a test file takes no longer than its check
    settings = lowering.settings(config, scripts).saying(execution.words)
    execute = execution.request(config)
    execute = None if execute is None else replace(execute, cost=True)
    if args.device and all(is_script(selection) for selection in chosen):  # better now than after minutes of work
        raise UsageError(f"--run: {chosen[0].path}: {NO_REFERENCE}")
    return GatePlan(
        before=args.before or config.toolchain,
        after=args.after,
        selections=chosen,
        settings=settings,
        acceptances=project_acceptances(config),
        failing=_failing(args.fail),
        compiler=find_compiler() if args.compile else None,
        device=_device(read(GpuOptions, args), settings, asked=args.device),
        execute=execute,
        threshold=Threshold(config.slower_share, config.slower_ratio),
    )


def _device(options: GpuOptions, settings: Settings, *, asked: bool) -> Wanted | None:
    """Return how to run on a GPU, if that is asked for. Raises UsageError."""
    if asked:
        return Wanted(options.device_options(settings), settings.args, options.if_available)
    if options.given:
        raise UsageError(f"{options.given[0]} has no meaning without --run")
    return None


def _failing(text: str) -> tuple[str, ...]:
    """Read the classes; `slower` is short for `slower-risk`. Raises UsageError."""
    names = tuple(name.strip() for name in text.split(","))
    if names == ("none",):
        return ()
    names = tuple(risk if (risk := f"{name}-risk") in CLASSES else name for name in names)
    if unknown := [name for name in names if name not in CLASSES]:
        raise UsageError(f"--fail {unknown[0]!r}: expected {', '.join(CLASSES)}, with commas between several, or none")
    return names


def _page(found: Gate) -> str:
    from tlcheck.page.gate_page import gate_page  # pages are rarely asked for
    from tlcheck.page.html import render

    return render(gate_page(found))
