"""TLS012: an atomic of a tile that only some threads of the block reach is the author's, not TileLang's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, parallel, variable
from tlcheck.execute.request import Request
from tlcheck.program.parted_tiles import is_parted_always, parted_tiles
from tlcheck.snapshot.ir import Expr, For, If, Snapshot
from tlcheck.verdicts.judging import verdicts_of

THREADS = 64


def _snapshot(condition: str, *, tile: bool = True, threads: int = THREADS) -> Snapshot:
    """Some threads add 1 to elements of D, as lowered to their own. tile: all elements, by T.Parallel."""
    kernel = Kernel(threads=threads)
    d, i = kernel.tensor("D", "int32", (THREADS,)), variable("i")

    def added(at: Expr) -> Expr:
        address = Expr("call", "handle", (load(d, at),), "address_of")
        return call("atomic_add_elem_op", address, number(1)).value

    conditions = {
        "even": Expr("eq", "bool", (Expr("floormod", "int32", (kernel.tx, number(2))), number(0))),
        "warp": Expr("lt", "bool", (kernel.tx, number(32))),
    }
    own = replace(call("none"), value=added(kernel.tx), line=2)
    every = parallel((THREADS,), (i,), replace(own, value=added(i)))
    written = If(conditions[condition], every if tile else own)
    less = If(conditions[condition], If(Expr("lt", "bool", (kernel.tx, number(8))), own))
    made = kernel.snapshot([written], [less])
    source, lowered = made.checkpoints["source"], made.checkpoints["device-tir"]
    checkpoints = {"source": source, "intent": source, "lower-tile-op": lowered, "device-tir": lowered}
    return replace(made, checkpoints=checkpoints)


def test_the_atomic_stands_under_the_operator_that_threads_miss() -> None:
    (claim,) = [c for c in verdicts_of(_snapshot("even"), Request()).claims if c.verdict == "refuted"]
    assert claim.finding is not None
    assert (claim.finding.rule, claim.finding.blame, claim.source.line) == ("TLS012", "author", 2)
    assert {(also.kind, also.verdict) for also in claim.also} == {("atomic", "undecided"), ("output", "undecided")}


@pytest.mark.parametrize(("condition", "tile"), [("warp", True), ("even", False)])
def test_a_warp_group_or_an_atomic_of_each_thread_is_tilelangs(condition: str, tile: bool) -> None:
    found = [c.finding for c in verdicts_of(_snapshot(condition, tile=tile), Request()).claims if c.finding is not None]
    assert [(finding.rule, finding.blame) for finding in found] == [("TLA006", "compiler")]


@pytest.mark.parametrize(("threads", "expected"), [(THREADS, True), (2**60, False), (-THREADS, False)])
def test_nothing_hangs_on_the_threads_of_a_block_that_no_device_has(threads: int, expected: bool) -> None:
    source = _snapshot("even", threads=threads).checkpoints["source"]
    (tile,) = parted_tiles(source)
    assert is_parted_always(source, tile) == expected


def test_an_atomic_behind_an_exit_of_threads_is_not_proved() -> None:
    """Each thread that is left adds its own, as lowered too: those that left add nothing, which T.Parallel does."""
    kernel = Kernel(threads=THREADS)
    d, i = kernel.tensor("D", "int32", (THREADS,)), variable("i")
    own, every = (
        replace(
            call("atomic_add_elem_op", Expr("call", "handle", (load(d, at),), "address_of"), number(1)),
            line=2,
        )
        for at in (kernel.tx, i)
    )
    odd = Expr("eq", "bool", (Expr("floormod", "int32", (kernel.tx, number(2))), number(1)))
    leave = If(odd, call("thread_return"))
    made = kernel.snapshot([leave, parallel((THREADS,), (i,), every)], [leave, own])
    source, lowered = made.checkpoints["source"], made.checkpoints["device-tir"]
    snapshot = replace(made, checkpoints={"source": source, "intent": source, "device-tir": lowered})
    claims = verdicts_of(snapshot, Request()).claims
    assert [(c.finding.rule, c.finding.blame) for c in claims if c.finding is not None] == [("TLS012", "author")]
    assert not [claim for claim in claims if claim.kind == "atomic" and claim.verdict == "proved"]


def test_an_update_of_a_reducer_that_some_threads_reach_changes_what_all_share() -> None:
    kernel = Kernel(threads=THREADS)
    r, i = kernel.tile("r", "int32", (THREADS,), "local.reducer"), variable("i")
    update = parallel((THREADS,), (i,), replace(call("reducer_update", load(r, i), number(1)), line=2))
    rounds = For(variable("k"), kernel.tx, number(4), "serial", update)
    even = Expr("eq", "bool", (Expr("floormod", "int32", (kernel.tx, number(2))), number(0)))
    assert [tile.stmt for tile in parted_tiles(kernel.function(If(even, rounds)))] == [update]
