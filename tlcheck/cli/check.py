"""`tlcheck check`: lower kernels, or read snapshots, prove every atomic, and execute the kernel at both levels."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tlcheck.cli.execution import add_execution_arguments, request_of, with_inputs
from tlcheck.cli.lowered import judge, session
from tlcheck.cli.options import CASE_HELP, add_lowering_arguments, selections, settings_of, without_device
from tlcheck.cli.scripts import add_live_arguments, add_script_arguments, live_settings
from tlcheck.config import read_config
from tlcheck.errors import UsageError
from tlcheck.lower.runs import Lowered, of_saved, unique_name
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.report import json, shared, text
from tlcheck.report.checked import document_of
from tlcheck.report.console import console
from tlcheck.report.outputs import FORMATS, Writer, outputs
from tlcheck.run.suite import NoDeviceError
from tlcheck.verdicts.acceptance import Acceptances, read_acceptances
from tlcheck.verdicts.judge import Judge, Policy
from tlcheck.verdicts.results import Result, exit_code, read_snapshot
from tlcheck.verdicts.words import plural


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cases", nargs="*", metavar="CASE", help=CASE_HELP)
    add_lowering_arguments(parser)
    parser.add_argument("--format", default="text", metavar="LIST", help=f"{', '.join(FORMATS)} (default: text)")
    parser.add_argument("-o", "--output", type=Path, metavar="PATH", help="a file, or a folder for several formats")
    parser.add_argument("--save", type=Path, metavar="DIR", help="keep the snapshots that are made")
    parser.add_argument("--strict", action="store_true", help="what is undecided is an error too")
    parser.add_argument("--no-expect", action="store_true", help="judge what a case expects like anything else")
    add_execution_arguments(parser)
    add_script_arguments(parser)
    add_live_arguments(parser, record=False)


def run(args: argparse.Namespace) -> int:
    target = outputs(args.format, args.output)
    _prepare(args)
    config = read_config(Path.cwd())
    chosen = selections(args, args.cases, config)
    accepted = read_acceptances(config.acceptance) if config.acceptance else Acceptances()
    try:
        settings = live_settings(args, settings_of(args, config), chosen)
    except NoDeviceError as missing:
        return without_device(missing)
    policy = Policy(accepted, not args.no_expect, request_of(args, config))
    with judge(settings, policy) as judged:
        results, remarks = _results(chosen, with_inputs(settings, policy.execute), judged, args.save)
    code = exit_code(results, strict=args.strict)
    notes = [*accepted.unused(results), *remarks]
    target.write("check", _writers(results, notes, code))
    return code


def _prepare(args: argparse.Namespace) -> None:
    """Raises UsageError where the snapshots could not be written: better now than after minutes of work."""
    try:
        if args.save is not None:
            args.save.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from error


def _passed_over(files: int) -> list[str]:
    return [f"{plural(files, 'file')} without a case for these targets passed over"] if files else []


def _results(
    chosen: Sequence[Selection], settings: Settings, judged: Judge, save: Path | None
) -> tuple[list[Result], list[str]]:
    """All results in the order of the selections, and what else there is to say. Raises UsageError."""
    results, remarks = [result for _, result in judged.each(_saved(chosen))], list[str]()
    if any(not selection.is_snapshot for selection in chosen):
        lowered, passed_over, remarks = _lowered(chosen, settings, judged, save)
        results += lowered
        if not results:
            raise UsageError("; ".join([f"no case to check in {plural(passed_over, 'file')}", *remarks]))
        remarks += _passed_over(passed_over)
    return sorted(results, key=lambda result: result.run.position), remarks


def _saved(chosen: Sequence[Selection]) -> Iterator[Lowered]:
    for position, selection in enumerate(chosen):
        if selection.is_snapshot:
            yield of_saved(selection.path, read_snapshot(selection.path), position)


def _lowered(
    chosen: Sequence[Selection], settings: Settings, judged: Judge, save: Path | None
) -> tuple[list[Result], int, list[str]]:
    results, made = [], []
    with session(settings) as opened:
        for lowered, result in judged.each(opened.lower(chosen)):
            made.append(lowered)
            results.append(result)
        if save is not None:
            _save(made, save)
    return results, len(opened.passed_over), opened.remarks


def _save(made: Sequence[Lowered], folder: Path) -> None:
    """Keep the snapshots under names that say what they are."""
    saved: set[str] = set()
    for lowered in sorted(made, key=lambda done: done.run.position):
        if lowered.snapshot is not None:
            name = unique_name(lowered.run.slug, saved)
            saved.add(name)
            shutil.copyfile(lowered.snapshot, folder / f"{name}.snapshot.json")


def _writers(results: list[Result], notes: list[str], code: int) -> Mapping[str, Writer]:
    return {
        "text": lambda file: text.write(console(file), results, notes),
        "json": lambda file: shared.put(file, json.render(results, notes, code)),
        **shared.writers(document_of(results, notes, code)),
    }
