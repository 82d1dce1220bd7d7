"""The parser of a command line, and groups of options as the dataclasses that commands take."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tlcheck.errors import did_you_mean
from tlcheck.exits import USAGE

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Group = TypeVar("Group", bound="DataclassInstance")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and what it cannot print: argparse itself passes over a full disk.

    runs_scripts: whether what stands after `--` is the command line of scripts.
    """

    runs_scripts = False

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
