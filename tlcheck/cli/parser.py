"""The parser of a command line, and groups of options as the dataclasses that commands take."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tlcheck.cli.usage import Usage
from tlcheck.errors import did_you_mean
from tlcheck.exits import USAGE

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Group = TypeVar("Group", bound="DataclassInstance")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and what it cannot print: argparse itself passes over a full disk.

    runs_scripts: whether what stands after `--` is the command line of scripts.
    told: its usual options and examples. `-h` shows these, `--help` everything.
    """

    runs_scripts = False

    def __init__(self, *, told: Usage = Usage(), **settings: Any) -> None:  # noqa: B008  (immutable)
        super().__init__(add_help=False, **settings)
        self.told = told
        if told.options:
            self.add_argument("-h", action=ShortHelp, help="show the usual options and examples, and exit")
        names = ("--help",) if told.options else ("-h", "--help")
        self.add_argument(*names, action="help", help="show all options, and exit")

    def actions(self) -> Iterator[tuple[str, Parser]]:
        """Yield the parser of each action, as of `tlcheck golden`."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices.items()

    def format_help(self) -> str:
        return super().format_help() + _examples(self.told)

    def format_short_help(self) -> str:
        """Return the usage, the usual options and examples."""
        formatter = self._get_formatter()
        positionals = [action for action in self._actions if not action.option_strings]
        formatter.add_usage(" ".join(["%(prog)s [options]", *map(_in_usage, positionals)]), [], [])
        formatter.add_text(self.description)
        options = [action for action in self._actions if set(action.option_strings) & set(self.told.options)]
        for heading, shown in (("arguments", positionals), ("usual options", options)):
            formatter.start_section(heading)
            formatter.add_arguments(shown)
            formatter.end_section()
        every = sum(bool(action.option_strings) for action in self._actions)
        return formatter.format_help() + _examples(self.told) + f"\n`{self.prog} --help` shows all {every} options.\n"

    def command_line(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments of a command; `script_args` holds those of scripts."""
        end = list(argv).index("--") if self.runs_scripts and "--" in argv else len(argv)
        args = self.parse_args(argv[:end])
        args.script_args = tuple(argv[end + 1 :])
        return args

    def error(self, message: str) -> NoReturn:
        meant = did_you_mean(*_unknown(message, _options(self)))
        message = re.sub(r"invalid \w+ value: ", "invalid value: ", message)  # not our function's name
        self.exit(USAGE, f"tlcheck: error: {message}{meant} (`{self.prog} --help` lists all)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)


class ShortHelp(argparse.Action):
    """`-h`."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        assert isinstance(parser, Parser)
        parser._print_message(parser.format_short_help(), sys.stdout)
        parser.exit()


def _in_usage(action: argparse.Action) -> str:
    """Return an argument without a dash as it stands in the usage."""
    name = str(action.metavar or action.dest)
    return {"*": f"[{name} ...]", "+": f"{name} [{name} ...]", "?": f"[{name}]"}.get(str(action.nargs), name)


def _examples(told: Usage) -> str:
    """Return the lines of examples, each below what it does."""
    lines = "".join(f"\n  # {text}\n  {command}\n" for command, text in told.examples)
    return f"\nexamples:{lines}" if lines else ""


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield what begins with a dash, of the actions of a command as well."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _options(each)


def _unknown(message: str, options: Iterable[str]) -> tuple[str, Iterable[str]]:
    """The word that argparse did not know, and those that it may be; an empty one for another error."""
    if option := re.match("unrecognized arguments: (--[^ =]+)", message):
        return option[1], options
    if choice := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
        return choice[1], re.findall(r"[\w-]+", choice[2])
    return "", ()


def read(group: type[Group], args: argparse.Namespace) -> Group:
    """Return a group of options from the parsed arguments, which are called as its fields are."""
    values = {field.name: getattr(args, field.name) for field in fields(group)}
    return group(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def positive(text: str) -> float:
    """A number of seconds, as an option's value."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of seconds")
    return value


def count(text: str) -> int:
    """A number from one on, as an option's value."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value
