"""The kernel executed after every pass: since which one an output, an order or an access is what it is at the end.

Only what is refuted at the end is looked for, on the blocks and inputs that showed it. After some passes a kernel
cannot be executed, such as between those that take an mbarrier apart: what is between the last pass after which it is
right and the first after which it is wrong is said with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.diagnosis import diagnose
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.observe.races import AGREEMENT, BLOCKS, HALVES, Race
from tlcheck.execute.request import LOWERED, Request
from tlcheck.execute.stops import Illegal
from tlcheck.execute.worlds.courses import course_of
from tlcheck.execute.worlds.source_runs import SourceRuns
from tlcheck.gate.pipeline import Pipeline
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.verdicts.claim import REFUTED, UNDECIDED, Claim
from tlcheck.verdicts.execution_claims import claims_of
from tlcheck.verdicts.origins import MERGE

_ORDERING = {"fence.proxy.async": "tl.InjectFenceProxy"}  # who puts what is missing; barriers:
_BARRIERS = "tl.ThreadSync"
_COPY = "a wait for the copy"
_UNORDERED = "the pass that orders it did not run"
_HIDDEN = "barriers that a later pass puts in are missing, too"
_WITHOUT = (_COPY, AGREEMENT, BLOCKS, HALVES)  # what no pass of its own puts in
_EARLY = (Checkpoint.TILE_OPS, Checkpoint.LOWER_TILE_OP)  # stages with rules of their own; else the last's


@dataclass(frozen=True)
class PassState:
    """A record of how one claim fares after a pass: `right`, `wrong`, `undecided` or `unseen` (nothing there decides
    it).
    """

    state: str
    reason: str = ""


@dataclass(frozen=True)
class PassOnset:
    """Since when a claim is wrong. number: the first pass after which it is; between: passes before it of which it is
    not known, from the one after the last that is right, and why. orders: the pass that should have ordered it; the
    number is 0 where that did not run. generated: no pass makes it wrong; the CUDA that is made of the last one's TIR
    computes something else.
    """

    number: int
    between: tuple[int, ...] = ()
    reason: str = ""
    orders: str = ""
    generated: bool = False


class ExecutedPasses:
    """Executes a kernel after each of its passes, as far as it is asked for."""

    def __init__(self, pipeline: Pipeline, request: Request, known: Sequence[Claim] | None = None) -> None:
        """known: the claims of the same execution, where the kernel was judged before."""
        request = replace(request, sources=request.sources or SourceRuns())  # all passes begin with one source
        self._pipeline = pipeline
        self._snapshot = pipeline.executable(pipeline.last, LOWERED)
        self._names = {str(b.data.value): b.name for b in self._snapshot.checkpoints[Checkpoint.SOURCE].buffers}
        self._known: dict[tuple[tuple[str, ...], str], Execution] = {}
        self._executed: list[int] = []  # after which passes the kernel was executed
        self.claims = list(known) if known is not None else self._judged(request)
        self._request = self._narrowed(request)
        if known is None and self.refuted:
            self.claims = self._alone()
        if not self._brief:
            self._request = replace(request, course=self._request.course)

    def _judged(self, request: Request) -> list[Claim]:
        found = execute(self._snapshot, request)
        return list(claims_of(self._snapshot, diagnose(self._snapshot, request, found, steps=False), request))

    def _narrowed(self, request: Request) -> Request:
        """The blocks and inputs that show what is wrong."""
        findings = [claim.finding for claim in self.refuted if claim.finding is not None]
        blocks = tuple(dict.fromkeys(block for finding in findings for block in finding.blocks))
        seeds = tuple(dict.fromkeys(seed for finding in findings for seed in finding.seeds))
        known = all(finding.blocks for finding in findings)  # an element that nobody wrote may be of any block
        return replace(
            request,
            blocks=blocks if blocks and known else request.blocks,
            seeds=seeds or request.seeds[:1],
            course=course_of(self._snapshot, request),
        )

    def _alone(self) -> list[Claim]:
        """The claims, and in the place of each what is refuted of it in fewer blocks.

        A copy that nobody waits for may land while other blocks wait.
        """
        found = self._final
        races = {("order", self._names.get(race.parameter, race.buffer)) for race in found.races}
        stops = {("legality", found.illegal.buffer)} if found.illegal is not None else set()
        known = {(claim.kind, claim.buffer) for claim in self.refuted}
        if known >= {("output", name) for name in self._wrong} | races | stops:
            return self.claims
        refuted = {(c.kind, c.buffer): c for c in self._judged(self._request) if c.verdict == REFUTED}
        return [refuted.get((c.kind, c.buffer), c) if c.verdict != REFUTED else c for c in self.claims]

    @cached_property
    def _final(self) -> Execution:
        """Return what the last pass leaves, in the blocks that show what is wrong."""
        return execute(self._snapshot, replace(self._request, brief=True))

    @property
    def _wrong(self) -> list[str]:
        """The outputs that are wrong there."""
        return [self._names.get(o.name, o.name) for o in self._final.outputs if o.verdict == REFUTED]

    @cached_property
    def _brief(self) -> bool:
        """Whether few blocks, with floats as float64, show whatever is wrong; else all that were executed have to."""
        return all(claim.buffer in self._wrong for claim in self.refuted if claim.kind == "output")

    @property
    def refuted(self) -> list[Claim]:
        """The claims that are wrong at the end."""
        return [claim for claim in self.claims if claim.blames_compiler]

    def state(self, claim: Claim, number: int) -> PassState:
        """Return how a claim of `refuted` fares after a pass."""
        if number == self._pipeline.last:
            return PassState("wrong")
        if claim.kind == "order" and number < self._since(claim):
            return PassState("unseen") if self._ordered_by(claim) else _undecided(_UNORDERED)
        return self._said(claim, self._execution(number))

    def onset(self, claim: Claim) -> PassOnset:
        """Since when a claim of `refuted` is wrong."""
        if not self._ordered_by(claim):
            return PassOnset(0, orders=self._orders(claim))
        first = self._since(claim) if claim.kind == "order" else 1
        right, wrong, states = self._searched(claim, first)
        if wrong == first > 1 and not self._orders(claim):
            return self._before_orders(claim, wrong)
        is_unheld = wrong == self._pipeline.tiles and self._pipeline.unheld is not None
        if is_unheld and claim.kind == "output":
            return PassOnset(self._pipeline.layouts)
        between = tuple(range(right + 1, wrong))
        reason = next((states[n].reason for n in between if n in states and states[n].reason), "")
        generated = wrong == self._pipeline.last and self._said(claim, self._execution(wrong)).state == "right"
        return PassOnset(wrong + generated, between, reason, self._orders(claim), generated)

    def _before_orders(self, claim: Claim, number: int) -> PassOnset:
        """Since when a wait is missing that is missing in the first pass of which orders are watched: since an output
        is wrong that reads too early, where there is one.
        """
        outputs = [replace(claim, kind="output", buffer=name, key=name) for name in self._wrong]
        onsets = [self.onset(output) for output in outputs]
        found = min((o for o in onsets if o.number < number), key=lambda o: o.number, default=None)
        return found or PassOnset(number)

    def _searched(self, claim: Claim, first: int) -> tuple[int, int, dict[int, PassState]]:
        """The last pass after which a claim is right, the next after which it is wrong, and the states looked at.

        Passes are searched as if the claim stayed wrong; those that were executed for other claims cost nothing, and
        those on both sides of a suspected one come first. Of passes in between nothing is known. first: the first pass
        that counts.
        """
        right, wrong = first - 1, self._pipeline.last
        states: dict[int, PassState] = {}
        left = [n for n in self._executed if right < n < wrong]
        suspected = self._suspected(claim)
        while right + 1 < wrong:
            known = [n for n in left if right < n < wrong and n not in states]
            middle = (right + wrong) // 2
            open_ = [n for n in range(right + 1, wrong) if n not in states]
            if not open_:
                break
            near = [n for n in suspected if n in open_] or [min(open_, key=lambda n: abs(n - middle))]
            number = known[-1] if known else near[0]
            states[number] = self.state(claim, number)
            if states[number].state == "right":
                right = number
            elif states[number].state == "wrong":
                wrong = number
        return right, wrong, states

    def _suspected(self, claim: Claim) -> tuple[int, ...]:
        """The place of the pass that gives two buffers one memory, and the one before it, where that is the origin."""
        origin = claim.finding.origin if claim.finding is not None else None
        if origin is None or origin.kind != "overwritten" or len(origin.buffers) == 1:
            return ()
        place = self._pipeline.place(MERGE)
        return place - 1, place

    def _since(self, claim: Claim) -> int:
        """The first pass after which an order can be judged: that which puts in what is missing."""
        name = self._orders(claim)
        if not name:
            return min(self._pipeline.vectors + 1, self._pipeline.last)
        return max(self._ordered_by(claim), default=self._pipeline.last)

    def _ordered_by(self, claim: Claim) -> list[int]:
        """The places of the pass that should put what is missing; of any pass where no one pass does."""
        name = self._orders(claim)
        return [n for n, found in enumerate(self._pipeline.names) if not name or found == name]

    def _orders(self, claim: Claim) -> str:
        """The pass that should put what is missing between two accesses; empty for a wait, which copies bring along."""
        if claim.kind != "order":
            return ""
        missing = self._missing(claim)
        return "" if missing in _WITHOUT else _ORDERING.get(missing, _BARRIERS)

    def _missing(self, claim: Claim) -> str:
        """Return what is missing between two accesses at the end."""
        return next((r.missing for r in self._final.races if self._is_of(r, claim)), _COPY)

    def _is_of(self, race: Race, claim: Claim) -> bool:
        return claim.buffer in (race.buffer, self._names.get(race.parameter))

    def _execution(self, number: int) -> Execution:
        """Execute as TIR says, of which no CUDA is made yet. Passes that change nothing are not executed again."""
        stage = self._pipeline.stage(number)
        stage = stage if stage in _EARLY else LOWERED
        self._executed.append(number)
        key = self._pipeline.text(number), stage
        if key not in self._known:
            snapshot = self._pipeline.executable(number, stage)
            asked = replace(self._request, checkpoint=stage, printed=False, contested=False, brief=self._brief)
            self._known[key] = execute(snapshot, asked)
        return self._known[key]

    def _said(self, claim: Claim, found: Execution) -> PassState:
        outcomes = {self._names.get(o.name, o.name): o for o in found.outputs}
        stopped = next((o.reason for o in found.outputs if o.verdict == UNDECIDED), "")
        if claim.kind == "output":
            outcome = outcomes.get(claim.buffer)
            return _OUTCOMES[outcome.verdict](outcome.reason) if outcome is not None else PassState("undecided")
        if claim.kind == "legality":
            if found.illegal is not None:
                return PassState("wrong") if _same(found.illegal, self._final.illegal) else _undecided(stopped)
            return PassState("right") if found.statements[1] else _undecided(stopped)
        if not found.statements[1]:
            return _undecided(stopped)
        missing = {race.missing for race in found.races if self._is_of(race, claim)}
        if missing and not self._orders(claim) and self._missing(claim) not in missing:
            return _undecided(_HIDDEN)
        return PassState("wrong" if missing else "right")


def _undecided(reason: str) -> PassState:
    return PassState("undecided", reason)


_OUTCOMES = {
    "agreed": lambda reason: PassState("right"),
    "refuted": lambda reason: PassState("wrong"),
    UNDECIDED: _undecided,
}


def _same(one: Illegal, other: Illegal | None) -> bool:
    """Whether two illegal accesses are of one buffer and one kind."""
    return other is not None and (type(one), one.buffer) == (type(other), other.buffer)
