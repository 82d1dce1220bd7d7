"""Options of the commands that run scripts, which are kernel files without a case."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlcheck.scripts import Scripts

MAX_CONFIGS = 1


def add_script_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of scripts stands after `--`: `tlcheck.cli.main` puts it into `script_args`."""
    from tlcheck.cli.options import count

    group = parser.add_argument_group("scripts", "Files without a case are run, with the arguments after `--`.")
    group.add_argument(
        "--max-configs",
        type=count,
        default=MAX_CONFIGS,
        metavar="N",
        help=f"configurations of an autotuned kernel (default: {MAX_CONFIGS})",
    )
    group.add_argument("--keep-going", action="store_true", help="pass over scripts that end before their first kernel")


def own_and_script(parser: argparse.ArgumentParser, argv: list[str]) -> tuple[list[str], list[str]]:
    """The arguments before `--` and those after it, where a command runs scripts; else all and none."""
    if parser.get_default("max_configs") is None or "--" not in argv:
        return argv, []
    end = argv.index("--")
    return argv[:end], argv[end + 1 :]


def scripts_of(args: argparse.Namespace) -> Scripts | None:
    """From `add_script_arguments`; None for a command without it, which runs no scripts."""
    from tlcheck.scripts import Scripts

    if not hasattr(args, "max_configs"):
        return None
    return Scripts(tuple(getattr(args, "script_args", ())), args.max_configs, args.keep_going)
