"""`tlcheck new`: the files of a new instruction or rule, in a checkout of tlcheck."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from tlcheck.cli import scaffolds
from tlcheck.errors import UsageError
from tlcheck.exits import CLEAN
from tlcheck.files import save

_TABLE = Path("tlcheck/signatures/table.py")
_RULES = Path("tlcheck/verdicts/rules")
_LAST_FAMILY = "    control.FAMILY,\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    instruction = actions.add_parser("instruction", help="write a handler, a signature and a test")
    instruction.add_argument("name", metavar="NAME", help="the name of the call in the TIR")
    instruction.add_argument("--manual", required=True, metavar="SECTION", help='such as "PTX 9.7.13.6"')
    rule = actions.add_parser("rule", help="write a rule that an execution finds, and a test")
    rule.add_argument("id", metavar="ID", help="one that no rule has had: TLO, TLR, TLL or TLS, and three digits")
    rule.add_argument("name", metavar="NAME", help="such as divergent-barrier")
    rule.add_argument("title", metavar="TITLE", help='such as "some threads of the block do not reach a barrier"')


def run(args: argparse.Namespace) -> int:
    if not _TABLE.is_file():
        raise UsageError(f"no {_TABLE} here: run it in the folder of a checkout of tlcheck")
    written = _instruction(args.name, args.manual) if args.action == "instruction" else _rule(args)
    for file in written:
        if file.exists() and file != _TABLE:
            raise UsageError(f"{file} is there")
    for file, text in written.items():
        save(file, text)
        print(file)
    print("fill in what says so; docs/extending.md explains each file")
    return CLEAN


def _instruction(name: str, manual: str) -> Mapping[Path, str]:
    """Return the text of each file. Raises UsageError."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UsageError(f"{name}: the name of a file, too: lower case letters, digits and _")
    words = {"name": name, "manual": manual}
    return {
        Path(f"tlcheck/execute/ops/thread/{name}.py"): scaffolds.HANDLER.format(**words),
        Path(f"tlcheck/signatures/{name}.py"): scaffolds.SIGNATURE.format(**words),
        Path(f"tests/cpu/execute/ops/thread/test_{name}.py"): scaffolds.INSTRUCTION_TEST.format(**words),
        _TABLE: _with_family(_TABLE.read_text(encoding="utf-8"), name),
    }


def _with_family(table: str, name: str) -> str:
    """Return the table of families with one more: an import in its place, and an entry before the last."""
    names = re.search(r"from tlcheck\.signatures import \(\n((?:    \w+,\n)+)\)", table)
    if names is None or _LAST_FAMILY not in table:
        raise UsageError(f"{_TABLE} does not look as `tlcheck new` knows it: see docs/extending.md")
    imports = "".join(sorted({*names[1].splitlines(keepends=True), f"    {name},\n"}))
    table = table.replace(names[1], imports)
    return table.replace(_LAST_FAMILY, f"    {name}.FAMILY,\n{_LAST_FAMILY}")


def _rule(args: argparse.Namespace) -> Mapping[Path, str]:
    """Return the text of each file. Raises UsageError."""
    identifier, slug = args.id.upper(), args.name.lower().replace("-", "_")
    if not re.fullmatch(r"TL[ORLS]\d{3}", identifier):
        raise UsageError(
            f"{args.id}: TLO, TLR, TLL or TLS, and three digits; a rule of the proofs (TLA) has no scaffold"
        )
    if taken := [file.name for file in _RULES.glob(f"{identifier.lower()}_*.py")]:
        raise UsageError(f"{identifier} is taken: {taken[0]}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", slug):
        raise UsageError(f"{args.name}: words of letters and digits with - between them")
    words = {"id": identifier, "title": args.title, "problem": slug.replace("_", " ")}
    return {
        _RULES / f"{identifier.lower()}_{slug}.py": scaffolds.RULE.format(**words),
        Path(f"tests/cpu/verdicts/rules/test_{identifier.lower()}.py"): scaffolds.RULE_TEST.format(**words),
    }
