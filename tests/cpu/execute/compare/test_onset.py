"""The first checkpoint at which a kernel is wrong, in snapshots of releases that get it wrong, and in broken ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.checking import executed
from tests.fixtures.index import FOLDER
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.onset import Levels
from tlcheck.execute.request import Request
from tlcheck.program.updates import MULTIPLICITY
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.codec import loads
from tlcheck.snapshot.ir import Attr, Block, Expr, For, Function, Snapshot, Stmt, Store
from tlcheck.snapshot.walk import rebuild
from tlcheck.verdicts.claim import Claim

CHECKPOINTS = tuple(Checkpoint)[2:]


def saved(name: str) -> Snapshot:
    return loads((FOLDER / f"wrong/{name}.snapshot.json").read_text())


def refuted(snapshot: Snapshot) -> list[Claim]:
    return [claim for claim in executed(snapshot, Request()) if claim.finding is not None and claim.kind != "order"]


@pytest.mark.parametrize(
    ("name", "checkpoint", "pass_name"),
    [
        ("short_wait-0.1.9", "tile-ops", ""),
        ("loop-0.1.15", "lower-tile-op", "tl.LayoutInference"),
        ("sums-0.1.9", "vectorize-loop", ""),
        ("store-0.1.7.post3", "lower-tile-op", "tl.LowerTileOp"),
    ],
)
def test_the_pass_is_named(name: str, checkpoint: str, pass_name: str) -> None:
    """It is where it is the only one between two checkpoints."""
    (claim,) = refuted(saved(name))
    assert claim.finding is not None
    assert (claim.finding.checkpoint, claim.finding.pass_name, claim.finding.skipped) == (checkpoint, pass_name, ())


@pytest.mark.parametrize(("kind", "guilty"), [(For, "tl.LayoutInference"), (Block, "tl.LowerTileOp")])
def test_layouts_are_to_blame_for_what_fragments_do_not_hold(kind: type[For] | type[Block], guilty: str) -> None:
    """A tile operator has no layout of its own: the fragment's says for how many elements it is lowered."""

    def bare(old: Stmt, new: Stmt) -> Stmt:
        if isinstance(new, For) and kind is For:
            return replace(new, layout=None)
        return replace(new, layouts=()) if isinstance(new, Block) and kind is Block else new

    snapshot = saved("loop-0.1.15")
    before = snapshot.checkpoints["tile-ops"]
    without = replace(before, body=rebuild(before.body, bare))
    (claim,) = refuted(replace(snapshot, checkpoints={**snapshot.checkpoints, "tile-ops": without}))
    assert claim.finding is not None
    assert claim.finding.pass_name == guilty


@pytest.mark.parametrize(("marked", "guilty"), [(True, "tl.LowerTileOp"), (False, "")])
def test_before_lower_tile_op_it_is_not_seen_who_has_which_part_of_a_reducer(marked: bool, guilty: str) -> None:
    """An update outside of `tl.parallel_multiplicity` is of the thread's own part: an earlier pass may be wrong."""

    def bare(old: Stmt, new: Stmt) -> Stmt:
        return new.body if isinstance(new, Attr) and new.key == MULTIPLICITY and not marked else new

    snapshot = saved("batched-0.1.15")
    before = snapshot.checkpoints["tile-ops"]
    made = {**snapshot.checkpoints, "tile-ops": replace(before, body=rebuild(before.body, bare))}
    (claim,) = refuted(replace(snapshot, checkpoints=made))
    assert claim.finding is not None
    assert (claim.finding.checkpoint, claim.finding.pass_name, claim.finding.skipped) == ("lower-tile-op", guilty, ())


@pytest.mark.parametrize("checkpoint", [Checkpoint.INTENT, *CHECKPOINTS])
def test_every_checkpoint_of_a_kernel_that_is_right_agrees(checkpoint: Checkpoint) -> None:
    """Levels between have tile operators, fragments, loops yet to be vectorized: none may be refuted for that."""
    snapshot = saved("counts-0.1.7.post3")
    (output,) = execute(snapshot, Request(checkpoint=checkpoint)).outputs
    assert (output.verdict, output.reason) == ("agreed", "")


def broken(function: Function) -> Function:
    """One more is stored to global memory than there was."""

    def add(old: Stmt, new: Stmt) -> Stmt:
        if not isinstance(new, Store) or new.buffer.scope != "global":
            return new
        more = Expr("add", new.value.dtype, (new.value, Expr("float", new.value.dtype, (), 1.0)))
        return replace(new, value=more)

    return replace(function, body=rebuild(function.body, add))


@pytest.mark.parametrize("first", CHECKPOINTS)
def test_a_kernel_that_is_broken_from_a_checkpoint_on(first: Checkpoint) -> None:
    right = saved("sums-0.1.9")
    good = right.checkpoints["lower-tile-op"]  # what comes later is wrong by itself
    late = CHECKPOINTS[CHECKPOINTS.index(first) :]
    made = {str(name): broken(good) if name in late else good for name in CHECKPOINTS}
    snapshot = replace(right, checkpoints={"source": right.checkpoints["source"], "intent": good, **made})
    (output,) = execute(snapshot).outputs
    assert output.difference is not None
    onset = Levels(snapshot, Request()).onset(output.difference.blocks, 0, lambda e: e.outputs[0].verdict == "refuted")
    assert onset is not None
    assert onset.checkpoint == first


def test_what_cannot_be_executed_is_passed_over_and_named() -> None:
    snapshot = saved("sums-0.1.9")
    unknown = Expr("call", "float32", (), "a_call_of_tomorrow")

    def strange(old: Stmt, new: Stmt) -> Stmt:
        return replace(new, value=unknown) if isinstance(new, Store) else new

    lowered = snapshot.checkpoints["lower-tile-op"]
    made = {"type-cast": replace(lowered, body=rebuild(lowered.body, strange))}
    (claim,) = refuted(replace(snapshot, checkpoints={**snapshot.checkpoints, **made}))
    assert claim.finding is not None
    words = "at vectorize-loop; not executed: type-cast (a_call_of_tomorrow)"
    assert claim.finding.place == words
