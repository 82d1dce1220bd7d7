"""`tlcheck case`: write the stub of a case with a reference."""

from __future__ import annotations

import argparse
import ast
import json
from pathlib import Path

from tlcheck.cli.parser import Parser
from tlcheck.errors import UsageError
from tlcheck.exits import CLEAN
from tlcheck.files import save
from tlcheck.lower.case_stub import stub_of


def add_arguments(parser: Parser) -> None:
    parser.add_argument("kernel", metavar="FILE::NAME", help="a kernel function, or a declared case")
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", type=_pair, help="a build argument")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: FILE_cases.py beside the file")
    parser.add_argument("--force", action="store_true", help="overwrite what is there")


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _source(value: str) -> str:
    """A Python literal as it is, or else text."""
    try:
        return repr(ast.literal_eval(value))
    except (SyntaxError, ValueError):
        return json.dumps(value)


def run(args: argparse.Namespace) -> int:
    """Write the stub, and say what to do with it."""
    named, sign, name = args.kernel.partition("::")
    file = Path(named)
    if not sign or not name:
        raise UsageError(f"{args.kernel}: name a kernel, as in FILE::NAME")
    if not file.is_file():
        raise UsageError(f"no such file: {named}")
    given = {name: _source(value) for name, value in args.arg}
    try:
        text = stub_of(file, name, given)
    except SyntaxError as error:
        raise UsageError(f"{named}:{error.lineno}: {error.msg}") from error
    output = args.output or file.with_name(f"{file.stem}_cases.py")
    if output.exists() and not args.force:
        raise UsageError(f"{output} is there, and may be edited: --force overwrites it, -o FILE names another")
    save(output, text.encode())
    print(f"{output}: fill in `reference`, then `tlcheck run {output} --device cpu` compares the kernel with it")
    return CLEAN
