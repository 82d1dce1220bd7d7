"""Watching the order of accesses in all machines of an invocation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tlcheck.execute.events import Observer
from tlcheck.execute.machine import Machine
from tlcheck.execute.observe.glance import Glance
from tlcheck.execute.observe.order import HappensBefore
from tlcheck.execute.observe.race_watch import Watch
from tlcheck.execute.observe.release_order import Releases
from tlcheck.execute.observe.suspects import Suspects
from tlcheck.program.observed import may_release
from tlcheck.snapshot.ir import Function


class Watching:
    """Makes a watch for each machine; unless all is plain, a glance."""

    def __init__(
        self,
        kernel: Function,
        written: frozenset[str],
        by: Callable[[Machine, frozenset[str]], HappensBefore] | None = None,
        *,
        suspects: Suspects | None = None,
    ) -> None:
        """kernel: the invocation's last one, whose blocks may run in several machines. written: the parameters that
        are written. by: who watches, if somebody else. suspects: all that has to be watched; None for everything.
        """
        self._kernel, self._written, self._by, self._suspects = kernel, written, by, suspects
        self._made: list[HappensBefore] = []

    def __call__(self, machine: Machine) -> Sequence[Observer]:
        by = self._by or (Watch if machine.options.plain else Glance)
        watch = by(machine, self._written)
        if isinstance(watch, Watch):
            watch.suspects = self._suspects
        before = self._made[-1] if self._made else None
        if isinstance(watch, Glance) and isinstance(before, Glance) and before.machine.function is self._kernel:
            watch.follow(before)
        self._made.append(watch)
        if isinstance(watch, Glance) or not may_release(machine.function):
            return [watch]
        watch.releases = Releases(machine)
        return [watch.releases, watch]

    @property
    def watches(self) -> Sequence[HappensBefore]:
        """The watch of the last machine, then those of the machines before it."""
        return [*self._made[-1:], *self._made[:-1]]

    @property
    def suspects(self) -> Suspects:
        """Return what the glances have not seen ordered."""
        return Suspects.of_all(watch.found for watch in self._made if isinstance(watch, Glance))

    @property
    def is_settled(self) -> bool:
        """Whether all who watched have seen that every schedule of asynchronous copies has the same result."""
        return bool(self._made) and all(isinstance(w, (Glance, Watch)) and w.is_settled for w in self._made)
