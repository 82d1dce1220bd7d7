"""Counts what the kernels of a corpus are made of: `python benchmarks/census.py NAME=FOLDER ... [-o FILE]`.

Writes a table with one line for each thing that occurs, as written (checkpoint `source`, or `intent` in snapshots
without it) and as lowered (`device-tir`), and one column for each corpus, arch and release: the number of different
kernels that have it. `modelled in` is the file of tlcheck/execute/ that gives a call or an attribute its meaning.
results/README.md says how the corpora of results/census.csv were made.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from packaging.version import Version

from tlcheck.execute.compile import registry
from tlcheck.execute.compile.functions import FUNCTIONS
from tlcheck.lower.runs import release_of
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Alloc, Attr, Block, Expr, For, Function, Snapshot, Stmt, Store, Unknown
from tlcheck.snapshot.text import render
from tlcheck.snapshot.walk import expressions, postorder, statements

LEVELS = {"written": ("source", "intent"), "lowered": ("device-tir",)}  # the first checkpoint that is there counts
MODELLED = ("call", "extern", "attribute")
ARGUMENTS = {  # calls that others read as their arguments, and those that only say which function is called
    "address_of": "compile/pointers.py",
    "access_ptr": "compile/pointers.py",
    "tvm_access_ptr": "compile/pointers.py",
    "handle_add_byte_offset": "compile/pointers.py",
    "region": "ops/tile/regions.py",
    "get_mbarrier": "ops/thread/mbarrier.py",
    "if_then_else": "compile/expressions.py",
    "call_extern": "compile/expressions.py",
    "call_pure_extern": "compile/expressions.py",
    "type_annotation": "compile/pointers.py",
    "pack_b16": "ops/thread/stmatrix.py",
    "tvm_tuple": "ops/tile/hints.py",
}
PRODUCTS = ("tl::gemm_ss", "tl::gemm_rs")  # functions that a call of another name calls: tl_gemm
_EXTERNS = ("call_extern", "call_pure_extern")
_WORD = re.compile(r"[\w.]*")
_TEMPLATE = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, order=True)
class Thing:
    """level: of `LEVELS`. kind: `call`, `extern` (a function of the device library), `form` (a call with the words
    among its arguments: the shape and types of an instruction), `attribute`, `statement`, `annotation`, ...
    """

    level: str
    kind: str
    name: str


@dataclass(frozen=True)
class Column:
    corpus: str
    arch: str
    release: str

    @property
    def key(self) -> tuple[str, str, Version]:
        return self.corpus, self.arch, Version(self.release)

    def __str__(self) -> str:
        return f"{self.corpus} {self.arch} {self.release}"


@dataclass
class Census:
    """models: (kind, name) -> file. kernels: thing -> column -> how many. arguments: call -> the numbers of arguments
    that it was seen with.
    """

    models: Mapping[tuple[str, str], str]
    kernels: dict[Thing, dict[Column, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    arguments: dict[Thing, set[int]] = field(default_factory=lambda: defaultdict(set))
    _seen: set[tuple[Column, str]] = field(default_factory=set)

    def add(self, corpus: str, snapshot: Snapshot) -> None:
        """Count a kernel, unless the same one was counted: scripts of a corpus import each other's kernels."""
        column = Column(corpus, snapshot.target, release_of(snapshot.toolchain))
        functions = {level: f for level, names in LEVELS.items() if (f := _first(snapshot, names)) is not None}
        text = "".join(str(render(function)) for function in functions.values())
        known = (column, hashlib.sha256(text.encode()).hexdigest())
        if known in self._seen:
            return
        self._seen.add(known)
        for level, function in functions.items():
            self._count(level, function, column)

    def _count(self, level: str, function: Function, column: Column) -> None:
        found = {Thing(level, "kernel", "")}
        for kind, name, arguments in things(function):
            found.add(thing := Thing(level, kind, name))
            if arguments is not None:
                self.arguments[thing].add(arguments)
        if all((thing.kind, thing.name) in self.models for thing in found if thing.kind in MODELLED):
            found.add(Thing(level, "kernel", "of which all calls and attributes are modelled"))
        for thing in found:
            self.kernels[thing][column] += 1

    def write(self, file: TextIO) -> None:
        """Write the table as CSV, sorted, the columns too."""
        columns = sorted({column for counts in self.kernels.values() for column in counts}, key=lambda c: c.key)
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["level", "kind", "name", "arguments", "modelled in", *map(str, columns)])
        for thing in sorted(self.kernels, key=lambda t: (list(LEVELS).index(t.level), t.kind != "kernel", t)):
            counts = [self.kernels[thing].get(column, "") for column in columns]
            arguments = " ".join(map(str, sorted(self.arguments.get(thing, ()))))
            model = self.models.get((thing.kind, thing.name), "")
            table.writerow([thing.level, thing.kind, thing.name, arguments, model, *counts])


