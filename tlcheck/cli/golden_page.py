"""`tlcheck golden page`: what kernels lower to now, beside what was approved, as one self-contained HTML page."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tlcheck.cli.golden_cases import GoldenCases, add_lowering, golden_cases, this_project
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.files import replace_all, require_place
from tlcheck.golden import states
from tlcheck.golden.revisions import contents_at
from tlcheck.golden.store import GoldenStore
from tlcheck.page.golden_page import GoldenPage, revisions_page
from tlcheck.page.html import render
from tlcheck.page.shown import GOOD, Page
from tlcheck.verdicts.acceptance import project_acceptances


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_lowering(parser)
    parser.add_argument(
        "--base", metavar="REVISION", help="the goldens of two git revisions instead; lowers nothing, needs no TileLang"
    )
    parser.add_argument("--head", metavar="REVISION", help="with --base (default: the working tree)")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="such as report.html")


def run(args: argparse.Namespace) -> int:
    if args.head and not args.base:
        raise UsageError("--head goes with --base: two git revisions are compared")
    if args.base and args.cases:
        raise UsageError("--base compares all goldens of two git revisions: leave out CASE")
    output = Path(os.path.realpath(args.output))
    if output.exists() and not output.is_file():  # better now than after minutes of work
        raise UsageError(f"{args.output} is no file: -o FILE.html")
    require_place(args.output)
    page, code = _of_revisions(args.base, args.head) if args.base else _of_runs(golden_cases(args))
    replace_all({output: render(page)})
    print(f"{page.verdict}: {args.output}")
    return code


def _of_runs(asked: GoldenCases) -> tuple[Page, int]:
    with asked.judge(project_acceptances(asked.selected.config)) as judge:
        made = GoldenPage(GoldenStore(asked.project.folder).read(), judge)
        for recorded in asked.recorded():
            made.add(recorded)
    keys = [state.key for state in made.states]
    for orphan in states.orphans(made.approved, keys, asked.scope()):
        made.add_orphan(orphan)
    return made.page(), states.exit_code(made.states)


def _of_revisions(base: str, head: str | None) -> tuple[Page, int]:
    folder = this_project().folder
    later = contents_at(folder, head) if head else GoldenStore(folder).read()
    page = revisions_page(contents_at(folder, base), later, base)
    return page, exit_code(found=page.tone != GOOD)
