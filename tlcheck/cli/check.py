"""`tlcheck check`: lower kernels, or read snapshots, prove every atomic, and execute the kernel at both levels."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TextIO

from tlcheck.cli.checking import Checked, CheckOptions, checked
from tlcheck.cli.device import without_device
from tlcheck.cli.execution_options import ExecutionOptions, add_execution_arguments
from tlcheck.cli.interruption import stoppable
from tlcheck.cli.lowered import show_tracebacks
from tlcheck.cli.options import (
    CASE_HELP,
    REPEAT_HELP,
    LoweringOptions,
    add_lowering_arguments,
    add_report_arguments,
)
from tlcheck.cli.parser import Parser, count, read
from tlcheck.cli.scripts import add_live_argument, add_script_arguments, scripts_of
from tlcheck.cli.watch import watch
from tlcheck.errors import UsageError
from tlcheck.report import check_json, check_text, shared
from tlcheck.report.check_notices import document_of
from tlcheck.report.check_statistics import write_statistics
from tlcheck.report.check_text import TextForm
from tlcheck.report.console import console
from tlcheck.report.outputs import PAGE_FORMATS, Outputs, Writer
from tlcheck.run.suite import NoDeviceError
from tlcheck.verdicts.results import exit_code
from tlcheck.verdicts.rule_filter import RuleFilter, rule_ids


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="*", metavar="CASE", help=CASE_HELP)
    add_lowering_arguments(parser, cluster=True)
    add_report_arguments(parser, PAGE_FORMATS)
    parser.add_argument("--save", type=Path, metavar="DIR", help="keep the snapshots that are made")
    parser.add_argument("--with-inputs", action="store_true", help="with --save: snapshots include their inputs")
    parser.add_argument("--stat", action="store_true", help="print only counts, by rule and by reason")
    parser.add_argument("--strict", action="store_true", help="count undecided claims and warnings as errors")
    selected, ignored = partial(rule_ids, "--select"), partial(rule_ids, "--ignore")
    parser.add_argument("--select", type=selected, default="", metavar="LIST", help="rules that count, as TLR,TLO001")
    parser.add_argument("--ignore", type=ignored, default="", metavar="LIST", help="rules that do not count")
    parser.add_argument("--no-expect", action="store_true", help="count expected findings as errors")
    parser.add_argument(
        "--why",
        action=argparse.BooleanOptionalAction,
        help="find the release and the pass that broke a wrong kernel (default: for one kernel, if that takes 10 s)",
    )
    parser.add_argument("--repeat", type=count, default=1, metavar="N", help=REPEAT_HELP)
    parser.add_argument("--watch", action="store_true", help="check again what an edit touches, until Ctrl-C")
    add_execution_arguments(parser)
    add_script_arguments(parser)
    add_live_argument(parser)


def run(args: argparse.Namespace) -> int:
    if args.with_inputs and args.save is None:
        raise UsageError("--with-inputs says what --save keeps: give --save DIR as well")
    options = CheckOptions(
        cases=tuple(args.cases),
        lowering=read(LoweringOptions, args),
        execution=read(ExecutionOptions, args),
        scripts=replace(scripts_of(args), live=args.live),
        excusing=not args.no_expect,
        strict=args.strict,
        save=args.save,
        with_inputs=args.with_inputs,
        with_page="html" in args.format,
        why=args.why,
        rules=RuleFilter(args.select, args.ignore),
        repeat=args.repeat,
    )
    if args.watch and (args.format != ("text",) or args.output or args.save or args.live):
        raise UsageError("--watch reports on the terminal: leave out --format, -o, --save and --live")
    if args.watch:
        return watch(options)
    target = Outputs(args.format, args.output)
    try:
        with stoppable() as interruption:
            found = checked(options, interruption)
    except NoDeviceError as missing:
        return without_device(missing)
    code = interruption.code(exit_code(found.results, strict=options.strict))
    writers = _writers(found, code, None if args.stat else TextForm(args.quiet, args.verbose))
    target.deliver("check", writers)
    if args.verbose:
        show_tracebacks(found.results)
    return code


def _writers(found: Checked, code: int, form: TextForm | None) -> Mapping[str, Writer]:
    """form: of the report for people; None for counts alone."""
    results, notes = list(found.results), list(found.notes)

    def write_text(file: TextIO) -> None:
        if form is None:
            write_statistics(console(file), results, notes)
        else:
            check_text.write(console(file), results, notes, form)

    return {
        "text": write_text,
        "html": lambda file: shared.put(file, _page(found, code)),
        "json": lambda file: shared.put(file, check_json.render(results, notes, code)),
        **shared.writers(lambda: document_of(results, notes, code)),
    }


def _page(found: Checked, code: int) -> str:
    from tlcheck.page.check_page import page_of  # pages are rarely asked for
    from tlcheck.page.html import render

    return render(page_of(list(found.results), found.entries, list(found.notes), code))
