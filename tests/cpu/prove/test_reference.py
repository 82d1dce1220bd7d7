"""Test what atomics are compared with: the kernel before the first pass, where that can be read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fixtures.index import read
from tlcheck.program.walk import walk
from tlcheck.prove.subject import subject
from tlcheck.snapshot.ir import Bind, Block, Evaluate, Expr, Function, Seq, Snapshot, Stmt, Thread
from tlcheck.snapshot.walk import expressions, rebuild, statements, substitute, with_expressions
from tlcheck.verdicts.atomic_claims import judge_atomics

FIXTURES = {f.path: f for f in read().fixtures}
RELEASES = ("0.1.9", "0.1.12", "0.1.15")


def fixture(release: str) -> Snapshot:
    return FIXTURES[f"era/tail_tile_odd-{release}"].snapshot()


def with_source(snapshot: Snapshot, source: Function) -> Snapshot:
    return replace(snapshot, checkpoints={**snapshot.checkpoints, "source": source})


def one_block_further(function: Function) -> Function:
    """The function with the next block's index instead of the block's own."""
    block = next(s.var for s in statements(function.body) if isinstance(s, Thread) and s.tag == "blockIdx.x")
    further = Expr("add", block.dtype, (block, Expr("int", block.dtype, value=1)))

    def change(_: Stmt, new: Stmt) -> Stmt:
        own = expressions(new)
        moved = substitute(own, {block.uid: further}, lambda e, args: replace(e, args=args))
        return with_expressions(new, moved) if own else new

    return replace(function, body=rebuild(function.body, change))


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_pass_before_layout_inference_breaks_shows(release: str) -> None:
    """All checkpoints but the source agree with each other."""
    snapshot = fixture(release)
    assert [claim.verdict for claim in judge_atomics(snapshot).claims] == ["proved"]
    assert subject(snapshot).reference == "source"
    assert not judge_atomics(snapshot).claims[0].not_source
    broken = with_source(snapshot, one_block_further(snapshot.checkpoints["source"]))
    assert [claim.verdict for claim in judge_atomics(broken).claims] == ["refuted"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_source_that_cannot_be_read_leaves_the_intent(release: str) -> None:
    snapshot = fixture(release)
    source = snapshot.checkpoints["source"]
    strange = Evaluate(Expr("call", "handle", (), "atomic_add_elem_op"))
    older = {name: f for name, f in snapshot.checkpoints.items() if name != "source"}
    for other, why in (
        (with_source(snapshot, replace(source, body=Seq((source.body, strange)))), "are not understood"),
        (with_source(snapshot, replace(source, body=Seq(()))), "at source there is no add to B"),
        (replace(snapshot, checkpoints=older), "the snapshot has no source"),
    ):
        assert subject(other).reference == "intent"
        assert [claim.verdict for claim in judge_atomics(other).claims] == ["proved"]
        assert judge_atomics(other).claims[0].not_source.endswith(why)


def number(value: int) -> Expr:
    return Expr("int", "int32", value=value)


def test_threads_that_a_block_says() -> None:
    """0.1.15 binds thread variables to calls, and has the extents in an annotation of a block inside the launch."""
    b, tx, ty = (Expr("var", "int32", value=name, uid=uid) for uid, name in enumerate(("b", "tx", "ty"), 1))
    use = Evaluate(Expr("call", "int32", (tx, ty), "use"))
    binds = [Bind(v, Expr("call", "int32", (number(n),), "launch_thread_idx")) for n, v in enumerate((tx, ty))]
    block = Block("root", use, threads=(number(128), number(2), number(1)))
    launch = Thread(b, "blockIdx.x", number(4), Seq((*binds, block)))
    (placed,) = walk(Function("f", (), (), (), launch)).statements
    axes = [(a.kind, a.tag, a.extent.value) for a in placed.scope.axes]
    assert axes == [("block", "blockIdx.x", 4), ("thread", "threadIdx.x", 128), ("thread", "threadIdx.y", 2)]


def test_what_is_assumed_by_a_call() -> None:
    condition = Expr("var", "bool", value="c", uid=1)
    body = Evaluate(Expr("call", "void", (condition,), "assume"))
    assert walk(Function("f", (), (), (), body)).assumptions == (condition,)
