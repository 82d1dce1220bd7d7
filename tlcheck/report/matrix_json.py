"""A matrix for programs, and for the run that resumes it."""

from __future__ import annotations

from tlcheck import __version__
from tlcheck.matrix.cells import Cell
from tlcheck.matrix.resume import SCHEMA, MatrixReport
from tlcheck.matrix.table import Matrix
from tlcheck.report.check_json import as_json


def render(found: Matrix) -> str:
    """The whole report, indented, with a newline at its end. Equal results give equal bytes."""
    cells = (cell for row in found.rows for cell in row.cells if cell.state != "absent")
    return as_json(
        MatrixReport(
            schema=SCHEMA,
            tlcheck=__version__,
            exit_code=found.exit_code,
            asked=found.asked,
            columns=found.columns,
            supported=tuple(column.name for column in found.columns if found.is_supported(column)),
            notes=found.notes,
            cells=tuple(sorted(cells, key=_place)),
        )
    )


def _place(cell: Cell) -> tuple[object, ...]:
    return cell.file, cell.place, cell.target, cell.name, cell.toolchain
