"""Branches in which threads wait for others: each side goes on by itself, as threads of a GPU do.

What follows such a branch in its sequence belongs to both sides; they meet at the end of the sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.codes import Step
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Attr, If, Seq, Stmt
from tlcheck.snapshot.walk import expressions, postorder, statements


@lru_cache(maxsize=512)
def waits(stmt: Stmt, partial: bool, warp: int) -> bool:
    """Whether threads may wait for others in a branch, or an attribute around one.

    partial: `Options.partial`. warp: its threads.
    """
    while isinstance(stmt, Attr):
        stmt = stmt.body
    if not isinstance(stmt, If):
        return False
    roots = [e for s in statements(stmt) for e in expressions(s)]
    found = [e for e in postorder(roots) if (signature := signature_of(e)) and signature.waits_with(warp)]
    return any(not (partial and name_of_call(e) == "tvm_storage_sync") for e in found)


def divided(stmt: Stmt, rest: Sequence[Stmt], program: KernelProgram) -> Step:
    """A branch in which threads may wait, and what follows it."""
    while isinstance(stmt, Attr):
        stmt = stmt.body
    assert isinstance(stmt, If)
    branch = stmt
    last = not program.followed
    with program.following(bool(rest)):
        condition = program.condition(branch.condition)
        then = program.side(branch.then, condition)
        other = Step(lambda frame: None) if branch.orelse is None else program.side(branch.orelse, condition)
    after = program.step(Seq(tuple(rest))) if rest else Step(lambda frame: None)
    agents = agents_of(program.state)

    def run(frame: Frame) -> None:
        program.state.at = branch
        holds = np.broadcast_to(np.asarray(condition.run(frame)), (frame.worlds, frame.lanes)).astype(bool)
        sides = [(frame.among(mask), side) for mask, side in ((holds, then), (~holds, other))]
        sides = [(active, side) for active, side in sides if active is None or active.any()]
        if len(sides) == 1:
            sides[0][1].run(frame)
            if not frame.idle():
                after.run(frame)
            return
        frames = [_copy(frame, active) for active, _ in sides]
        agents.fork([(f, _both(side, after)) for f, (_, side) in zip(frames, sides, strict=True)], last)
        _join(frame, frames)

    return Step(run, then.leaves or other.leaves or after.leaves)


def _both(side: Step, after: Step) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        side.run(frame)
        if not frame.idle():
            after.run(frame)

    return run


def _copy(frame: Frame, active: Mask | None) -> Frame:
    copy = Frame(dict(frame.variables), frame.worlds, frame.lanes, active)
    copy.broken, copy.skipped, copy.ended = frame.broken, frame.skipped, frame.ended
    return copy


def _join(frame: Frame, sides: Sequence[Frame]) -> None:
    """Go on together, without the lanes that have left on either side."""
    for side in sides:
        for name in ("broken", "skipped", "ended"):
            gone, known = getattr(side, name), getattr(frame, name)
            if gone is not None:
                setattr(frame, name, gone if known is None else known | gone)
    frame.active = frame.remaining(frame.active)
