"""Two compilers pass by pass: the first after which their TIR differs and stays different."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.gate.bisect import FAILS, BisectRow, Point
from tlcheck.gate.bisect_passes import Passes, judge_passes
from tlcheck.gate.pipeline import Pipeline
from tlcheck.lower.runs import Run, toolchain_title
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.results import Result


@dataclass(frozen=True)
class LoweredPasses:
    """One compiler's run of a case, its snapshot of every pass, and how it is executed; None for its atomics alone.

    failed: what there is to say where lowering failed; the snapshot has the passes up to there.
    """

    run: Run
    snapshot: Snapshot
    request: Request | None = None
    failed: Result | None = None

    @property
    def title(self) -> str:
        """The toolchain as the user named it, a checkout with its commit."""
        return toolchain_title(self.run.toolchain, self.run.versions)

    def judged(self) -> Passes:
        """Judge each pass; of a kernel that is not lowered to the end, none."""
        if self.failed is None:
            return judge_passes(self.run, self.snapshot, self.request)
        point = Point(self.title, FAILS, self.failed)
        return Passes(BisectRow(self.run.case, self.run.target, (point,), self.run.tilelang), ())


@dataclass(frozen=True)
class PassPair:
    """A pass of both compilers, or of one: its number in either, None where it is not there."""

    name: str
    old: int | None
    new: int | None


@dataclass(frozen=True)
class ComparedPasses:
    """One case with two compilers. first: the pass that makes the lasting difference, None where the last TIR is equal.

    difference: both sides' TIR after it, as a diff. judged: each side's passes.
    """

    old: str
    new: str
    case: str
    target: str
    first: PassPair | None
    difference: tuple[str, ...]
    judged: tuple[Passes, Passes]


def compare_passes(old: LoweredPasses, new: LoweredPasses) -> ComparedPasses:
    """Compare the passes of one case. Raises UsageError for a snapshot that does not hold every pass."""
    one, other = Pipeline(old.snapshot), Pipeline(new.snapshot)
    if not (one.is_numbered and other.is_numbered):
        raise UsageError(f"{old.run.case}: the snapshots do not hold every pass")
    pairs = list(_aligned(one.names, other.names))
    texts = ([one.whole(n) for n in range(one.last + 1)], [other.whole(n) for n in range(other.last + 1)])
    first = _first(pairs, *texts)
    judged = old.judged(), new.judged()
    shown = _difference(pairs, first, texts, (old.title, new.title)) if first is not None else ()
    if first is not None:
        called = other.called(first.new) if first.new is not None else one.called(first.old or 0)
        first = replace(first, name=called)
    return ComparedPasses(old.title, new.title, new.run.case, new.run.target, first, shown, judged)


def _aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[PassPair]:
    """The passes of both in order; releases have other names for the house that a pass lives in."""
    plain = [name.rpartition(".")[2] for name in old], [name.rpartition(".")[2] for name in new]
    for _, i1, i2, j1, j2 in difflib.SequenceMatcher(None, *plain, autojunk=False).get_opcodes():
        if plain[0][i1:i2] == plain[1][j1:j2]:
            yield from (PassPair(new[j], i, j) for i, j in zip(range(i1, i2), range(j1, j2), strict=True))
        else:
            yield from (PassPair(old[i], i, None) for i in range(i1, i2))
            yield from (PassPair(new[j], None, j) for j in range(j1, j2))


def _reached(pairs: Sequence[PassPair], upto: int) -> tuple[int, int]:
    """The last pass of each side among these pairs."""
    olds = [p.old for p in pairs[: upto + 1] if p.old is not None]
    news = [p.new for p in pairs[: upto + 1] if p.new is not None]
    return (olds or [0])[-1], (news or [0])[-1]


def _first(
    pairs: Sequence[PassPair], old: Sequence[tuple[str, ...]], new: Sequence[tuple[str, ...]]
) -> PassPair | None:
    """The pass after the last one at which both are equal."""
    if old[-1] == new[-1]:
        return None
    reached = [_reached(pairs, place) for place in range(len(pairs))]
    equal = [place for place, (i, j) in enumerate(reached) if old[i] == new[j]]
    return pairs[equal[-1] + 1] if equal else pairs[0]


def _difference(
    pairs: Sequence[PassPair],
    first: PassPair,
    texts: tuple[Sequence[tuple[str, ...]], Sequence[tuple[str, ...]]],
    titles: tuple[str, str],
) -> tuple[str, ...]:
    i, j = _reached(pairs, pairs.index(first))
    return tuple(difflib.unified_diff(texts[0][i], texts[1][j], *titles, n=2, lineterm=""))
