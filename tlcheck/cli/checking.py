"""Checking what a command is given: each project with its own settings, snapshots kept where the user wants them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tlcheck.cli.execution import request_of, with_inputs
from tlcheck.cli.interruption import Interruption
from tlcheck.cli.lowered import judge, session
from tlcheck.cli.options import settings_of
from tlcheck.cli.projects import ProjectCases, projects
from tlcheck.cli.scripts import live_settings
from tlcheck.config import naming
from tlcheck.errors import UsageError
from tlcheck.files import save
from tlcheck.lower.runs import Lowered, of_saved, unique_name
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.verdicts.acceptance import Acceptances, read_acceptances
from tlcheck.verdicts.judge import Judge, Policy
from tlcheck.verdicts.results import Result, read_snapshot
from tlcheck.verdicts.words import plural

if TYPE_CHECKING:
    from tlcheck.page.model import Entry


@dataclass(frozen=True)
class Checked:
    """What checking found. entries: the same for a page, where one is asked for.

    passed_over: files without a case. notes: what else there is to say.
    """

    results: Sequence[Result]
    entries: Sequence[Entry] = ()
    notes: Sequence[str] = ()
    passed_over: int = 0


def checked(args: argparse.Namespace, interruption: Interruption) -> Checked:
    """Check everything. Raises UsageError, also where there is nothing to check, and NoDeviceError."""
    found = [_checked(args, each, interruption) for each in projects(args, args.cases)]
    results = [result for each in found for result in each.results]
    notes = [note for each in found for note in each.notes]
    passed_over = sum(each.passed_over for each in found)
    if not results:
        why = notes or (["one without the word tilelang is run where you name it"] if passed_over else [])
        raise UsageError("; ".join([f"no case to check in {plural(passed_over, 'file')}", *why]))
    notes += [f"{plural(passed_over, 'file')} without a case for these targets passed over"] if passed_over else []
    return Checked(results, [entry for each in found for entry in each.entries], notes, passed_over)


def _checked(args: argparse.Namespace, project: ProjectCases, interruption: Interruption) -> Checked:
    """Check with the project's settings. Raises UsageError and NoDeviceError."""
    config, chosen = project.config, project.selections
    with naming(config, "acceptance"):
        accepted = read_acceptances(config.acceptance) if config.acceptance else Acceptances()
    settings = live_settings(args, settings_of(args, config), chosen)
    policy = Policy(accepted, not args.no_expect, request_of(args, config))
    with judge(settings, policy) as judged:
        interruption.add(judged.stop)
        shelf = Shelf(with_page="html" in args.format)
        for lowered, result in judged.each(_saved(chosen)):
            shelf.add(lowered, result)
        notes, passed_over = _lowered(
            chosen, with_inputs(settings, policy.execute), judged, args.save, interruption, shelf
        )
    results = [result for result, _ in shelf.sorted()]
    entries = [entry for _, entry in shelf.sorted() if entry is not None]
    return Checked(results, entries, [*accepted.unused(results), *notes], passed_over)


@dataclass
class Shelf:
    """The results of one project as they come, with what a page needs of snapshots that do not stay."""

    with_page: bool
    found: list[tuple[Result, Entry | None]] = field(default_factory=list)

    def add(self, lowered: Lowered, result: Result) -> None:
        """Take one."""
        entry = None
        if self.with_page:
            from tlcheck.page.checked import entry_of  # pages are rarely asked for

            entry = entry_of(result, read_snapshot(lowered.snapshot) if lowered.snapshot is not None else None)
        self.found.append((result, entry))

    def sorted(self) -> list[tuple[Result, Entry | None]]:
        """In the order of the selections."""
        return sorted(self.found, key=lambda pair: pair[0].run.position)


def _saved(chosen: Sequence[Selection]) -> Iterator[Lowered]:
    for position, selection in enumerate(chosen):
        if selection.is_snapshot:
            yield of_saved(selection.path, read_snapshot(selection.path), position)


def _lowered(
    chosen: Sequence[Selection],
    settings: Settings,
    judged: Judge,
    save: Path | None,
    interruption: Interruption,
    shelf: Shelf,
) -> tuple[list[str], int]:
    """Lower and judge what is no saved snapshot; what there is to say of scripts, and the files without a case."""
    if all(selection.is_snapshot for selection in chosen):
        return [], 0
    made = []
    with session(settings, judged=judged) as opened:
        interruption.add(opened.stop)
        for lowered, result in judged.each(opened.lower(chosen)):
            made.append(lowered)
            shelf.add(lowered, result)
        if save is not None:
            _save(made, save)
    return opened.remarks, len(opened.passed_over)


def _save(made: Sequence[Lowered], folder: Path) -> None:
    """Keep the snapshots under names that say what they are."""
    saved: set[str] = set()
    for lowered in sorted(made, key=lambda done: done.run.position):
        if lowered.snapshot is not None:
            name = unique_name(lowered.run.slug, saved)
            saved.add(name)
            save(folder / f"{name}.snapshot.json", lowered.snapshot.read_bytes())
