"""Flows of control that wait for each other: the branches of a warp-specialized kernel.

Lanes move in lockstep until a branch divides them and something in it waits. Then each side becomes an *agent*, with a
frame of its own. One agent runs at a time; it gives way where it waits for what is not there yet. Agents are Python
threads that hand each other the turn, so that statements need not know of it, and every run takes the same turns. In a
second run one branch may be behind all others: what is wrong with the order of branches shows in such a run.

What is under way (`flights`) lands when everybody waits: first what somebody waits for, oldest first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tlcheck.execute.events import Observer, Side
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.state import RunState
from tlcheck.execute.stops import BudgetSpent, Deadlock, Entangled, Illegal
from tlcheck.reasons import ENDLESS
from tlcheck.snapshot.ir import Stmt
from tlcheck.snapshot.walk import first_line

Ready = Callable[[], bool]
What = Callable[[], str]


@dataclass(eq=False)
class Flight:
    """An asynchronous operation under way. land: carry it out. goal: what it completes, such as an mbarrier."""

    land: Callable[[], None]
    goal: object


@dataclass(eq=False)
class _Agent:
    """One flow of control. ready: whether it can go on; goal: what it waits for; lanes: those that wait; at: the
    statement; buffer: of its mbarriers; counts: how many threads a barrier of all of them counts, 0 where it waits for
    anything else.

    frame: its own. own: its lanes. last: nothing of the kernel comes after it. side: which of the sides that began
    together. spins: it waits for memory.
    """

    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    ready: Ready = lambda: True
    goal: object = None
    what: What = str  # in words
    at: Stmt | None = None
    lanes: Mask | None = None
    buffer: str = "?"
    counts: int = 0
    frame: Frame | None = None
    ended: bool = False
    own: Mask | None = None
    last: bool = True
    side: Side | None = None
    spins: bool = False


class _Abandoned(BaseException):
    """Ends the threads of a run that has failed elsewhere."""


class Agents:
    """All flows of control of one run."""

    def __init__(
        self, threads: int, worlds: int, width: int, behind: int | None = None, skips_ended: bool = False
    ) -> None:
        """width: threads of a warp. behind: a warp whose branch comes to each of its waits only when no other one can
        go on. skips_ended: `Target.skips_ended`.
        """
        self._width, self._behind, self._skips_ended = width, behind, skips_ended
        self._agents = [_Agent()]
        self._current = self._agents[0]
        self._failure: BaseException | None = None
        self._shape = (worlds, threads)
        self.flights: list[Flight] = []
        self._forks = 0
        self._moves = 0  # how often an agent gave way that may have changed memory
        self.turned = Observer().turned  # called when another agent runs

    @property
    def alone(self) -> bool:
        """Whether there is one flow of control only."""
        return len(self._agents) == 1

    @property
    def whole(self) -> bool:
        """Whether all threads of a block move together."""
        return self._current.side is None

    def wait(
        self,
        ready: Ready,
        what: What,
        at: Stmt | None,
        frame: Frame,
        goal: object = None,
        buffer: str = "?",
        counts: int = 0,
    ) -> None:
        """Let others run until `ready`. Raises Deadlock where that never happens."""
        me = self._current
        if ready() and not self._is_behind(me):
            return
        me.ready, me.what, me.at, me.goal, me.lanes = ready, what, at, goal, frame.mask()
        me.buffer, me.counts = buffer, counts
        self._moves += 1
        self._give_way(me)
        me.ready, me.lanes = lambda: True, None  # what it waited for is over

    def spin(self, at: Stmt, frame: Frame, again: bool) -> None:
        """Let others run until one may have changed memory. again: this agent has done nothing since it last did so.

        Raises BudgetSpent where nobody ever will.
        """
        me = self._current
        self._moves += not again
        seen = self._moves
        me.ready, me.at, me.lanes, me.spins = lambda: self._moves > seen, at, frame.mask(), True
        self._give_way(me)
        me.ready, me.lanes, me.spins = lambda: True, None, False

    def fork(
        self, frames: Sequence[tuple[Frame, Callable[[Frame], None]]], last: bool = False, blocks: bool = False
    ) -> None:
        """Run each function with its frame as an agent; returns when all have ended.

        last: nothing of the kernel comes after them. blocks: each has all threads of its blocks.
        """
        last = last and self._current.last
        self._forks += 1
        masks = [np.array(frame.mask()) for frame, _ in frames]
        before = () if self._current.side is None else self._current.side.path
        sides: list[Side | None] = [None] * len(masks)
        if not blocks:
            sides = [Side.of((*before, (self._forks, n)), mask, self._width) for n, mask in enumerate(masks)]
        children = [_Agent(own=mask, last=last, side=side) for mask, side in zip(masks, sides, strict=True)]
        for child, (frame, run) in zip(children, frames, strict=True):
            child.frame = frame
            threading.Thread(target=self._body, args=(child, frame, run), daemon=True).start()
        me = self._current
        place = self._agents.index(me)
        self._agents[place + 1 : place + 1] = children
        me.ready, me.what = lambda: all(c.ended for c in children), str
        self._moves += 1
        self._give_way(me)
        me.ready = lambda: True
        self._agents = [a for a in self._agents if a not in children]

    def gone(self) -> Mask:
        """The lanes that have left the kernel, or have come to its end: (worlds, lanes)."""
        found = np.zeros(self._shape, np.bool_)
        for agent in self._agents:
            if agent.ended and agent.last and agent.own is not None:
                found |= agent.own
            if agent.frame is not None and agent.frame.ended is not None:
                found |= agent.frame.ended
        return found

    def land(self, chosen: Callable[[Flight], bool]) -> None:
        """Carry out the operations under way that are chosen, oldest first."""
        due = [f for f in self.flights if chosen(f)]
        self.flights = [f for f in self.flights if f not in due]
        for flight in due:
            flight.land()

    def _body(self, me: _Agent, frame: Frame, run: Callable[[Frame], None]) -> None:
        me.turn.acquire()
        try:
            if self._failure is None:
                with np.errstate(all="ignore"):
                    run(frame)
        except _Abandoned:
            return
        except BaseException as failure:
            self._failure = self._failure or failure
        me.ended = True
        me.ready = lambda: False
        self._moves += 1
        self._pass_on(me)

    def _give_way(self, me: _Agent) -> None:
        """Pass the turn on, and take it again when it comes back."""
        if self._pass_on(me) is not me:
            me.turn.acquire()
        if self._failure is not None:
            failure = self._failure
            if me is self._agents[0]:
                for agent in self._agents[1:]:
                    agent.turn.release()
                raise failure
            raise _Abandoned

    def _pass_on(self, me: _Agent) -> _Agent:
        """Give the turn to the first agent that can go on; after a failure, to the first of all."""
        chosen = self._agents[0] if self._failure is not None else self._next()
        self._current = chosen
        if chosen is not me:
            self.turned(chosen.side)
            chosen.turn.release()
        return chosen

    def _is_behind(self, agent: _Agent) -> bool:
        if self._behind is None or agent.own is None:
            return False
        return bool(agent.own[:, self._behind * self._width : (self._behind + 1) * self._width].any())

    def _next(self) -> _Agent:
        while True:
            for agent in self._agents:
                if agent.ready() and not self._is_behind(agent):
                    return agent
            if self._behind is not None and self._arrive():
                continue
            for agent in self._agents:
                if agent.ready():
                    return agent
            if not self._arrive():
                self._failure = self._deadlock()
                return self._agents[0]

    def _arrive(self) -> bool:
        """Land what somebody waits for, else the oldest operation; whether there was one."""
        if not self.flights:
            return False
        goals = [a.goal for a in self._agents if not a.ended and a.goal is not None]
        wanted = [f for f in self.flights if any(f.goal is goal for goal in goals)]
        flight = (wanted or self.flights)[0]
        self.flights.remove(flight)
        flight.land()
        self._moves += 1
        return True

    def _deadlock(self) -> BaseException:
        """Everybody waits. Lanes that wait at the end of a branch might go on in a real machine: not modelled.

        A barrier of the whole block may stand in a branch only if all of its threads take that (CUDA C++ Programming
        Guide, "Synchronization Functions"; PTX 9.7.13.1 wants so of each warp). Of several worlds each may be another.
        If a barrier skips threads that have ended, those at the end of the branch might go on and end.
        """
        waiting = [a for a in self._agents if not a.ended and a.lanes is not None]
        spins = next((a for a in waiting if a.spins), None)
        if spins is not None:
            return endless(spins.at)
        covered = np.zeros(self._shape, np.bool_)
        for agent in waiting:
            covered |= np.asarray(agent.lanes)
        for agent in self._agents:
            if agent.ended and agent.last and agent.own is not None:
                covered |= agent.own
        worlds = np.any([np.asarray(a.lanes).any(axis=-1) for a in waiting], axis=0)
        whole = [a for a in waiting if a.counts]
        if not covered[worlds].all():
            if len(worlds) > 1 or not whole or self._has_left() or self._skips_ended:
                return Entangled("threads that wait for each other in a divergent branch")
            come = sum(int(np.asarray(a.lanes).sum()) for a in whole)
            what = (
                f"{come} threads reach a barrier that counts {whole[0].counts}, in a branch that the others do not take"
            )
            return Illegal(what, _line(whole[0].at), *_first_of(whole[0]), stmt=whole[0].at)
        first = next((a for a in waiting if a.buffer != "?"), waiting[0])  # a phase that nobody ends, before others
        what = "; ".join(dict.fromkeys(a.what() for a in waiting))
        return Deadlock(what, _line(first.at), *_first_of(first), first.buffer, first.at)

    def _has_left(self) -> bool:
        """Whether threads have left the kernel: how they count is not modelled."""
        return any(a.frame is not None and a.frame.ended is not None for a in self._agents)


def endless(loop: Stmt | None) -> BudgetSpent:
    """Return why an execution stops at a loop that waits for what never comes."""
    line = 0 if loop is None else first_line(loop)
    return BudgetSpent(f"in the blocks that run, a loop never ends{f' (line {line})' if line else ''}", ENDLESS)


def _line(stmt: Stmt | None) -> int:
    return 0 if stmt is None else stmt.line


def _first_of(agent: _Agent) -> tuple[int, int]:
    """World and number of the first thread that waits."""
    world, lane = np.argwhere(np.asarray(agent.lanes))[0]
    return int(world), int(lane)


def agents_of(state: RunState) -> Agents:
    """The agents of a run."""
    found = state.shared.get("agents")
    if found is None:
        options = state.options
        skips = options.target.skips_ended and not options.source
        found = state.shared["agents"] = Agents(
            state.threads, len(state.worlds), options.target.warp, options.behind, skips
        )
    assert isinstance(found, Agents)
    return found
