"""The `tlcheck` command: picks a command's module, runs it, turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, cast

from tlcheck import __version__
from tlcheck.cli.interruption import end_code, ending
from tlcheck.cli.parser import Parser
from tlcheck.cli.usage import USAGES, Usage
from tlcheck.errors import UsageError, did_you_mean
from tlcheck.exits import CLEAN, USAGE

# Name -> one line of help. Only the chosen command's module is imported: `tlcheck --help` stays instant.
COMMANDS = {
    "init": "write a project's settings, first cases and CI workflow",
    "check": "lower kernels, or read snapshots: prove atomics, execute and compare, order every access",
    "fix": "find the smallest change that makes a miscompiled kernel right",
    "reduce": "cut a miscompiled kernel down to the smallest one with the same finding",
    "report": "write the issue for TileLang: the reduced kernel, releases, the pass, a workaround",
    "case": "write a case for a kernel, with a reference to fill in",
    "capture": "run scripts as they are, and keep the kernels that they compile as cases and snapshots",
    "dump": "write the TIR of a kernel at a checkpoint, and its CUDA source",
    "run": "run kernels on a GPU and compare them with torch",
    "fuzz": "generate kernels, and find those that a release silently miscompiles",
    "matrix": "check kernels with many toolchains, and say which can be supported",
    "trace": "say where an element of an output comes from, as written and as lowered",
    "cost": "count what each access of a kernel costs: sectors, bank conflicts, widths, flops",
    "gate": "lower kernels with two toolchains and say whether the upgrade is safe",
    "diff": "say what differs between two kernels, releases, goldens or dumps",
    "golden": "keep approved IR with git: check, update, review, one HTML page",
    "layout": "draw where a buffer's elements lie, or which thread holds them",
    "explain": "show a rule: what it means, why, a bad and a good example",
    "bisect": "find the releases that miscompile a kernel, or the guilty pass",
    "cache": "show or remove the results of earlier runs",
    "toolchain": "install, list, remove and locate TileLang releases",
    "new": "write the files of a new instruction or rule, in a checkout of tlcheck",
    "completion": "print the script with which bash or zsh completes commands and options",
    "doctor": "show what is installed, what works, and what to do about the rest",
}

_PLAIN = ("cache", "case", "completion", "new")  # print no colours

# What the machine refuses, wherever that happens: also in the middle of a write.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EROFS, errno.EACCES, errno.EPERM)


_NAMED = re.compile(r"([^=]+\.py)::([A-Za-z_]\w*)(?:@.*)?")


class Command(Protocol):
    """The functions that a module of this package offers."""

    def add_arguments(self, parser: Parser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        with ending():
            return _flushed(list(sys.argv[1:] if argv is None else argv))
    except UsageError as error:
        print(f"tlcheck: error: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        _discard_stdout()
        return CLEAN
    except OSError as error:
        if error.errno not in (*_NO_ROOM, *_NOT_ALLOWED):
            raise
        print(f"tlcheck: error: {error.filename or 'cannot write'}: {error.strerror}", file=sys.stderr)
        if error.filename is None:
            _discard_stdout()
        return USAGE
    except KeyboardInterrupt as error:
        print("tlcheck: interrupted", file=sys.stderr)
        return end_code(error)


def _flushed(argv: list[str]) -> int:
    """Run a command: a full disk, or a reader that has gone away, shows here and not while the interpreter exits."""
    try:
        return _run(argv)
    finally:
        sys.stdout.flush()


def _run(argv: list[str]) -> int:
    arguments = _parser().parse_args(argv[:1])
    name: str = arguments.command
    if list(argv[:2]) == ["report", "golden"]:
        raise UsageError("`tlcheck report golden` is called `tlcheck golden page` now")
    if name not in COMMANDS:
        raise UsageError(f"no command {name!r}{did_you_mean(name, COMMANDS)} (`tlcheck --help` lists all)")
    _require_names(argv[1:])
    args = parser_of(name).command_line(argv[1:])
    _set_colours(getattr(args, "color", "auto"))
    return _module(name).run(args)


def _set_colours(wanted: str) -> None:
    """Tell this process and those that it starts (https://no-color.org, https://force-color.org)."""
    if wanted == "auto":
        return
    gone, said = ("NO_COLOR", "FORCE_COLOR") if wanted == "always" else ("FORCE_COLOR", "NO_COLOR")
    os.environ.pop(gone, None)
    os.environ[said] = "1"


def _require_names(words: Sequence[str]) -> None:
    """Raise UsageError for `FILE::NAME` with a name that the file has not: before the command's module is imported."""
    ours = words[: words.index("--")] if "--" in words else words
    for word in ours:
        if (named := _NAMED.fullmatch(word)) and (file := Path(named[1])).is_file():
            from tlcheck.lower.source_names import require_name

            require_name(file, named[2])


def parser_of(name: str) -> Parser:
    """Return the parser of a command, whose module is imported."""
    parser = Parser(told=USAGES.get(name, Usage()), prog=f"tlcheck {name}", description=_sentence(COMMANDS[name]))
    _module(name).add_arguments(parser)
    for action, each in parser.actions():
        each.told = USAGES.get(f"{name} {action}", Usage())
    if name not in _PLAIN:
        parser.add_argument(
            "--color", choices=("auto", "always", "never"), default="auto", help="colours (default: auto)"
        )
    return parser


def _module(name: str) -> Command:
    return cast(Command, importlib.import_module(f"tlcheck.cli.{name}"))


def _parser() -> argparse.ArgumentParser:
    """The parser of the first word only; the rest belongs to the command."""
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    parser = Parser(
        prog="tlcheck",
        usage="tlcheck [-h] [--version] COMMAND ...",
        description="Lower TileLang kernels with any release, prove their atomics, and execute them.",
        epilog=f"commands:\n{lines}\n\n`tlcheck COMMAND -h` shows usual options and examples, `--help` all options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tlcheck {__version__}")
    parser.add_argument("command", help=argparse.SUPPRESS, metavar="COMMAND")
    return parser


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _discard_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush cannot fail again."""
    with suppress(OSError):  # a stream that is no file has nothing to lose
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    raise SystemExit(main())
