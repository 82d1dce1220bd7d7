"""A matrix in words, the same in every format for people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tlcheck.cost.figures import CostFigures, more_than, short
from tlcheck.matrix.cell import STATES, Cell, State
from tlcheck.matrix.table import Column, Matrix, MatrixRow
from tlcheck.verdicts.words import plural

_WIDTH = 300  # characters of a line


def verdict_in_words(found: Matrix) -> str:
    """`2 kernels with 3 toolchains: 0.1.12, 0.1.15 can be supported`."""
    usable = ", ".join(column.title for column in found.columns if found.is_supported(column))
    counts = f"{plural(len(found.rows), 'kernel')} with {plural(len(found.columns), 'toolchain')}"
    return f"{counts}: {usable or 'none'} can be supported"


def column_in_words(found: Matrix, column: Column) -> str:
    """`12 fine, 1 wrong, 2 undecided (U001, U018)`."""
    states = found.states(column)
    codes = f" ({', '.join(found.codes(column))})" if found.codes(column) else ""
    counts = [f"{states.count(state)} {state}{codes * (state == 'undecided')}" for state in STATES if state in states]
    return ", ".join(counts)


def since_in_words(row: MatrixRow) -> str:
    """`wrong from 0.1.9 on, right again in 0.1.14`; empty where nothing is wrong."""
    if row.first_wrong is None:
        return ""
    again = f", right again in {row.right_again}" if row.right_again else ""
    return f"wrong from {row.first_wrong} on{again}"


def costs_in_words(row: MatrixRow) -> Iterator[str]:
    """Yield what a kernel costs with each toolchain, where it was counted, and what is more than with the one before.

    Toolchains that follow one another with equal figures share a line.
    """
    counted = [(cell.toolchain, cell.cost) for cell in row.cells if cell.cost is not None]
    before: CostFigures | None = None
    for figures, group in groupby(counted, key=lambda one: one[1]):
        more = ", ".join(more_than(before, figures)) if before is not None else ""
        names = ", ".join(name for name, _ in group)
        yield f"{names}: {figures_in_words(figures)}{f'; more than before: {more}' if more else ''}"
        before = figures


def figures_in_words(cost: CostFigures) -> str:
    """`405 MB of global memory, 3.2 M wavefronts of shared, wgmma, 1 block on a multiprocessor`."""
    parts = [f"{short(cost.global_bytes)}B of global memory", f"{short(cost.wavefronts).strip()} wavefronts of shared"]
    parts += [f"{short(cost.in_flight)}B in flight"] * bool(cost.in_flight) + [cost.tensor] * bool(cost.tensor)
    return ", ".join([*parts, f"{plural(cost.resident, 'block')} on a multiprocessor"])


def told(row: MatrixRow) -> Iterator[tuple[State, str, str]]:
    """Yield what is not fine in a row: state, toolchains and words; equal words of several toolchains once."""
    found: dict[tuple[State, str], list[str]] = {}
    for cell in row.cells:
        if cell.state in ("wrong", "hazard", "broken", "undecided"):
            found.setdefault((cell.state, _first_line(cell)), []).append(cell.toolchain)
    for (state, words), toolchains in found.items():
        yield state, ", ".join(toolchains), words


def _first_line(cell: Cell) -> str:
    line = (cell.words or "nothing is claimed").splitlines()[0]
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."
