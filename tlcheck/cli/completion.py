"""`tlcheck completion`: the script with which a shell completes commands, options and files."""

from __future__ import annotations

import argparse

import shtab

from tlcheck.cli.parser import Parser
from tlcheck.exits import CLEAN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh"), help="shell whose script is printed")


def run(args: argparse.Namespace) -> int:
    print(shtab.complete(_whole(), args.shell))
    return CLEAN


def _whole() -> argparse.ArgumentParser:
    """Return one parser of all commands. They are imported by name: each imports what it needs."""
    from tlcheck.cli.main import COMMANDS, parser_of  # which imports this module

    whole = argparse.ArgumentParser(prog="tlcheck")
    commands = whole.add_subparsers(parser_class=Parser)
    for name, text in COMMANDS.items():
        parser = parser_of(name)
        _complete_files(parser)
        commands.add_parser(name, help=text)
        commands.choices[name] = parser
    return whole


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Have the arguments that are files and folders completed."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _complete_files(each)
        elif action.metavar in ("CASE", "FILE", "PATH", "FILE::NAME", "SCRIPT"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
