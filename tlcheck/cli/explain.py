"""`tlcheck explain`: the page of a rule, or of a reason for *not decided*; without either, the list of all rules."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence

from rich.markdown import Markdown
from rich.text import Text

from tlcheck.errors import UsageError
from tlcheck.exits import CLEAN
from tlcheck.reasons import KINDS, ReasonKind
from tlcheck.report.console import console
from tlcheck.verdicts.rules.rule_pages import RulePage, pages

_UNDECIDED = "undecided"  # whose list is that of the reasons
_ID_WIDTH = 6
Explained = RulePage | ReasonKind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = "an id or a name: TLA001, lanes-not-contiguous, U018; `undecided` lists the reasons for that"
    parser.add_argument("rule", nargs="?", metavar="RULE", help=names)


def run(args: argparse.Namespace) -> int:
    if args.rule is None:
        _list([(page.id, page.name, page.title) for page in pages()])
    elif args.rule.lower() == _UNDECIDED:
        _list([(kind.code, kind.name, kind.title) for kind in KINDS])
    else:
        _show(_find([*pages(), *KINDS], args.rule))
    return CLEAN


def _list(every: Sequence[tuple[str, str, str]]) -> None:
    width = max(len(name) for _, name, _ in every)
    for identifier, name, title in every:
        line = Text.assemble((f"{identifier:<{_ID_WIDTH}}", "bold"), f"  {name:<{width}}  {title}")
        console().print(line, highlight=False, soft_wrap=True)


def _id(page: Explained) -> str:
    return page.code if isinstance(page, ReasonKind) else page.id


def _find(every: Sequence[Explained], asked: str) -> Explained:
    """The page of an id or a name in any case. Raises UsageError."""
    known = {name.lower(): page for page in every for name in (_id(page), page.name)}
    if asked.lower() in known:
        return known[asked.lower()]
    within = [name for name in known if asked.lower() in name]
    close = within or difflib.get_close_matches(asked.lower(), known, 3, 0.5)
    words = dict.fromkeys(f"{_id(known[name])} ({known[name].name})" for name in close[:3])
    hint = f"did you mean {' or '.join(words)}?" if words else "`tlcheck explain` lists all"
    raise UsageError(f"no rule or reason {asked!r}: {hint}")


def _show(page: Explained) -> None:
    """Print Markdown, formatted on a terminal; elsewhere its source, which may go into a file."""
    screen = console()
    if screen.is_terminal:
        screen.print(Markdown(page.markdown))
    else:
        print(page.markdown, end="")