def _first(snapshot: Snapshot, checkpoints: Iterable[str]) -> Function | None:
    return next((snapshot.checkpoints[name] for name in checkpoints if name in snapshot.checkpoints), None)


def things(function: Function) -> Iterator[tuple[str, str, int | None]]:
    """Yield kind, name and, of calls, the number of arguments of all that a function is made of."""
    for key, _ in function.attrs:
        yield "function attribute", key, None
    for buffer in function.buffers:
        yield "dtype", buffer.dtype, None
    for stmt in statements(function.body):
        yield from _of_statement(stmt)
        for e in postorder(expressions(stmt)):
            yield from _of_expression(e)


def _of_statement(stmt: Stmt) -> Iterator[tuple[str, str, None]]:
    form = type(stmt).__name__
    detail = {For: "kind", Unknown: "what"}.get(type(stmt))
    name = getattr(stmt, detail) if detail else stmt.buffer.scope if isinstance(stmt, Alloc) else ""
    yield "statement", f"{form} {name}".rstrip(), None
    if isinstance(stmt, Attr):
        yield "attribute", stmt.key, None
    if isinstance(stmt, (For, Block)):
        for key, _ in stmt.annotations:
            yield "annotation", f"{form} {key}", None
    if isinstance(stmt, (Alloc, Store)):
        yield "dtype", stmt.buffer.dtype, None


def _of_expression(e: Expr) -> Iterator[tuple[str, str, int | None]]:
    if e.op != "call":
        yield "expression", f"{e.op} {e.value}" if e.op == "unknown" else e.op, None
        return
    yield "call", str(e.value), len(e.args)
    words = [str(a.value) for a in e.args if a.op == "str"]
    if words and (str(e.value) in _EXTERNS or "::" in words[0]):
        yield "extern", plain_name(words[0]), len(e.args) - 1
    elif words and all(_WORD.fullmatch(word) for word in words):
        yield "form", " ".join([str(e.value), *words]), None
    for key, _ in e.annotations:
        yield "annotation", f"{e.value} {key}", None


def plain_name(function: str) -> str:
    """Return a device function's name without template arguments and `::run`: `tl::AllReduce`."""
    shorter = _TEMPLATE.sub("", function)
    return plain_name(shorter) if shorter != function else function.removesuffix("::run")


def models() -> dict[tuple[str, str], str]:
    """Return the files of tlcheck/execute/ that give things their meaning: (kind, name) -> file."""
    registry.load()
    tables: dict[str, Mapping[str, Callable[..., object]]] = {
        "call": registry.CALLS,
        "extern": registry.EXTERNS,
        "attribute": registry.ATTRIBUTES,
        "annotation": {f"Block {name}": handler for name, handler in registry.ANNOTATIONS.items()},
    }
    found = {(kind, name): _file(handler) for kind, table in tables.items() for name, handler in table.items()}
    found |= {("attribute", name): "compile/statements.py" for name in registry.WITHOUT_MEANING}
    found |= {(kind, name): "compile/functions.py" for kind in ("call", "extern") for name in FUNCTIONS}
    found |= {("extern", name): found["call", "tl_gemm"] for name in PRODUCTS}
    return found | {("call", name): file for name, file in ARGUMENTS.items()}


def _file(handler: Callable[..., object]) -> str:
    return handler.__module__.removeprefix("tlcheck.execute.").replace(".", "/") + ".py"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="NAME=FOLDER", help="a folder of snapshots, with those below it")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
    args = parser.parse_args(arguments)
    census = Census(models())
    for corpus, _, folder in (text.partition("=") for text in args.corpora):
        if not Path(folder).is_dir():
            parser.error(f"{corpus}={folder}: not NAME=FOLDER, or no such folder")
        for file in sorted(Path(folder).rglob("*.snapshot.json")):
            census.add(corpus, codec.loads(file.read_text(encoding="utf-8")))
    if args.output is None:
        census.write(sys.stdout)
        return 0
    with args.output.open("w", encoding="utf-8", newline="") as file:
        census.write(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
