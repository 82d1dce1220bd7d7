"""The table: a row for each kernel and target, a column for each toolchain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tlcheck import exits
from tlcheck.gate.pairing import call_of
from tlcheck.matrix.cell import Cell, State


@dataclass(frozen=True)
class Column:
    """One toolchain. name: as the user named it. title: with the commit of a checkout. versions: see `Run`."""

    name: str
    title: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class MatrixRow:
    """One kernel for one target. name: empty for a file that has none. cells: one for each column."""

    file: str
    name: str
    target: str
    cells: tuple[Cell, ...]

    @property
    def title(self) -> str:
        """`FILE::NAME sm_90`."""
        return " ".join(part for part in (f"{self.file}::{self.name}" if self.name else self.file, self.target) if part)

    @property
    def first_wrong(self) -> str | None:
        """The first toolchain that has it wrong."""
        return next((cell.toolchain for cell in self.cells if cell.is_wrong), None)

    @property
    def right_again(self) -> str | None:
        """The first toolchain that is fine, of those after the last wrong one."""
        wrong = [place for place, cell in enumerate(self.cells) if cell.is_wrong]
        later = self.cells[wrong[-1] + 1 :] if wrong else ()
        return next((cell.toolchain for cell in later if cell.state == "fine"), None)


@dataclass(frozen=True)
class Matrix:
    """All kernels with all toolchains. asked: archs, blocks and the like, which say what a cell stands for."""

    asked: Mapping[str, str]
    columns: tuple[Column, ...]
    rows: tuple[MatrixRow, ...]
    notes: tuple[str, ...] = ()

    def states(self, column: Column) -> list[State]:
        """The states of a toolchain's cells."""
        place = self.columns.index(column)
        return [row.cells[place].state for row in self.rows]

    def codes(self, column: Column) -> list[str]:
        """The codes of the reasons for what is undecided with a toolchain."""
        place = self.columns.index(column)
        claims = [claim for row in self.rows for claim in row.cells[place].claims]
        return sorted({claim.code for claim in claims if claim.code})

    def is_supported(self, column: Column) -> bool:
        """Whether every kernel lowers with this toolchain, nothing is refuted, and something is decided."""
        cells = [row.cells[self.columns.index(column)] for row in self.rows]
        decided = any(cell.state != "absent" and not cell.is_silent for cell in cells)
        return decided and not {"wrong", "hazard", "broken"} & set(self.states(column))

    @property
    def exit_code(self) -> int:
        """The exit code of all cells. One of which nothing is decided is not checked."""
        cells = [cell for row in self.rows for cell in row.cells]
        return exits.exit_code(
            found=any(cell.is_wrong for cell in cells),
            unchecked=any(cell.state == "broken" or cell.is_silent for cell in cells),
        )


def rows_of(cells: Iterable[Cell], toolchains: Sequence[str]) -> tuple[MatrixRow, ...]:
    """Make the rows, by file and, within one, in the order of its kernels.

    A kernel that a toolchain did not come to is broken there, for the reason that its file or script is. Of a named
    kernel whose file cannot be imported the arch is not known: it has a row of its own only if no toolchain lowers it.
    """
    ordered = sorted(cells, key=lambda cell: (cell.file, cell.place, cell.target))
    lowered = [cell for cell in ordered if cell.name and cell.target]
    wholes = {(c.file, c.name, c.target, c.toolchain): c for c in ordered if not (c.name and c.target)}
    groups: dict[object, dict[str, Cell]] = {}
    for key, cell in _keyed(lowered):
        groups.setdefault(key, {})[cell.toolchain] = cell
    told = {(cell.file, "") for cell in ordered if cell.name} | {(cell.file, cell.name) for cell in lowered}
    for whole in wholes.values():
        if (whole.file, whole.name) not in told:
            groups.setdefault((whole.file, whole.name, whole.target), {})[whole.toolchain] = whole
    rows = [_row(next(iter(group.values())), group, wholes, toolchains) for group in groups.values()]
    return tuple(sorted(rows, key=lambda row: row.file))


def _keyed(cells: Iterable[Cell]) -> Iterator[tuple[object, Cell]]:
    """Each kernel with what it is: a script's by its call, and by which of several alike."""
    seen = Counter[object]()
    for cell in cells:
        what = cell.file, cell.target, call_of(cell.name, cell.args) if cell.captured else cell.name
        seen[what, cell.toolchain] += 1
        yield (what, seen[what, cell.toolchain]), cell


def _row(
    first: Cell, group: Mapping[str, Cell], wholes: Mapping[tuple[str, str, str, str], Cell], toolchains: Sequence[str]
) -> MatrixRow:
    cells = (group.get(toolchain) or _missing(first, toolchain, wholes) for toolchain in toolchains)
    return MatrixRow(first.file, first.name, first.target, tuple(cells))


def _missing(known: Cell, toolchain: str, wholes: Mapping[tuple[str, str, str, str], Cell]) -> Cell:
    """Return what stands for a kernel that a toolchain has no result of."""
    those = ("", known.target), ("", ""), (known.name, "")
    found = [wholes.get((known.file, name, target, toolchain)) for name, target in those]
    whole = next((cell for cell in found if cell is not None), None)
    state: State = "absent" if whole is None else "broken"
    failure = whole.failure if whole is not None else None
    return replace(known, toolchain=toolchain, state=state, counts={}, claims=(), failure=failure, cost=None)
