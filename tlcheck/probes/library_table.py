"""The table of `tlcheck/program/device_library.json`: measurements put into it, and its text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from itertools import chain

from packaging.version import Version

from tlcheck.program.device_library import ORDERS, UNKNOWN, Behaviour, DeviceLibrary, LibraryCall

Measured = Mapping[LibraryCall, Behaviour]
Results = Mapping[tuple[str, int], Measured]  # of (release, arch)


def results(table: DeviceLibrary) -> dict[tuple[str, int], dict[LibraryCall, Behaviour]]:
    """All that a table holds."""
    columns = [(release, arch) for arch in table.archs for release in table.wheels]
    found: dict[tuple[str, int], dict[LibraryCall, Behaviour]] = {column: {} for column in columns}
    for key, numbers in table.calls.items():
        for order, row in enumerate(numbers):
            for column, number in zip(columns, _spread(table.rows[row]), strict=True) if row != UNKNOWN else ():
                if number != UNKNOWN:
                    found[column][_call(key, order)] = table.behaviours[number]
    return {column: measured for column, measured in found.items() if measured}


def text(date: str, compiler: str, wheels: Mapping[str, str], headers: Mapping[str, str], measured: Results) -> str:
    """A table as JSON, sorted, with one line for each release, behaviour, row and call; equal rows are one."""
    archs = sorted({arch for _, arch in measured})
    releases = sorted(wheels, key=Version)
    columns = [(release, arch) for arch in archs for release in releases]
    behaviours = sorted({b for found in measured.values() for b in found.values()})
    number = {b: i for i, b in enumerate(behaviours)}
    rows: dict[LibraryCall, tuple[int, ...]] = {}
    for call in sorted({call for found in measured.values() for call in found}):
        found = [measured.get(column, {}).get(call) for column in columns]
        rows[call] = _runs([UNKNOWN if b is None else number[b] for b in found])
    distinct = {row: i for i, row in enumerate(sorted(set(rows.values())))}
    lines: dict[str, list[int]] = {}
    for call, row in rows.items():
        lines.setdefault(call.key, [UNKNOWN] * len(ORDERS))[call.order] = distinct[row]
    return _object(
        {
            "measured": json.dumps(date),
            "compiler": json.dumps(compiler),
            "wheels": _object({release: json.dumps(wheels[release]) for release in releases}),
            "headers": _object({release: json.dumps(headers[release]) for release in releases if release in headers}),
            "archs": json.dumps(archs),
            "behaviours": _array([json.dumps(astuple(b)) for b in behaviours]),
            "rows": _array([json.dumps(row) for row in distinct]),
            "calls": _object({key: json.dumps(numbers) for key, numbers in lines.items()}),
        }
    )


def _call(key: str, order: int) -> LibraryCall:
    operation, destination, value, width, _, passed, *rest = key.split()
    returns, shared = "returned" in rest, "shared" in rest
    return LibraryCall(operation, destination, value, int(width[1:]), passed == "pointer", order, returns, shared)


def _runs(numbers: list[int]) -> tuple[int, ...]:
    """Count and number of each run of equal numbers, in one tuple."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1][0] += 1
        else:
            runs.append([1, number])
    return tuple(chain.from_iterable(runs))


def _spread(runs: Sequence[int]) -> list[int]:
    """The numbers that `_runs` counted."""
    return [number for count, number in zip(runs[::2], runs[1::2], strict=True) for _ in range(count)]


def _array(lines: list[str]) -> str:
    return "[\n" + ",\n".join(lines) + "\n]"


def _object(lines: Mapping[str, str]) -> str:
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {value}" for key, value in lines.items()) + "\n}"
