"""Describe how what a kernel lowers to stands to its golden."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tlcheck import exits
from tlcheck.golden.comparison import GoldenComparison, compare_goldens
from tlcheck.golden.entry import COST, Key
from tlcheck.golden.recording import Recorded
from tlcheck.golden.store import Contents

SAME, CHANGED, MISSING, WAITING, REJECTED, UNUSABLE, ORPHANED, NOT_LOWERED = (
    "same",
    "changed",
    "missing",
    "waiting",
    "rejected",
    "unusable",
    "orphaned",
    "not lowered",
)

EMPTY: Mapping[Key, str] = MappingProxyType({})


@dataclass(frozen=True)
class State:
    """kind: `unusable` is a golden that is corrupt or not approved. why: in words. expected: the failure is known."""

    key: Key
    kind: str
    why: str = ""
    comparison: GoldenComparison | None = None
    expected: bool = False


def state_of(recorded: Recorded, contents: Contents, waiting: Mapping[Key, str] = EMPTY) -> State:
    """Return the state of one run. waiting: hashes of what waits for a decision."""
    key = recorded.key
    if recorded.golden is None:
        message = recorded.failure.message if recorded.failure else ""
        return State(key, NOT_LOWERED, message, expected=recorded.expected)
    if key not in contents.goldens:
        # nothing is approved of it
        rejected = contents.approvals.rejected.get(str(key))
        if rejected is not None and rejected.hash == recorded.golden.digest:
            return State(key, REJECTED, f"by {rejected.who} on {rejected.when[:10]}: {rejected.reason}")
        if waiting.get(key) == recorded.golden.digest:
            return State(key, WAITING, "it is recorded, and nobody has accepted it yet")
        gone = str(key) in contents.approvals.approved
        return State(key, MISSING, "it was approved, and its files are gone" if gone else "nothing is approved yet")
    if problem := contents.problem(key):
        return State(key, UNUSABLE, problem)
    try:
        comparison = compare_goldens(contents.goldens[key], recorded.golden)
    except ValueError as error:  # approved, but by a tlcheck whose facts are unlike those of this one
        return State(key, UNUSABLE, f"corrupt: {error}; update and review it")
    kept = [COST in golden.parts for golden in (contents.goldens[key], recorded.golden)]
    if kept[0] != kept[1]:
        words = f"cost: {'recorded only now' if kept[1] else 'no longer recorded'}"
        comparison = replace(comparison, missing=(*comparison.missing, words))
    return State(key, SAME if comparison.is_same else CHANGED, comparison=comparison)


@dataclass(frozen=True)
class GoldenScope:
    """A record of what was selected: a golden in it that no run has is an orphan.

    places: a folder, a file or `FILE::NAME`, from the project's folder. targets: all where empty.
    """

    places: tuple[str, ...]
    targets: tuple[str, ...] = ()

    def has(self, key: Key) -> bool:
        if self.targets and key.target not in self.targets:
            return False
        return any(
            place in (".", key.file, key.case) or key.file.startswith(f"{place.rstrip('/')}/") for place in self.places
        )


def orphans(contents: Contents, found: Iterable[Key], scope: GoldenScope) -> Iterator[State]:
    """Goldens without a case. found: of all runs; of a file that has one without a target nobody knows the cases."""
    known = set(found)
    unknown = {key.file for key in known if not key.target}
    for key in sorted(contents.goldens):
        if key not in known and key.file not in unknown and scope.has(key):
            yield State(key, ORPHANED, "no case of this name and target")


def exit_code(states: Sequence[State]) -> int:
    """Return the exit code of what was compared."""
    kinds = {state.kind for state in states if not state.expected}
    return exits.exit_code(found=bool(kinds - {SAME, NOT_LOWERED}), unchecked=NOT_LOWERED in kinds)
