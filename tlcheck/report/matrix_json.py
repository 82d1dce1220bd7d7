"""A matrix for programs, and for the run that resumes it."""

from __future__ import annotations

from tlcheck import __version__
from tlcheck.matrix.cell import Cell
from tlcheck.matrix.resume import SCHEMA, MatrixReport
from tlcheck.matrix.table import Matrix
from tlcheck.report.records import as_json, record


def render(found: Matrix) -> str:
    """The whole report, indented, with a newline at its end. Equal results give equal bytes."""
    there = (cell for row in found.rows for cell in row.cells if cell.state != "absent")
    cells = tuple(sorted(there, key=_place))
    supported = tuple(column.name for column in found.columns if found.is_supported(column))
    return as_json(record(MatrixReport, found, schema=SCHEMA, tlcheck=__version__, supported=supported, cells=cells))


def _place(cell: Cell) -> tuple[object, ...]:
    return cell.file, cell.place, cell.target, cell.name, cell.toolchain
