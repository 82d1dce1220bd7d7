"""Puts one error into the device TIR of each kernel of planted.py: `python results/amd/plants.py DIR OUT`, then
`tlcheck check OUT/*.json`. DIR holds the snapshots that `tlcheck check results/amd/planted.py --save DIR` keeps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.codec import dumps, loads
from tlcheck.snapshot.ir import Evaluate, Expr, For, Function, If, Seq, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, rebuild, with_expressions


@dataclass(frozen=True)
class Plant:
    """One change: of all expressions or statements that match, the one with a number, or each if that is None."""

    words: str
    change: Callable[[Expr | Stmt], Expr | Stmt | None]
    number: int | None = 0


def _int(value: int, dtype: str = "int32") -> Expr:
    return Expr("int", dtype, (), value)


def _is(e: Expr, op: str, value: object) -> bool:
    return isinstance(e, Expr) and e.op == op and e.value == value


def _calls(name: str, part: Expr | Stmt) -> bool:
    return isinstance(part, Evaluate) and _is(part.value, "call", name)


def _argument(name: str, at: int, change: Callable[[Expr], Expr]) -> Callable[[Expr | Stmt], Expr | None]:
    def apply(part: Expr | Stmt) -> Expr | None:
        if not (isinstance(part, Expr) and _is(part, "call", name)):
            return None
        args = list(part.args)
        args[at] = change(args[at])
        return replace(part, args=tuple(args))

    return apply


def _gone(name: str) -> Callable[[Expr | Stmt], Stmt | None]:
    return lambda part: Seq(()) if _calls(name, part) else None


def _text(old: str, new: str) -> Callable[[Expr | Stmt], Expr | None]:
    def apply(part: Expr | Stmt) -> Expr | None:
        holds = isinstance(part, Expr) and part.op == "str" and old in str(part.value)
        return replace(part, value=str(part.value).replace(old, new)) if holds else None

    return apply


def _loaded(name: str, change: Callable[[Expr], Expr]) -> Callable[[Expr | Stmt], Expr | None]:
    def apply(part: Expr | Stmt) -> Expr | None:
        if not (isinstance(part, Expr) and part.op == "load" and part.buffer is not None and part.buffer.name == name):
            return None
        return replace(part, args=tuple(change(index) for index in part.args))

    return apply


def _moved(index: Expr, by: int) -> Expr:
    if index.op == "ramp":
        return replace(index, args=(_moved(index.args[0], by), index.args[1]))
    return Expr("add", index.dtype, (index, _int(by, index.dtype)))


def _bound(old: int, new: int) -> Callable[[Expr | Stmt], Expr | None]:
    def apply(part: Expr | Stmt) -> Expr | None:
        if isinstance(part, Expr) and part.op == "lt" and _is(part.args[1], "int", old):
            return replace(part, args=(part.args[0], _int(new)))
        return None

    return apply


def _guarded(part: Expr | Stmt) -> Stmt | None:
    """A branch that is always taken."""
    return part.then if isinstance(part, If) else None


def _shorter(part: Expr | Stmt) -> Stmt | None:
    is_loop = isinstance(part, For) and part.var.value == "ki"
    return replace(part, extent=_int(int(part.extent.value or 0) - 1)) if is_loop else None


def _as_store(part: Expr | Stmt) -> Stmt | None:
    """An atomic that becomes a load and a store."""
    if not _calls("atomic_add_elem_op", part):
        return None
    place, value = part.value.args[:2]
    load = place.args[0]
    assert load.buffer is not None
    return Store(load.buffer, load.args, Expr("add", load.dtype, (load, value)))


def _cut(part: Expr | Stmt) -> Expr | None:
    """The ballot of a wave in a word of 32 bits."""
    if not (isinstance(part, Expr) and _is(part, "call", "ballot")):
        return None
    return Expr("cast", "uint64", (Expr("cast", "uint32", (part,)),))


PLANTS = {
    "product": Plant("an operand of mfma is that of the next row", _argument("tvm_mfma", 9, lambda i: _int(0))),
    "int_product": Plant("the last step along k is left out", _shorter),
    "row_sums": Plant("64 threads reduce where 256 have parts", _text("SumOp, 256", "SumOp, 64")),
    "softmax": Plant("no barrier before a workspace is used again", _gone("tvm_storage_sync"), None),
    "prefixes": Plant("sums from the end", _text("false>", "true>")),
    "counted": Plant("a plain sum instead of an atomic in LDS", _as_store),
    "turned": Plant("a tail without its guard", _guarded, 1),
    "wave_sums": Plant("segments of 32 lanes", _argument("shfl_down_sync", 3, lambda width: _int(32))),
    "packed": Plant("a ballot of 32 bits", _cut),
    "narrow": Plant("a maximum of 16 lanes of 32", _text("MaxOp, 32", "MaxOp, 16")),
    "tails": Plant("the bound of a tail is one step too far", _bound(125, 126), None),
    "direct": Plant("the copy is not waited for", _gone("ptx_wait_group")),
    "vectors": Plant("a vector begins one element later", _loaded("A", lambda index: _moved(index, 1))),
    "turned_product": Plant("A is read one row further", _loaded("a", lambda index: _moved(index, 64))),
    "two_waves": Plant("no barrier before LDS is written again", _gone("tvm_storage_sync")),
}


def planted(function: Function, plant: Plant) -> Function:
    """Carry out a change."""
    found: list[Expr | Stmt] = []

    def wanted(part: Expr | Stmt) -> Expr | Stmt | None:
        new = plant.change(part)
        if new is not None:
            found.append(part)
        return new if new is not None and plant.number in (None, len(found) - 1) else None

    def change(old: Stmt, now: Stmt) -> Stmt:
        made: dict[int, Expr] = {}
        for e in postorder(expressions(now)):
            args = tuple(made[id(a)] for a in e.args)
            fresh = e if all(a is b for a, b in zip(args, e.args, strict=True)) else replace(e, args=args)
            new = wanted(fresh)
            made[id(e)] = new if isinstance(new, Expr) else fresh
        roots = [made[id(e)] for e in expressions(now)]
        same = all(a is b for a, b in zip(roots, expressions(now), strict=True))
        stmt = now if same else with_expressions(now, roots)
        new = wanted(stmt)
        return new if isinstance(new, Stmt) else stmt

    body = rebuild(function.body, change)
    if (plant.number is not None and len(found) <= plant.number) or not found:
        raise ValueError(f"{function.name}: nothing to change: {plant.words}")
    return replace(function, body=body)


def main(folder: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for file in sorted(folder.glob("*.snapshot.json")):
        snapshot = loads(file.read_text(encoding="utf-8"))
        plant = PLANTS[snapshot.case.split("::")[-1].removeprefix("case_")]
        broken = planted(snapshot.checkpoints[Checkpoint.DEVICE_TIR], plant)
        checkpoints = {**snapshot.checkpoints, Checkpoint.DEVICE_TIR: broken}
        (out / file.name).write_text(dumps(replace(snapshot, checkpoints=checkpoints)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
