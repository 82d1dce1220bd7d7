"""Branches in which threads wait for others: each side goes on by itself, as threads of a GPU do.

What follows such a branch in its sequence belongs to both sides; they meet at the end of the sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.codes import Code, Step
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.signatures.barriers import is_sync_threads
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
    return any(not (partial and is_sync_threads(e)) for e in found)


def divided(stmt: Stmt, rest: Sequence[Stmt], program: KernelProgram) -> Step:
    """A branch in which threads may wait, and what follows it."""
    last = not program.followed
    with program.following(bool(rest)):
        compiled = _BranchSides.of(stmt, program)
    return compiled.then(program.step(Seq(tuple(rest))) if rest else Step(lambda frame: None), last, program)


@dataclass(frozen=True, eq=False)
class _BranchSides:
    """A branch and its compiled sides. otherwise: the branch that its other side is, as in `elif`; None where it is
    none: each of its sides goes on by itself, too.
    """

    branch: If
    condition: Code
    then_side: Step
    other: Step
    otherwise: _BranchSides | None

    @classmethod
    def of(cls, stmt: Stmt, program: KernelProgram) -> _BranchSides:
        """Compile the sides, without what follows."""
        while isinstance(stmt, Attr):
            stmt = stmt.body
        assert isinstance(stmt, If)
        condition, orelse, otherwise = program.condition(stmt.condition), stmt.orelse, None
        then, other = program.side(stmt.then, condition), Step(lambda frame: None)
        if (
            orelse is not None
            and not program.options.source
            and waits(orelse, program.options.partial, program.options.target.warp)
        ):
            otherwise = cls.of(orelse, program)
        elif orelse is not None:
            other = program.side(orelse, condition)
        return cls(stmt, condition, then, other, otherwise)

    def then(self, after: Step, last: bool, program: KernelProgram) -> Step:
        """The branch with what follows it, on each of its sides."""
        agents, condition, branch = agents_of(program.state), self.condition, self.branch
        inner = None if self.otherwise is None else self.otherwise.then(after, last, program)
        sides = (_both(self.then_side, after), _both(self.other, after) if inner is None else inner.run)

        def run(frame: Frame) -> None:
            program.state.at = branch
            holds = np.broadcast_to(np.asarray(condition.run(frame)), (frame.worlds, frame.lanes)).astype(bool)
            taken = [(frame.among(mask), side) for mask, side in zip((holds, ~holds), sides, strict=True)]
            taken = [(active, side) for active, side in taken if active is None or active.any()]
            if len(taken) == 1:
                taken[0][1](frame)
                return
            frames = [_copy(frame, active) for active, _ in taken]
            agents.fork([(f, side) for f, (_, side) in zip(frames, taken, strict=True)], last)
            _join(frame, frames)

        leaves = self.then_side.leaves or self.other.leaves or after.leaves
        return Step(run, leaves or (inner is not None and inner.leaves))


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
