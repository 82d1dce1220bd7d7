"""Outputs that are wrong because a reduction combines what is wrong before it: they begin where that does.

The trace has few terms of a reduction. So its result is known to differ, not which term does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tlcheck.execute.compare.origin import ValueOrigin
from tlcheck.execute.compare.wrong_output import WrongOutput
from tlcheck.program.parted_tiles import is_tile_call, written_by
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.ir import Evaluate, Expr, Function, Stmt
from tlcheck.snapshot.walk import statements

_COMPUTED = ("other-value", "incomplete", "repeated")
_REDUCTIONS = ("reduce", "cumsum", "cummax")


def with_causes(source: Function, outputs: Mapping[str, WrongOutput]) -> dict[str, WrongOutput]:
    """The outputs, those of reductions with the origin of what they combine, where that is wrong in the same block."""
    places = {id(stmt): place for place, stmt in enumerate(statements(source.body))}
    made = [(name, wrong, stmt) for name, wrong in outputs.items() if (stmt := _stmt(wrong.origin)) is not None]
    made.sort(key=lambda each: places.get(id(each[2]), -1))
    found = dict(outputs)
    for number, (name, wrong, stmt) in enumerate(made):
        for other, cause, earlier in made[:number]:
            if _is_computed(wrong.origin) and _is_of_one_run(wrong, cause) and _combines(source, stmt, earlier):
                found[name] = replace(wrong, origin=found[other].origin)
    return found


def _stmt(origin: ValueOrigin | None) -> Stmt | None:
    """The statement of the source at whose access an output goes wrong."""
    return None if origin is None else origin.access.source


def _is_computed(origin: ValueOrigin | None) -> bool:
    return origin is not None and origin.writes and origin.kind in _COMPUTED


def _is_of_one_run(one: WrongOutput, other: WrongOutput) -> bool:
    first, second = one.difference, other.difference
    return first.seed == second.seed and bool(first.blocks) and first.blocks == second.blocks


def _combines(source: Function, stmt: Stmt, earlier: Stmt) -> bool:
    """Whether a statement reduces whole buffers that an earlier one is the last to write before it."""
    whole = set(_reduced(stmt)) & written_by(earlier)
    body = list(statements(source.body))
    between = body[body.index(earlier) + 1 : body.index(stmt)] if stmt in body and earlier in body else body
    return bool(whole) and not any(whole & written_by(each) for each in between)


def _reduced(stmt: Stmt) -> Iterator[int]:
    """The pointers of whole buffers that a reduction reads."""
    if not isinstance(stmt, Evaluate) or not is_tile_call(stmt) or name_of_call(stmt.value) not in _REDUCTIONS:
        return
    for region in stmt.value.args[:1]:
        first = region.args[0] if region.value == "region" else region
        if first.buffer is not None and _values(region.args[2:]) == _values(first.buffer.shape) != []:
            yield first.buffer.data.uid


def _values(sizes: tuple[Expr, ...]) -> list[object]:
    return [size.value for size in sizes if size.op == "int"]
