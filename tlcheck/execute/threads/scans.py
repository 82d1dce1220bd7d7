"""Scans of a buffer in shared memory by the device library: CumSum and CumMax in one and two dimensions (scan.h).

All threads of the block call the function; together they do what it promises: dst holds the inclusive scan of src.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tlcheck.execute.expressions import template_arguments
from tlcheck.execute.frame import Frame
from tlcheck.execute.places import Place
from tlcheck.execute.reasons import NotModelled
from tlcheck.execute.registry import extern
from tlcheck.execute.values import Array, Value, rounding
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.codes import Run
    from tlcheck.execute.machine import Machine

_SCANS: dict[str, np.ufunc] = {"CumSum": np.add, "CumMax": np.maximum, "ScanSumOp": np.add, "ScanMaxOp": np.maximum}


@extern("tl::CumSum1D", "tl::CumMax1D", "tl::InclusiveScan1D")
def scan_line(e: Expr, machine: Machine) -> Run:
    """<[op, ]threads[, reverse]>(src, dst, length)."""
    combine, parameters = _parameters(e)
    length = _literal(e.args[2])
    reverse = "true" in parameters[1:2] or "1" in parameters[1:2]
    return _scanning(e, (length,), (1,), (1,), 0, reverse, combine, machine)


@extern("tl::CumSum2D", "tl::CumMax2D", "tl::InclusiveScan2D")
def scan_rows(e: Expr, machine: Machine) -> Run:
    """<[op, ]threads[, axis[, reverse]]>(src, dst, rows, columns[, stride of src, of dst])."""
    combine, parameters = _parameters(e)
    rows, columns = _literal(e.args[2]), _literal(e.args[3])
    strides = [_literal(a) for a in e.args[4:6]] or [columns, columns]
    axis = int(parameters[1]) if len(parameters) > 1 else 0
    reverse = len(parameters) > 2 and parameters[2] in ("true", "1")
    return _scanning(e, (rows, columns), (strides[0], 1), (strides[-1], 1), axis, reverse, combine, machine)


def _parameters(e: Expr) -> tuple[np.ufunc, list[str]]:
    """What is combined, and the template arguments from `threads` on."""
    name, parameters = str(e.value), template_arguments(str(e.value))
    for key, combine in _SCANS.items():
        if key in name:
            return combine, parameters[1:] if "Scan" in key else parameters
    raise NotModelled(name)


def _literal(e: Expr) -> int:
    if e.op != "int" or not isinstance(e.value, int):
        raise NotModelled("scan of varying length")
    return e.value


def _scanning(
    e: Expr,
    shape: tuple[int, ...],
    source_strides: tuple[int, ...],
    target_strides: tuple[int, ...],
    axis: int,
    reverse: bool,
    combine: np.ufunc,
    machine: Machine,
) -> Run:
    source = machine.pointer(e.args[0], _elements(shape, source_strides))
    target = machine.pointer(e.args[1], _elements(shape, target_strides))
    settle = rounding(target.kind, machine.options.exact)

    def run(frame: Frame) -> Value:
        values = source.load(frame)[..., :1].reshape(*shape, frame.worlds)
        values = np.flip(values, axis) if reverse else values
        found: Array = combine.accumulate(values, axis=axis, dtype=values.dtype)
        found = np.flip(found, axis) if reverse else found
        found = found if settle is None else settle(found)
        _store(target, frame, found.reshape(-1, frame.worlds, 1))
        return 0

    return run


def _store(target: Place, frame: Frame, values: Array) -> None:
    saved, frame.active = frame.active, frame.of_worlds()
    target.store(frame, values)
    frame.active = saved


def _elements(shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Where the elements of a box are, from its first."""
    grid = np.indices(shape).reshape(len(shape), -1)
    return np.asarray(np.tensordot(np.array(strides), grid, 1))
