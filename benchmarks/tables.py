"""Tables of results as CSV files with a head, one row for each kernel, sorted: what is new is what git shows."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

Row = TypeVar("Row")


def read(file: Path, make: Callable[..., Row]) -> set[Row]:
    """Return the rows of an earlier run; none if there is no file. make: a row of its cells."""
    if not file.exists():
        return set()
    with file.open(encoding="utf-8", newline="") as lines:
        return {make(*line) for line in list(csv.reader(lines))[1:]}


def write(file: Path, head: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Write all rows, sorted, below the names of their columns."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerows([head, *sorted(rows)])
