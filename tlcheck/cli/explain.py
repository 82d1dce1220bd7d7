"""`tlcheck explain`: a rule's page; without a rule, the list of all."""

from __future__ import annotations

import argparse
import difflib

from rich.markdown import Markdown
from rich.text import Text

from tlcheck.errors import UsageError
from tlcheck.exits import CLEAN
from tlcheck.report.console import console
from tlcheck.verdicts.rules.pages import RulePage, pages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", nargs="?", metavar="RULE", help="an id or a name: TLA001, lanes-not-contiguous")


def run(args: argparse.Namespace) -> int:
    if args.rule is None:
        _list(pages())
    else:
        _show(_find(pages(), args.rule))
    return CLEAN


def _list(every: list[RulePage]) -> None:
    width = max(len(page.name) for page in every)
    for page in every:
        line = Text.assemble((page.id, "bold"), f"  {page.name:<{width}}  {page.title}")
        console().print(line, highlight=False, soft_wrap=True)


def _find(every: list[RulePage], rule: str) -> RulePage:
    """The page of an id or a name in any case. Raises UsageError."""
    known = {name.lower(): page for page in every for name in (page.id, page.name)}
    if rule.lower() in known:
        return known[rule.lower()]
    within = [name for name in known if rule.lower() in name]
    close = within or difflib.get_close_matches(rule.lower(), known, 3, 0.5)
    words = dict.fromkeys(f"{known[name].id} ({known[name].name})" for name in close[:3])
    hint = f"did you mean {' or '.join(words)}?" if words else "`tlcheck explain` lists all"
    raise UsageError(f"no rule {rule!r}: {hint}")


def _show(page: RulePage) -> None:
    """As Markdown on a terminal; its source elsewhere, where it may go into a file."""
    screen = console()
    if screen.is_terminal:
        screen.print(Markdown(page.markdown))
    else:
        print(page.markdown, end="")
