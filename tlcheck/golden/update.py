"""Describe what `golden update` does: pending files for all that is not as approved."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tlcheck import exits
from tlcheck.golden.entry import Key
from tlcheck.golden.pending import Pending
from tlcheck.golden.recording import Recorded
from tlcheck.golden.states import GoldenScope, orphans
from tlcheck.golden.store import Contents, GoldenStore
from tlcheck.verdicts.judge import Judge
from tlcheck.verdicts.words import plural


@dataclass
class Update:
    """new_only: leave alone what has a golden, in whatever state."""

    store: GoldenStore
    judge: Judge
    new_only: bool
    new: list[Pending] = field(default_factory=list)
    changed: list[Pending] = field(default_factory=list)
    removed: list[Key] = field(default_factory=list)
    same: list[Key] = field(default_factory=list)
    failed: list[Recorded] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._approved: Contents = self.store.read()

    def add(self, recorded: Recorded) -> None:
        """Record one run beside what is approved of it, where that is something else."""
        key, golden = recorded.key, recorded.golden
        there = self._approved.goldens.get(key)
        if golden is None:
            self.failed.append(recorded)
        elif there is not None and (self.new_only or self._is_approved(key, golden.digest)):
            self.same.append(key)
            if not self.new_only:
                self.store.forget(key)
        else:
            pending = recorded.pending(self.judge)
            self.store.record(pending)
            (self.new if there is None else self.changed).append(pending)

    def _is_approved(self, key: Key, digest: str) -> bool:
        return self._approved.goldens[key].digest == digest and not self._approved.problem(key)

    def remove_orphans(self, scope: GoldenScope) -> None:
        """Let the removal of goldens without a case be decided too."""
        if self.new_only:
            return
        found = [*(pending.key for pending in (*self.new, *self.changed)), *self.same, *(r.key for r in self.failed)]
        for state in orphans(self._approved, found, scope):
            self.store.record(Pending(state.key, None, {}, notes=(state.why,)))
            self.removed.append(state.key)

    def report(self, cases: Sequence[str] = ()) -> Iterator[str]:
        """Yield what is new or changed, and the commands that decide on it. cases: as the user wrote them."""
        for word, found in (("new", self.new), ("changed", self.changed)):
            for pending in found:
                yield f"{word}  {pending.key}{_warning(pending)}"
        yield from (f"removed  {key}" for key in self.removed)
        for run in self.failed:
            what = "expected not to lower" if run.expected else "not lowered"
            yield f"{what}  {run.key}: {run.failure.message if run.failure else ''}"
        waiting = len(self.new) + len(self.changed) + len(self.removed)
        yield f"{plural(waiting, 'change')} to review, {len(self.same)} as approved"
        if waiting:
            accept = shlex.join(["tlcheck", "golden", "accept", *cases, "--reason", "TEXT"])
            yield f"next: `tlcheck golden review`; without a terminal, `{accept}`"

    def exit_code(self) -> int:
        """Return the exit code: changes wait for a review, and are no finding."""
        return exits.exit_code(unchecked=any(not run.expected for run in self.failed))


def _warning(pending: Pending) -> str:
    refuted = [claim.words for claim in pending.claims if claim.excuse is None or not claim.excuse.reason]
    return f"  ({', '.join(refuted)})" if refuted else ""
