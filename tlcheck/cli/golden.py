"""`tlcheck golden`: approved IR, compared with what kernels lower to now, and reviewed."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from tlcheck.cli import golden_page
from tlcheck.cli.golden_cases import add_lowering, golden_cases, this_project
from tlcheck.cli.golden_review import review
from tlcheck.cli.options import add_form_arguments, form_of
from tlcheck.cli.parser import Parser
from tlcheck.cli.projects import project_above
from tlcheck.config import read_config
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.golden import states
from tlcheck.golden.decisions import Decisions
from tlcheck.golden.pending import Pending
from tlcheck.golden.recording import Project, project_of
from tlcheck.golden.revisions import contents_at
from tlcheck.golden.states import GoldenScope
from tlcheck.golden.store import GoldenStore
from tlcheck.golden.update import Update
from tlcheck.lower.selection import parse_archs
from tlcheck.report import golden_text
from tlcheck.report.console import console
from tlcheck.verdicts.acceptance import Acceptances, project_acceptances


def add_arguments(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="compare the kernels' TIR with the approved one")
    update = actions.add_parser("update", help="write the new TIR beside the approved one, for review")
    for action in (check, update):
        add_lowering(action)
    update.add_argument("--new-only", action="store_true", help="only kernels without an approved golden")
    actions.add_parser("review", help="show pending changes one at a time, to accept or reject")
    accept = actions.add_parser("accept", help="accept pending changes, without a terminal")
    accept.add_argument("--reason", required=True, help="why; kept with the approval")
    reject = actions.add_parser("reject", help="reject pending changes, without a terminal")
    reject.add_argument("--reason", default="", help="why; shown when the same content comes again")
    for action in (accept, reject):
        action.add_argument(
            "cases", nargs="*", metavar="CASE", help="FILE[::NAME], or a folder (default: all pending changes)"
        )
        action.add_argument("--arch", metavar="LIST", help="comma list; default: all")
    diff = actions.add_parser("diff", help="compare the goldens of two git revisions; needs no TileLang")
    diff.add_argument("--base", required=True, metavar="REVISION", help="such as origin/main")
    diff.add_argument("--head", metavar="REVISION", help="default: the working tree")
    for action in (check, diff):
        add_form_arguments(action)
    golden_page.add_arguments(actions.add_parser("page", help="write one HTML page of the differences"))


def run(args: argparse.Namespace) -> int:
    actions = {"check": _check, "update": _update, "diff": _diff, "page": golden_page.run}
    return _review() if args.action == "review" else actions.get(args.action, _decide)(args)


def _check(args: argparse.Namespace) -> int:
    asked = golden_cases(args)
    store = GoldenStore(asked.project.folder)
    approved, waiting = store.read(), {pending.key: pending.digest for pending in store.pending()}
    found = [states.state_of(recorded, approved, waiting) for recorded in asked.recorded()]
    found += states.orphans(approved, [state.key for state in found], asked.scope())
    golden_text.write(console(), found, form_of(args), asked.words)
    return states.exit_code(found)


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
        path, _, name = case.partition("::")  # the kernel's file may be gone by now
        place = os.path.relpath(os.path.realpath(path), project.root.resolve()).replace(os.sep, "/")
        place = f"{place}::{name}" if name else place
        mine = [pending for pending in waiting if GoldenScope((place,), archs).has(pending.key)]
        if not mine:
            raise UsageError(f"nothing of {case} waits; waiting: {', '.join(str(p.key) for p in waiting[:5])}")
        chosen |= {pending.key: pending for pending in mine}
    return list(chosen.values())


def _diff(args: argparse.Namespace) -> int:
    folder = this_project().folder
    base = contents_at(folder, args.base)
    head = contents_at(folder, args.head) if args.head else GoldenStore(folder).read()
    return golden_text.write_revisions(console(), base, head, args.base, form_of(args))
