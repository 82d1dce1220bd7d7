"""Vector atomics that are given the address of registers: two neighbours of a product, added to gathered rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.hardware.snapshots import unpack
from tlcheck.snapshot.ir import Evaluate, Expr, Snapshot, Stmt
from tlcheck.snapshot.walk import rebuild
from tlcheck.verdicts.atomic_claims import judge_atomics

(RIGHT,) = unpack(Path(__file__).with_name("registers-0.1.15.zip")).values()


def _further(e: Expr, by: int) -> Expr:
    """An expression in which the registers' address is that many elements further on."""
    args = tuple([_further(arg, by) for arg in e.args])
    is_registers = e.op == "call" and e.value == "tvm_access_ptr" and len(args) > 2 and args[1].value == "c"
    if is_registers:
        args = (*args[:2], Expr("add", "int32", (args[2], Expr("int", "int32", (), by))), *args[3:])
    return replace(e, args=args)


def _changed(by: int) -> Snapshot:
    """The kernel with another address at the last checkpoints."""

    def change(old: Stmt, new: Stmt) -> Stmt:
        if not isinstance(new, Evaluate) or new.value.value != "atomic_addx2_elem_op":
            return new
        return replace(new, value=_further(new.value, by))

    names = ("vectorize-loop", "device-tir")
    found = {
        name: replace(f, body=rebuild(f.body, change)) if name in names else f for name, f in RIGHT.checkpoints.items()
    }
    return replace(RIGHT, checkpoints=found)


def test_the_registers_that_are_added_are_proved() -> None:
    (claim,) = judge_atomics(RIGHT).claims
    assert (claim.buffer, claim.verdict, claim.reason) == ("O", "proved", "")


def test_other_registers_are_not() -> None:
    (claim,) = judge_atomics(_changed(1)).claims
    assert claim.verdict != "proved"
