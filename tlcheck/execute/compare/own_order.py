"""Find on which order of its own accesses a kernel's source hangs, and what that leaves open of its outputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.compile.pointers import pointers_of
from tlcheck.execute.observe.attribution import Attributed, open_to_order
from tlcheck.execute.observe.authors import EARLY, Author
from tlcheck.execute.observe.races import Access, Contest
from tlcheck.execute.observe.watching import Watching
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.levels import BothLevels, pointers
from tlcheck.program.mixing import mixed
from tlcheck.program.roles import independent
from tlcheck.snapshot.walk import allocated


@dataclass(frozen=True)
class OwnOrder:
    """The source on one draw, watched for races of its own where somebody asks.

    about: buffers whose races may matter, None for all.
    """

    levels: BothLevels
    draw: inputs.Draw
    about: frozenset[str] | None = None

    @cached_property
    def authors(self) -> list[Author]:
        """Return who watched the source, in a run of its own."""
        invocation = self.levels.source_invocation(self.draw)
        made = allocated(self.levels.source.body)
        shared = [b.name for b in made if b.scope.startswith(("shared", "local.fragment"))]
        every = frozenset((*shared, *pointers(self.levels.source.buffers)))
        if self.about is not None and not set(map(pointers_of(invocation.kernel).owner, self.about)) & every:
            return []
        watching = Watching(invocation.kernel, every, partial(Author, about=self.about))
        invocation.run(watching)
        return [watch for watch in watching.watches if isinstance(watch, Author)]

    @property
    def contests(self) -> Iterable[tuple[str, Contest]]:
        """What races in the source, with the buffer of each."""
        return chain.from_iterable(author.contests for author in self.authors)

    @property
    def unwaited(self) -> tuple[str, Contest] | None:
        """The buffer of a copy that the author uses and has not waited for, so that a phase that needs it may still be
        open when the threads arrive for the next one; None where there is none."""
        found = [(name, clash) for author in self.authors for name, clash in author.early.items()]
        return (found[0][0], Contest(EARLY, found[0][1].line, clash=found[0][1])) if found else None

    @cached_property
    def mixed(self) -> tuple[tuple[str, Contest], ...]:
        """Atomics of several operations on one element that the source does not order, with their buffers."""
        if not mixed(self.levels.source):
            return ()
        clashes = ((name, contest, contest.clash) for name, contest in self.contests)
        return tuple(
            (name, contest)
            for name, contest, clash in clashes
            if clash is not None and clash.first is not None and _is_atomic(clash.first) and _is_atomic(clash.second)
        )

    def of_refuted(self, outcome: OutputOutcome) -> OutputOutcome:
        """An output whose value hangs on an order that the kernel does not say is not refuted for it."""
        if outcome.verdict != "refuted" or not self.levels.plain or not self.levels.request.contested:
            return outcome
        return self._open_to(self.contests, outcome)

    def of_agreed(self, outcome: OutputOutcome, whose: Attributed) -> OutputOutcome:
        """An output that agrees in the order that was executed, where the author's own race may give it another value,
        does not agree."""
        if outcome.verdict != "agreed":
            return outcome
        contested = [(race.name, contest) for race, contest in whose.contested]
        return self._open_to([*contested, *self.mixed], outcome)

    def _open_to(self, contests: Iterable[tuple[str, Contest]], outcome: OutputOutcome) -> OutputOutcome:
        """The outcome, undecided where the output's value hangs on what races in the source."""
        alone = independent(self.levels.source)
        last = frozenset(str(b.data.value) for b in self.levels.roles.outputs if b.data.uid in alone)
        reason = open_to_order(contests, outcome.name, last)
        return OutputOutcome(outcome.name, "undecided", reason) if reason else outcome


def _is_atomic(access: Access) -> bool:
    return access.kind.startswith("atomic")
