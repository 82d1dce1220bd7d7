"""Reference pages, made from the parsers, the fields of cases and the table of signatures.

python -m tlcheck.cli.reference docs/reference    writes one Markdown file for each
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tlcheck.case import Case, Expect, Variant
from tlcheck.cli.main import COMMANDS, parser_of
from tlcheck.cli.parser import ShortHelp
from tlcheck.signatures.table import FAMILIES

_FIELD = re.compile(r"^(\w+): ", re.MULTILINE)


def pages() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    return {"cli.md": cli_page(), "case.md": case_page(), "instructions.md": instructions_page()}


def cli_page() -> str:
    """Return the page of all commands with their arguments and options."""
    rows = "".join(f"| [`{name}`](#tlcheck-{name}) | {text} |\n" for name, text in COMMANDS.items())
    commands = "\n".join(line for name in COMMANDS for line in _command(parser_of(name), 2))
    return (
        "# Commands\n\nEvery command with every option. Made by `make docs` from the parsers; `tlcheck COMMAND --help` "
        f"shows the same.\n\n| command | what it does |\n|---|---|\n{rows}\n{commands}"
    )


def _command(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """Yield the lines of a command, then those of its actions."""
    yield f"{'#' * level} {parser.prog}\n"
    if parser.description:
        yield f"{parser.description}\n"
    for group in parser._action_groups:
        shown = [a for a in group._group_actions if a.help != argparse.SUPPRESS and not _left_out(a)]
        if shown:
            if group.title not in ("positional arguments", "options"):
                yield f"**{group.title}**{f': {group.description}' if group.description else ''}\n"
            yield f"| {'option' if shown[0].option_strings else 'argument'} | |\n|---|---|"
            yield from (f"| `{_spelled(action)}` | {_cell(action.help or '')} |" for action in shown)
            yield ""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, each in action.choices.items():
            each.description = each.description or helps[name]
            yield from _command(each, level + 1)


def _left_out(action: argparse.Action) -> bool:
    """Whether an argument is told otherwise: actions have headings of their own, and all commands have help."""
    return isinstance(action, (argparse._SubParsersAction, argparse._HelpAction, ShortHelp))


def _spelled(action: argparse.Action) -> str:
    """Return an argument as it is typed, with the name of its value."""
    names = ", ".join(action.option_strings)
    choices = "|".join(map(str, action.choices)) if action.choices else ""
    value = "" if action.nargs == 0 else str(action.metavar or choices or action.dest.upper())
    return " ".join(filter(None, (names, value))).replace("|", r"\|")


def _cell(text: str) -> str:
    return text.replace("%%", "%").replace("|", r"\|")


def case_page() -> str:
    """Return the page of the fields of a case."""
    parts = (
        (Case, "A case is a module-level variable of a kernel file; the variable's name is the case's name."),
        (Expect, "An entry of `expect`: a defect that releases are known to have."),
        (Variant, "A value of `variants`, and `exact`: other inputs."),
    )
    tables = "\n".join(_fields(of, text) for of, text in parts)
    return (
        "# Fields of a case\n\n[Declaring a case](../cases.md) shows one. Made by `make docs` from `tlcheck/case.py`."
        f"\n\n{tables}"
    )


def _fields(of: type, text: str) -> str:
    told = field_texts(inspect.getdoc(of) or "")
    rows = (f"| `{f.name}` | {_default(f)} | {_cell(told[f.name])} |\n" for f in dataclasses.fields(of))
    return f"## {of.__name__}\n\n{text}\n\n| field | default | meaning |\n|---|---|---|\n{''.join(rows)}"


def field_texts(docstring: str) -> dict[str, str]:
    """Return what a docstring says of each field: the text after `name:` at a line's beginning, in one line."""
    _, *parts = _FIELD.split(docstring)
    texts = (part.partition("\n\n")[0] for part in parts[1::2])
    return {name: " ".join(text.split()).replace("``", "`") for name, text in zip(parts[::2], texts, strict=True)}


def _default(field: dataclasses.Field[object]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return f"`{field.default_factory()!r}`"
    return "required" if field.default is dataclasses.MISSING else f"`{field.default!r}`"


def instructions_page() -> str:
    """Return the page of the instructions that have a signature."""
    rows = "".join(
        f"| {_cell(family.name)} | {_cell(family.manual)} | {_names(family.signatures)} |\n" for family in FAMILIES
    )
    return (
        "# Instructions\n\nEach call of lowered code whose effects on memory and threads tlcheck knows. A call that is "
        "not here is [not decided](../reasons.md#u001-not-modelled), unless it only computes. "
        "[Extending](../extending.md#an-instruction) adds one. Made by `make docs` from `tlcheck/signatures`.\n\n"
        f"| family | manual | calls |\n|---|---|---|\n{rows}"
    )


def _names(of: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(of))


def write(folder: Path) -> None:
    """Write all pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
