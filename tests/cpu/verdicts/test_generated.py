"""What is right as TIR and wrong as the CUDA that is made of it: finding and trace say what, and blame no pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.checking import executed
from tests.cpu.execute.ops.tile.building import Kernel, load
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, Seq, Stmt, Store
from tlcheck.verdicts.claim import Finding
from tlcheck.witness import Element


def finding(made: Kernel, written: Stmt, lowered: Stmt, release: str = "0.1.15") -> Finding:
    """Of the only output, which is wrong at the last of two checkpoints as lowered."""
    snapshot = made.snapshot([written], [lowered])
    before = {"source": snapshot.checkpoints["source"], "type-cast": snapshot.checkpoints["source"]}
    snapshot = replace(
        snapshot,
        toolchain={"tilelang": release},
        checkpoints={**before, "device-tir": snapshot.checkpoints["device-tir"]},
        passes={"device-tir": "tl.Last"},
    )
    (found,) = [c.finding for c in executed(snapshot, Request()) if c.finding is not None]
    return found


def difference() -> tuple[Kernel, Store]:
    made = Kernel(threads=32)
    a, b = made.tensor("A", "uint8", np.zeros(32)), made.tensor("B", "uint8", np.zeros(32))
    value = Expr("sub", "uint8", (load(a, made.tx), load(b, made.tx)))
    return made, Store(made.tensor("C", "int32", [32]), (made.tx,), Expr("cast", "int32", (value,)))


def test_a_promotion_is_named() -> None:
    made, store = difference()
    found = finding(made, store, store)
    assert found.what == "C is wrong: uint8 - uint8 is an int in CUDA"
    assert (found.checkpoint, found.pass_name) == ("device-tir", "")
    assert "compute in 32 bits" in found.advice
    assert isinstance(found.witness, Element)
    assert found.witness.lowered[0].endswith("<-- the first difference: uint8 - uint8 is an int in CUDA")


def test_a_promotion_is_named_where_the_value_first_differs() -> None:
    """The output's last write is a copy, and another promotion, which is right, stands before the one that is not."""
    made, store = difference()
    c, t = store.buffer, made.tile("t", "int32", [32])
    few, d = made.tensor("E", "int8", np.zeros(32)), made.tensor("D", "int32", [32])
    total = Expr("add", "int8", (load(few, made.tx), Expr("int", "int8", (), 0)))
    right = Store(d, (made.tx,), Expr("cast", "int32", (total,)))
    body = [right, Store(t, store.indices, store.value), Store(c, store.indices, load(t, made.tx))]
    found = finding(made, Seq(tuple(body)), Seq(tuple(body)))
    assert found.what == "C is wrong: uint8 - uint8 is an int in CUDA"


@pytest.mark.parametrize(
    ("lowered", "words"), [(128, ": uint8 - uint8 wraps as written, and not as lowered"), (129, "")]
)
def test_a_pass_that_expects_no_wrap_is_named_so(lowered: int, words: str) -> None:
    made, store = difference()
    value = Expr("max", "int32", (store.value, Expr("int", "int32", (), 128)))
    found = finding(made, replace(store, value=value), replace(store, value=Expr("int", "int32", (), lowered)))
    assert found.what == f"C is wrong{words}"
    assert ("does not expect" in found.advice) == bool(words)


def test_what_is_wrong_as_tir_is_the_fault_of_one_of_the_passes() -> None:
    made, store = difference()
    found = finding(made, store, replace(store, value=Expr("add", "int32", (store.value, Expr("int", "int32", (), 1)))))
    assert (found.what, found.pass_name, found.advice) == ("C is wrong", "", "")


def _greatest() -> Expr:
    name, key = Expr("str", "", (), "tl::warp_reduce_max"), Expr("int", "int64", (), 1 << 40)
    return Expr("call", "int64", (name, key), "call_extern")


def _fourth_lane() -> Expr:
    vector = Expr("broadcast", "int8x8", (Expr("int", "int8", (), -7),), 8)
    return Expr("shuffle", "int8", (vector, Expr("int", "int32", (), 3)), 1)


@pytest.mark.parametrize(
    ("value", "release", "words"),
    [
        (_greatest(), "0.1.12", "tl::warp_reduce_max takes int64 through int"),
        (_fourth_lane(), "0.1.11", "make_int of four int8 extends the sign of each over those above it"),
    ],
)
def test_a_call_of_an_old_library_is_named(value: Expr, release: str, words: str) -> None:
    made = Kernel(threads=32)
    store = Store(made.tensor("C", value.dtype, [32]), (made.tx,), value)
    assert finding(made, store, store, release).what == f"C is wrong: {words}"
