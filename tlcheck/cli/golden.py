"""`tlcheck golden`: approved IR, compared with what kernels lower to now, and reviewed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tlcheck.cli.golden_review import review
from tlcheck.cli.lowered import judge, lowered
from tlcheck.cli.options import CASE_HELP, add_form_arguments, add_lowering_arguments, form_of, settings_of
from tlcheck.cli.projects import one_project, project_above
from tlcheck.config import Config, read_config
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
from tlcheck.report import golden
from tlcheck.report.console import console
from tlcheck.verdicts.acceptance import Acceptances, read_acceptances
from tlcheck.verdicts.judge import Judge, Policy


def add_arguments(parser: argparse.ArgumentParser) -> None:
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


def run(args: argparse.Namespace) -> int:
    actions = {"check": _check, "update": _update, "review": _review, "diff": _diff}
    return actions.get(args.action, _decide)(args)


def _check(args: argparse.Namespace) -> int:
    project = project_of_cases(args)
    store = GoldenStore(project.folder)
    approved, waiting = store.read(), {pending.key: pending.digest for pending in store.pending()}
    found = [states.state_of(recorded, approved, waiting) for recorded in recorded_runs(args, project)]
    found += states.orphans(approved, [state.key for state in found], scope_of(args, project))
    golden.write(console(), found, form_of(args))
    return states.exit_code(found)


def this_project() -> Project:
    """Of the working folder. Raises UsageError."""
    return project_of(read_config(Path.cwd()))


def project_of_cases(args: argparse.Namespace) -> Project:
    """Of the cases that are to be lowered. Raises UsageError."""
    return project_of(one_project(args, args.cases).config)


def recorded_runs(args: argparse.Namespace, project: Project) -> Iterator[Recorded]:
    """Of every run, in the order of the selections."""
    found = one_project(args, args.cases)
    chosen = found.selections
    for selection in chosen:
        if selection.is_snapshot:
            yield saved(selection.path, project)
    if not all(selection.is_snapshot for selection in chosen):
        for done in lowered(chosen, settings_of(args, found.config)):
            yield recorded(done, project)


def judge_of(args: argparse.Namespace, accepted: Acceptances) -> Judge:
    """Open a judge for the kernels of `recorded_runs`."""
    return judge(settings_of(args, one_project(args, args.cases).config), Policy(accepted))


def scope_of(args: argparse.Namespace, project: Project) -> GoldenScope:
    """What the arguments name; saved snapshots name nothing."""
    config = one_project(args, args.cases).config
    named = [parse(case) for case in args.cases or [os.path.relpath(path) for path in config.paths]]
    places = []
    for selection in named:
        if not selection.is_snapshot:
            path = os.path.relpath(selection.path.resolve(), project.root.resolve()).replace(os.sep, "/")
            places.append(f"{path}::{selection.name}" if selection.name else path)
    return GoldenScope(tuple(places), settings_of(args, config).arch)


def _update(args: argparse.Namespace) -> int:
    project = project_of_cases(args)
    store = GoldenStore(project.folder)
    store.finish()
    with judge_of(args, Acceptances()) as judged:
        update = Update(store, judged, args.new_only)
        for found in recorded_runs(args, project):
            update.add(found)
    update.remove_orphans(scope_of(args, project))
    for line in update.report():
        print(line)
    return update.exit_code()


def _review(args: argparse.Namespace) -> int:
    project = this_project()
    store = GoldenStore(project.folder)
    store.finish()
    return review(store, Decisions(store, acceptances_of(read_config(Path.cwd())), project.root))


def acceptances_of(config: Config) -> Acceptances:
    """Raises UsageError."""
    return read_acceptances(config.acceptance) if config.acceptance else Acceptances()


def _decide(args: argparse.Namespace) -> int:
    """Accept or reject without a terminal. What cannot be accepted stays, the rest is."""
    config = project_above([case.partition("::")[0] for case in args.cases])
    project = project_of(config)
    store = GoldenStore(project.folder)
    store.finish()
    chosen = _chosen(store.pending(), args, project)
    decisions = Decisions(store, acceptances_of(config), project.root)
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


def _chosen(waiting: list[Pending], args: argparse.Namespace, project: Project) -> list[Pending]:
    """Raises UsageError where nothing waits of what is named."""
    archs = parse_archs(args.arch.split(",")) if args.arch is not None else ()
    if not waiting:
        raise UsageError(f"nothing waits in {project.folder}: `tlcheck golden update CASE` comes first")
    chosen: dict[object, Pending] = {}
    for case in args.cases or [str(project.root)]:
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
    return golden.write_revisions(console(), base, head, args.base, form_of(args))
