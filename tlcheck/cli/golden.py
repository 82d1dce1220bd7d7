"""`tlcheck golden`: approved IR, compared with what kernels lower to now, and reviewed."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tlcheck.cache.store import open_cache
from tlcheck.cli.golden_review import review
from tlcheck.cli.lowered import lowered
from tlcheck.cli.options import CASE_HELP, LoweringOptions, add_form_arguments, add_lowering_arguments, form_of
from tlcheck.cli.parser import Parser, read
from tlcheck.cli.projects import ProjectCases, one_project, project_above
from tlcheck.config import read_config
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.golden import states
from tlcheck.golden.decisions import Decisions
from tlcheck.golden.pending import Pending
from tlcheck.golden.recording import Project, Recorded, project_of, recorded, saved
from tlcheck.golden.revisions import contents_at
from tlcheck.golden.states import GoldenScope
from tlcheck.golden.store import GoldenStore
from tlcheck.golden.update import Update
from tlcheck.lower.selection import parse, parse_archs
from tlcheck.lower.session import Settings
from tlcheck.report import golden_text
from tlcheck.report.console import console
from tlcheck.verdicts.acceptance import Acceptances, project_acceptances
from tlcheck.verdicts.judge import Judge, Policy


def add_arguments(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="compare what kernels lower to with what was approved")
    update = actions.add_parser("update", help="write what kernels lower to beside what was approved, for review")
    for action in (check, update):
        add_lowering(action)
    update.add_argument("--new-only", action="store_true", help="only where nothing is approved yet")
    actions.add_parser("review", help="look at what waits, one change at a time, and accept or reject it")
    accept = actions.add_parser("accept", help="accept what waits, without a terminal")
    accept.add_argument("--reason", required=True, help="why; kept with the approval")
    reject = actions.add_parser("reject", help="reject what waits, without a terminal")
    reject.add_argument("--reason", default="", help="why; shown when the same content comes again")
    for action in (accept, reject):
        action.add_argument(
            "cases", nargs="*", metavar="CASE", help="FILE[::NAME], or a folder (default: all that waits)"
        )
        action.add_argument("--arch", metavar="LIST", help="comma list; default: all")
    diff = actions.add_parser("diff", help="compare the goldens of two git revisions; needs no TileLang")
    diff.add_argument("--base", required=True, metavar="REVISION", help="such as origin/main")
    diff.add_argument("--head", metavar="REVISION", help="default: the working tree")
    for action in (check, diff):
        add_form_arguments(action)


def add_lowering(parser: argparse.ArgumentParser) -> None:
    """CASE, and how to lower it."""
    parser.add_argument("cases", nargs="*", metavar="CASE", help=CASE_HELP)
    add_lowering_arguments(parser)


@dataclass(frozen=True)
class GoldenCases:
    """The cases that a command names, with the settings of their project.

    cases: as the user wrote them. project: where its goldens are. words: all that the user says of the kernels.
    """

    cases: tuple[str, ...]
    selected: ProjectCases
    settings: Settings
    project: Project
    words: tuple[str, ...] = ()

    def recorded(self) -> Iterator[Recorded]:
        """Every run with what it lowers to now, in the order of the selections. Raises UsageError."""
        chosen = self.selected.selections
        for selection in chosen:
            if selection.is_snapshot:
                yield saved(selection.path, self.project)
        if not all(selection.is_snapshot for selection in chosen):
            for done in lowered(chosen, self.settings):
                yield recorded(done, self.project)

    @property
    def decidable(self) -> list[str]:
        """The cases as `accept` takes them: without a toolchain; none where a saved snapshot is among them."""
        found = [parse(case) for case in self.cases]
        if any(selection.is_snapshot for selection in found):
            return []
        return [f"{each.path}::{each.name}" if each.name else str(each.path) for each in found]

    def judge(self, accepted: Acceptances) -> Judge:
        """Open a judge for them."""
        settings = self.settings
        return Judge(Policy(accepted), open_cache(settings.cache), settings.jobs)

    def scope(self) -> GoldenScope:
        """What the cases name, else the project's paths; saved snapshots name nothing."""
        places = []
        for selection in map(parse, self.cases or [os.path.relpath(path) for path in self.selected.config.paths]):
            if not selection.is_snapshot:
                path = os.path.relpath(selection.path.resolve(), self.project.root.resolve()).replace(os.sep, "/")
                places.append(f"{path}::{selection.name}" if selection.name else path)
        return GoldenScope(tuple(places), self.settings.arch)


