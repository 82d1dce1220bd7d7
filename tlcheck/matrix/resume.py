"""Cells of an earlier report that need not be made again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tlcheck.errors import UsageError
from tlcheck.lower.selection import Selection
from tlcheck.matrix.cell import Cell, hash_of_file
from tlcheck.matrix.table import Column
from tlcheck.toolchain.releases import RELEASES

SCHEMA = 1


@dataclass(frozen=True)
class MatrixReport:
    """Report of `tlcheck matrix --format json`, and what `--resume` reads.

    schema: version of this form; it changes when a field changes its meaning or goes away. exit_code: 1 a cell is
    wrong, 3 one is broken or nothing of it is decided, 0 else. asked: archs, blocks and the like, which say what a cell
    stands for. columns: the toolchains. supported: those with which every kernel lowers and nothing is refuted.
    cells: sorted by file, kernel, target and toolchain; of a toolchain that has no such kernel there is none.
    """

    schema: int
    tlcheck: str
    exit_code: int
    asked: Mapping[str, str]
    columns: tuple[Column, ...]
    supported: tuple[str, ...]
    notes: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Known:
    """A record of what an earlier report knows that still holds: of released toolchains, and of files that are as they
    were.
    """

    columns: tuple[Column, ...] = ()
    cells: tuple[Cell, ...] = ()

    def left(self, selections: Iterable[Selection], toolchain: str) -> list[Selection]:
        """Return what a toolchain has still to do."""
        done = {cell.file for cell in self.cells if cell.toolchain == toolchain}
        return [selection for selection in selections if selection.name or str(selection.path) not in done]

    def of(self, selections: Sequence[Selection], toolchains: Sequence[str]) -> list[Cell]:
        """The cells of these files that are not made again."""
        whole = {str(selection.path) for selection in selections if not selection.name}
        return [cell for cell in self.cells if cell.file in whole and cell.toolchain in toolchains]


def read_known(file: Path, asked: Mapping[str, str]) -> Known:
    """Read an earlier report; a file that is not there, or is empty, knows nothing.

    A checkout and a wheel may have changed under their name: only releases count. Raises UsageError for what is no such
    report, and for one that was asked for something else.
    """
    if not file.exists() or not file.stat().st_size:
        return Known()
    try:
        report = msgspec.json.decode(file.read_bytes(), type=MatrixReport)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"--resume {file}: no report of `tlcheck matrix --format json`: {error}") from error
    if report.schema != SCHEMA:
        raise UsageError(f"--resume {file}: it has schema {report.schema}, and not {SCHEMA}: make it anew")
    if dict(report.asked) != dict(asked):
        raise UsageError(f"--resume {file}: it was asked for {_words(report.asked)}, and now for {_words(asked)}")
    content = {name: hash_of_file(Path(name)) for name in {cell.file for cell in report.cells}}
    cells = (cell for cell in report.cells if cell.toolchain in RELEASES and cell.content == content[cell.file])
    return Known(report.columns, tuple(cells))


def _words(asked: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in asked.items())