def golden_cases(args: argparse.Namespace) -> GoldenCases:
    """From `add_lowering`. Raises UsageError."""
    lowering = read(LoweringOptions, args)
    selected = one_project(args.cases, lowering.for_kernel_files)
    settings, words = lowering.settings(selected.config), (*args.cases, *lowering.words)
    return GoldenCases(tuple(args.cases), selected, settings, project_of(selected.config), words)


def run(args: argparse.Namespace) -> int:
    actions = {"check": _check, "update": _update, "diff": _diff}
    return _review() if args.action == "review" else actions.get(args.action, _decide)(args)


def _check(args: argparse.Namespace) -> int:
    asked = golden_cases(args)
    store = GoldenStore(asked.project.folder)
    approved, waiting = store.read(), {pending.key: pending.digest for pending in store.pending()}
    found = [states.state_of(recorded, approved, waiting) for recorded in asked.recorded()]
    found += states.orphans(approved, [state.key for state in found], asked.scope())
    golden_text.write(console(), found, form_of(args), asked.words)
    return states.exit_code(found)


def this_project() -> Project:
    """Of the working folder. Raises UsageError."""
    return project_of(read_config(Path.cwd()))


def _update(args: argparse.Namespace) -> int:
    asked = golden_cases(args)
    store = GoldenStore(asked.project.folder)
    store.finish()
    with asked.judge(Acceptances()) as judged:
        update = Update(store, judged, args.new_only)
        for found in asked.recorded():
            update.add(found)
    update.remove_orphans(asked.scope())
    for line in update.report(asked.decidable):
        print(line)
    return update.exit_code()


def _review() -> int:
    config = read_config(Path.cwd())
    project = project_of(config)
    store = GoldenStore(project.folder)
    store.finish()
    return review(store, Decisions(store, project_acceptances(config), project.root))


def _decide(args: argparse.Namespace) -> int:
    """Accept or reject without a terminal. What cannot be accepted stays, the rest is."""
    config = project_above([case.partition("::")[0] for case in args.cases])
    project = project_of(config)
    store = GoldenStore(project.folder)
    store.finish()
    archs = parse_archs(args.arch.split(",")) if args.arch is not None else ()
    chosen = _chosen(store.pending(), args.cases, archs, project)
    decisions = Decisions(store, project_acceptances(config), project.root)
    refused = []
    for pending in chosen:
        if args.action == "reject":
            decisions.reject(pending, args.reason)
        elif problem := decisions.problem(pending):
            refused.append(problem)
            continue
        else:
            decisions.accept(pending, args.reason)
        print(f"{args.action}ed {pending.key}")
    for problem in refused:
        print(problem, file=sys.stderr)
    return exit_code(found=bool(refused))


def _chosen(waiting: list[Pending], cases: Sequence[str], archs: tuple[str, ...], project: Project) -> list[Pending]:
    """Raises UsageError where nothing waits of what is named."""
    if not waiting:
        update = shlex.join(["tlcheck", "golden", "update", *cases])
        raise UsageError(f"nothing waits in {project.folder}: `{update}` comes first")
    chosen: dict[object, Pending] = {}
    for case in cases or [str(project.root)]:
        place = _place(case, project)
        mine = [pending for pending in waiting if GoldenScope((place,), archs).has(pending.key)]
        if not mine:
            raise UsageError(f"nothing of {case} waits; waiting: {', '.join(str(p.key) for p in waiting[:5])}")
        chosen |= {pending.key: pending for pending in mine}
    return list(chosen.values())


def _place(case: str, project: Project) -> str:
    """The kernel's file may be gone by now."""
    path, _, name = case.partition("::")
    place = os.path.relpath(os.path.realpath(path), project.root.resolve()).replace(os.sep, "/")
    return f"{place}::{name}" if name else place


def _diff(args: argparse.Namespace) -> int:
    folder = this_project().folder
    base = contents_at(folder, args.base)
    head = contents_at(folder, args.head) if args.head else GoldenStore(folder).read()
    return golden_text.write_revisions(console(), base, head, args.base, form_of(args))
