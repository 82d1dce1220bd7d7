"""Claims that an execution decides: outputs are what was written, accesses are in order and legal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tlcheck.execute.compare.counterparts import Counterparts
from tlcheck.execute.compare.diagnosis import Diagnosis
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.faults import (
    ABSENT_LANE,
    BARRIER,
    BOUNDS,
    FRAGMENT,
    PART,
    PROMISE,
    RACE,
    STRAY,
    UNCOMMITTED,
    UNSET,
    UNWRITTEN,
    WAIT,
    Fault,
)
from tlcheck.execute.compare.onset import Onset
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.compare.sum_terms import UnequalTerm
from tlcheck.execute.compare.wrapping import ADVICE as WRAPS
from tlcheck.execute.compare.writers import Writer
from tlcheck.execute.compare.wrong_output import WrongOutput
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.observe.races import AGREEMENT, BLOCKS, HALVES, SEVERAL, Access, Race
from tlcheck.execute.request import LOWERED, SOURCE, Request
from tlcheck.execute.stops import AbsentLanes, Deadlock, Illegal
from tlcheck.lower.runs import release_of
from tlcheck.program.divergence import divergent_calls
from tlcheck.program.lines import line_of_use, names_at, nearest_line
from tlcheck.program.steering import Steering
from tlcheck.program.unheld import unheld_fragments
from tlcheck.program.updates import parted_updates
from tlcheck.reasons import UNSAID, Reason
from tlcheck.scope import block_scope, input_scope
from tlcheck.scope.claim_scope import ALL, DRAWN, GIVEN, SOME, ClaimScope, Limit
from tlcheck.signatures.barriers import is_sync_threads
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Evaluate, If, Snapshot, Stmt
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.verdicts.claim import (
    AGREED,
    PROVED,
    REFUTED,
    UNDECIDED,
    Claim,
    Excuse,
    Executed,
    Finding,
    FindingOrigin,
    Kind,
    SourceLine,
)
from tlcheck.verdicts.excerpts import excerpt, line_of, source_line
from tlcheck.verdicts.origins import (
    AGGRESSIVE_MERGE,
    MERGE,
    access_in_words,
    buffer_named,
    origin_in_words,
    race_in_words,
)
from tlcheck.verdicts.remedies import pass_config
from tlcheck.verdicts.rules.rule import rule_of
from tlcheck.verdicts.steps import TracedLines
from tlcheck.witness import Accesses, Act, Element, Term, Witness

_ADVICE = {
    RACE: "T.atomic_add, T.sync_threads() between the two accesses, or an element of its own for each thread and block",
    BOUNDS: "guard the index, or make the buffer larger",
    FRAGMENT: "keep it in shared memory (T.alloc_shared), or store it by T.Parallel or a tile operator",
    PART: "move it out of the branch or loop, so that all threads of the block reach it",
    UNSET: "T.clear or T.fill it before it is read",
    BARRIER: "move it out of the branch, so that all threads of the block reach it",
    PROMISE: "guard what needs the condition with `if`, or assume what holds for all blocks, threads and inputs",
    STRAY: "guard it with `if`, or give what is read out of bounds with T.if_then_else",
    UNWRITTEN: "a grid of T.ceildiv(size, tile) blocks, or zeros in the tensor before the kernel runs",
    UNCOMMITTED: "T.ptx_commit_group() between the copies and the wait",
    ABSENT_LANE: "move the shuffle out of the branch, or use its value only where the lane that it reads takes part",
    WAIT: "let as many threads arrive as the mbarrier is made for, and wait for the parity of the phase that they end",
}
_ORDERING = {"a barrier": "tl.ThreadSync", "fence.proxy.async": "tl.InjectFenceProxy"}  # the passes that put them in
_LAYOUTS = "tl.LayoutInference"
_TERMS, _ADDITIONS = 4, 3  # of a sum: values that are told, and additions of each
NO_SOURCE = "the snapshot has no source"


def claims_of(snapshot: Snapshot, diagnosis: Diagnosis, request: Request) -> tuple[Claim, ...]:
    """The claims that an execution decides: of each output, each shared buffer that was watched, an illegal access."""
    if SOURCE not in snapshot.checkpoints:
        return ()
    claims = _Claims(snapshot, diagnosis.execution, request)
    return tuple(claims.with_faults(list(claims.all(diagnosis))))


@dataclass(frozen=True)
class OwnRace:
    """A race of the author's own: both accesses as lowered, in words. line: as written, 0 where it is not known."""

    buffer: str
    who: str
    line: int
    words: str


def own_races(snapshot: Snapshot, execution: Execution, request: Request) -> Iterator[OwnRace]:
    """Yield what races as written and as lowered, once for each buffer and line; not what atomics may order."""
    claims, shown = _Claims(snapshot, execution, request), set[tuple[str, int]]()
    for race, contest in execution.contested:
        name, witness = claims.unordered(race)
        if (name, contest.line) not in shown and not contest.atomics:
            shown.add((name, contest.line))
            yield OwnRace(name, contest.who, contest.line, witness.words(name))


class _Claims:
    """The claims of one execution."""

    def __init__(self, snapshot: Snapshot, execution: Execution, request: Request) -> None:
        self._snapshot, self._execution, self._drawn = snapshot, execution, not request.is_own
        self._source = snapshot.checkpoints[SOURCE]
        self._source_buffers = {str(b.data.value): b for b in snapshot.checkpoints[SOURCE].buffers}
        self._executed = None
        if execution.blocks:
            blocks, of, seeds = execution.blocks, execution.of, execution.seeds
            sizes, unreached = dict(execution.sizes), execution.unreached
            also = tuple([dict(sizes) for sizes in execution.also])
            dtypes = ("float64", "declared") if execution.rounded else ("float64",)
            self._executed = Executed(blocks, of, (request.inputs,), seeds, dtypes, sizes, unreached, also)

    def all(self, diagnosis: Diagnosis) -> Iterator[Claim]:
        if self._execution.illegal is not None:
            yield self._illegal(self._execution.illegal, diagnosis.stop)
        for race in self._execution.races:
            yield self._race(race)
        racing = {race.name for race in self._execution.races}
        for name, reason in self._execution.ordered.items():
            if name not in racing:
                yield self._examined("order", name, reason)
        for name in self._execution.lawful:
            yield self._examined("legality", name, UNSAID)
        for outcome in self._execution.outputs:
            yield self._output(outcome, diagnosis.outputs.get(outcome.name))

    def with_faults(self, claims: Sequence[Claim]) -> Iterator[Claim]:
        """The faults of the source, each with the undecided claims that it explains, then the other claims."""
        refuted = [fault for fault in self._execution.faults if not fault.open]
        explained: set[int] = set()
        for fault in refuted:
            also = [n for n, claim in enumerate(claims) if n not in explained and _is_explained(claim, fault)]
            explained.update(also)
            yield replace(self._source_claim(fault), also=tuple(claims[n] for n in also))
        hints = {reason: fault.open for fault in self._execution.faults if fault.open for reason in fault.reasons}
        for number, claim in enumerate(claims):
            if number not in explained:
                hint = hints.get(claim.reason, "")
                yield replace(claim, reason=f"{claim.reason}, {hint}") if hint else claim

    def _source_claim(self, fault: Fault) -> Claim:
        """A fault of the source, which is refuted whatever TileLang makes of it."""
        name = self._called(fault.buffer) if fault.buffer else "T.sync_threads"
        first = self._made(fault.first.kind, _writer(fault.first), SOURCE)
        second = None if fault.second is None else self._made(fault.second.kind, _writer(fault.second), SOURCE)
        witness = Accesses(fault.index, first, second)
        stmt = (fault.first if fault.second is None else fault.second).origin.stmt
        at = fault.line or (0 if stmt is None else nearest_line(self._source, stmt))
        problem = {UNCOMMITTED: WAIT, ABSENT_LANE: UNSET}.get(fault.problem, fault.problem)
        finding = self._finding(problem, fault.what, name, witness, stmt)
        finding = replace(finding, checkpoint=SOURCE, excerpt=None, blame="author", pass_config="")
        finding = replace(finding, advice=_ADVICE[fault.problem])
        key = f"{finding.rule} {name}"
        excuse = Excuse("warning", fault.warning) if fault.warning else None
        claim = Claim("source", key, name, self._line(at), REFUTED, "execution", finding=finding, excuse=excuse)
        call = name_of_call(stmt.value) if isinstance(stmt, Evaluate) and stmt.value.op == "call" else ""
        return replace(claim, call=call, executed=self._executed)

    def _examined(self, kind: Kind, name: str, reason: Reason) -> Claim:
        """A buffer against which nothing was found; undecided where there is a reason."""
        name = self._called(name)
        verdict = UNDECIDED if reason else AGREED
        return Claim(kind, name, name, self._line(0), verdict, "execution", executed=self._executed).because(reason)

    def _called(self, name: str) -> str:
        """A buffer's name; of a parameter, as it is written."""
        return self._source_buffers[name].name if name in self._source_buffers else name

    def _output(self, outcome: OutputOutcome, wrong: WrongOutput | None) -> Claim:
        name = self._called(outcome.name)
        claim = Claim("output", name, name, self._line(0), UNDECIDED, "execution", executed=self._executed).because(
            outcome.reason
        )
        if outcome.verdict == "undecided":
            return claim
        if wrong is None or outcome.difference is None:
            equal = self._execution.formulas is not None and outcome.name in self._execution.formulas.equal
            scope = self._for_all_inputs if equal else self._scope
            proved = scope.is_everything and self._execution.is_settled and not self._is_open
            return replace(claim, verdict=PROVED if proved else AGREED, scope=scope)
        return _seen(self._differs(claim, wrong), outcome.difference.blocks, (outcome.difference.seed,))

    @cached_property
    def _scope(self) -> ClaimScope:
        """Return how far an output that agreed reaches."""
        execution = self._execution
        left_out = self._blocks_limit()
        limits = (left_out, input_scope.limit_of(self._source, dict(execution.sizes), execution.formulas))
        return ClaimScope(
            SOME if left_out else ALL,
            DRAWN if self._drawn else GIVEN,
            not_taken=execution.unreached,
            limits=tuple(limit for limit in limits if limit is not None),
        )

    @property
    def _is_open(self) -> bool:
        """Whether sizes were chosen, or the order of some accesses is not known."""
        return bool(self._execution.sizes) or any(self._execution.ordered.values())

    @property
    def _for_all_inputs(self) -> ClaimScope:
        """Return how far an output reaches that is the same formula at both levels."""
        limits = tuple(limit for limit in self._scope.limits if limit.of != "inputs")
        return replace(self._scope, inputs=ALL, limits=limits)

    def _blocks_limit(self) -> Limit | None:
        """Return why an output that agreed may not in blocks that did not run; None where all ran, or do the same."""
        execution = self._execution
        if len(execution.blocks) == execution.of:
            return None
        if not execution.is_settled:
            return Limit("blocks", "another claim is open or wrong")
        if execution.same_elements is None:
            return Limit("blocks", "blocks ran one by one")
        if not execution.same_elements:
            return Limit("blocks", "the lowered kernel writes other elements than the source")
        lowered = self._snapshot.checkpoints[LOWERED]
        return block_scope.limit_of(self._source, lowered, dict(execution.sizes), execution.blocks)

    def _differs(self, claim: Claim, wrong: WrongOutput) -> Claim:
        """An output that is wrong, at the checkpoint at which it first is."""
        found, name = wrong.difference, claim.buffer
        poisoned = found.got.startswith("poison")
        what = f"{name} depends on what was never written, or is still under way" if poisoned else f"{name} is wrong"
        what = f"{name} is rounded by more than what is written" if found.rounded else what
        what = f"{name} lacks a rounding that is written" if found.finer else what
        what = (
            f"{name} is wrong for {'large integers' if found.ends else 'NaN or infinities'}" if found.special else what
        )
        what = what if wrong.departure is None else f"{what}: {wrong.departure.words}"
        what = f"{what}: {wrong.wraps} wraps as written, and not as lowered" if wrong.wraps else what
        stmt = found.writer.origin.stmt if found.writer is not None else None
        problem = "poison" if poisoned else "differs"
        finding = self._finding(problem, what, name, self._element(wrong), stmt, wrong.onset)
        if wrong.departure is not None:
            finding = replace(finding, pass_name="", advice=wrong.departure.advice)
        if wrong.origin is not None:
            finding = self._with_origin(finding, origin_in_words(self._snapshot, wrong.origin, self._execution.races))
        finding = replace(finding, advice=finding.advice or (WRAPS if wrong.wraps else self._advice_on_sizes()))
        author = found.author.origin.stmt if found.author is not None else None
        return replace(claim, verdict=REFUTED, source=self._line(author.line if author else 0), finding=finding)

    def _with_origin(self, finding: Finding, origin: FindingOrigin) -> Finding:
        """A finding that begins there. Where two buffers share memory, the pass that lays them there is to blame."""
        finding = replace(finding, origin=origin)
        if finding.checkpoint == Checkpoint.LOWER_TILE_OP and self._is_unheld(origin):
            finding = replace(finding, pass_name=_LAYOUTS)
        elif finding.checkpoint == Checkpoint.LOWER_TILE_OP and self._is_parted(origin):
            finding = replace(finding, pass_name="")
        if origin.kind != "overwritten" or len(origin.buffers) < 2:
            return finding
        merges = self._snapshot.is_on(AGGRESSIVE_MERGE)
        return replace(
            finding, pass_name=MERGE, advice=f"set the pass config {AGGRESSIVE_MERGE} to False" if merges else ""
        )

    def _is_unheld(self, origin: FindingOrigin) -> bool:
        """Whether it begins where a fragment is used whose layout has fewer elements than the fragment.

        LowerTileOp lowers each loop over that fragment as it is laid out: for fewer iterations.
        """
        before = self._snapshot.checkpoints.get(Checkpoint.TILE_OPS)
        unheld = () if before is None else unheld_fragments(before)
        return not self._used(origin).isdisjoint(fragment.name for fragment in unheld)

    def _is_parted(self, origin: FindingOrigin) -> bool:
        """Whether it begins where a reducer is used of which each thread has a part.

        Before LowerTileOp such a reducer runs as one tile, whichever threads are to combine their parts.
        """
        before = self._snapshot.checkpoints.get(Checkpoint.TILE_OPS)
        updates = () if before is None else parted_updates(before)
        return not self._used(origin).isdisjoint(stmt.buffer.name for stmt in updates)

    def _used(self, origin: FindingOrigin) -> set[str]:
        """The buffers that the lines of an origin use."""
        return {name for line in (origin.line, origin.other_line) for name in names_at(self._source, line)}

    def _element(self, wrong: WrongOutput) -> Element:
        """The first element that is wrong, with the first steps to it at both levels."""
        found = wrong.difference
        types = ", floats in their own types" if found.rounded else ""
        types += f", some of them {'large' if found.ends else 'NaN or infinite'}" if found.special else ""
        copies = ", copies as early as they may be" if found.early else ""
        kind = "random " if self._drawn else ""  # what a case declares are its inputs, here as on a GPU
        inputs = f"{kind}inputs of seed {found.seed}{types}{copies}; {found.count} elements differ"
        at = LOWERED if wrong.onset is None else wrong.onset.checkpoint
        writer = None if found.writer is None else self._made("write", found.writer, at)
        steps = None if wrong.traced is None else TracedLines(self._snapshot, wrong.traced)
        origin = wrong.origin
        is_unset = origin is not None and origin.kind == "unwritten" and origin.value.startswith("poison")
        return Element(
            found.index,
            origin.value if origin is not None and is_unset else found.got,  # a number stands for an integer's poison
            found.expected,
            inputs,
            writer,
            () if steps is None else tuple(steps.source()),
            () if steps is None else tuple(steps.lowered()),
            tuple([self._term(term, at) for term in wrong.terms[:_TERMS]]),
            len(wrong.terms[_TERMS:]),
        )

    def _term(self, term: UnequalTerm, at: str) -> Term:
        """A value of a sum, with who adds it; of the source the lines are known, not the threads."""
        level = at if term.lowered else SOURCE
        acts = [
            self._made("addition", Writer(each.block, each.thread if term.lowered else -1, each.origin), level)
            for each in term.acts[:_ADDITIONS]
        ]
        return Term(repr(term.acts[0].value), len(term.source), len(term.lowered), tuple(acts))

    def _race(self, race: Race) -> Claim:
        problem = "fence" if race.missing == "fence.proxy.async" else "race"
        name, witness = self.unordered(race)
        finding = self._finding(problem, _unordered(name, race), name, witness, race.second.origin.stmt)
        origin = race_in_words(self._snapshot, race, name)
        finding = replace(finding, origin=origin, pass_name=_ORDERING.get(race.missing, ""))
        finding = replace(finding, weight="hazard" if problem == "fence" else "error")
        used = line_of_use(self._source, race.buffer, race.second.kind != "read")
        line = self._line(self._near(race.second.origin.stmt, used, race.buffer))
        claim = Claim("order", name, name, line, REFUTED, "execution", finding=finding, executed=self._executed)
        return _seen(claim, tuple(dict.fromkeys((race.first.block, race.second.block))), (race.seed,))

    def unordered(self, race: Race) -> tuple[str, Accesses]:
        """The buffer that is raced for, and both accesses."""
        name = self._called(race.name)
        return name, Accesses(race.index, self._act(race.first, race.buffer), self._act(race.second, race.buffer))

    def _act(self, access: Access, buffer: str) -> Act:
        by = {"async": " by the async proxy", "tensor": " by the tensor core"}
        what = access.kind + by.get(access.proxy, "")
        if access.thread <= SEVERAL:
            what = f"{what} by several threads of warp {SEVERAL - access.thread}"
        named = buffer_named(self._snapshot, access, buffer)
        used = line_of_use(self._source, named, access.kind != "read")
        return self._made(what, Writer(access.block, access.thread, access.origin), LOWERED, used, named)

    def _made(self, what: str, writer: Writer, at: str, used: int = 0, buffer: str = "") -> Act:
        """An access as a witness names it, with its line at a checkpoint. thread: -1 for a bulk copy.

        used: the only source line that accesses its buffer so, 0 if there is none. buffer: that it accesses.
        """
        stmt = writer.origin.stmt
        line = line_of(self._snapshot, at, stmt)
        maker = writer.thread if writer.thread >= 0 else None
        return Act(what, writer.block, maker, dict(writer.origin.loops), line, self._near(stmt, used, buffer), at)

    def _near(self, stmt: Stmt | None, used: int = 0, buffer: str = "") -> int:
        """The source line of a statement as lowered: of the one that it does; else that of the buffer's use in the
        source, its own, or the nearest one."""
        if stmt is None:
            return used
        source = self._counterparts.only(stmt)
        own = source.line if source is not None else 0
        return own or used or self._counterparts.line_near(stmt, buffer)

    def _alone(self, illegal: Illegal) -> int:
        """The only line that reads its buffer, or writes it, as the statement does; 0 where that is not known."""
        names, buffer = self._counterparts.accessed(illegal.stmt), self._counterparts.name(illegal.buffer)
        writes = buffer in names.writes
        return 0 if writes == (buffer in names.reads) else line_of_use(self._source, illegal.buffer, writes)

    @cached_property
    def _counterparts(self) -> Counterparts:
        return Counterparts(self._source, self._snapshot.checkpoints[LOWERED])

    def _illegal(self, illegal: Illegal, onset: Onset | None) -> Claim:
        problem = "deadlock" if isinstance(illegal, Deadlock) else "illegal"
        writer = Writer(illegal.block, illegal.lane, Origin(illegal.stmt))
        act = self._made(str(illegal), writer, LOWERED, self._alone(illegal), illegal.buffer)
        witness = Accesses((), act)
        finding = self._finding(problem, str(illegal), illegal.buffer, witness, illegal.stmt, onset)
        origin = access_in_words(self._snapshot, illegal, act.source or illegal.line)
        if isinstance(illegal, Deadlock):
            origin = replace(origin, words=origin.words + self._missed_before(illegal.stmt))
        finding = replace(finding, origin=origin, advice=self._advice_on_sizes())
        if isinstance(illegal, AbsentLanes) and self._leaves_lanes_out(illegal):
            finding = replace(finding, pass_name=self._snapshot.pass_at(Checkpoint.LOWER_TILE_OP))
        elif problem == "deadlock" and self._is_inserted_barrier(illegal.stmt):
            finding = replace(finding, pass_name=_ORDERING["a barrier"])
        line = self._line(act.source or illegal.line)
        key = illegal.buffer
        claim = Claim("legality", key, key, line, REFUTED, "execution", finding=finding, executed=self._executed)
        return _seen(claim, (illegal.block,), (illegal.seed,))

    def _advice_on_sizes(self) -> str:
        """Say what to do where no caller passes the sizes that tlcheck chose; nothing where inputs are declared."""
        if not self._drawn or not self._execution.sizes:
            return ""
        sizes = ", ".join(f"{name} = {size}" for name, size in self._execution.sizes)
        return f"exclude {sizes} by `T.assume` or `inputs`, if no caller passes these sizes"

    def _missed_before(self, stmt: Stmt | None) -> str:
        """Name the barrier of all threads that stands in a branch, where some threads wait at a later one in vain."""
        if stmt is None or not _is_barrier(stmt):
            return ""
        lowered = self._snapshot.checkpoints[LOWERED]
        missed = [each for each in divergent_calls(lowered, is_sync_threads) if _counts_all(each)]
        if not missed or stmt in missed:
            return ""
        tir = line_of(self._snapshot, LOWERED, missed[0])
        return f"; some threads may not take the branch with the barrier of TIR line {tir}"

    def _is_inserted_barrier(self, stmt: Stmt | None) -> bool:
        """Whether a statement is a barrier of the block, in a kernel whose source has none."""
        return stmt is not None and _is_barrier(stmt) and not any(map(_is_barrier, statements(self._source.body)))

    def _leaves_lanes_out(self, illegal: AbsentLanes) -> bool:
        """Whether the shuffle stands in a branch that the barrier is not in, and not the other way round.

        The pass that makes the shuffle of a tile operator made that branch, too: LowerTileOp.
        """
        if illegal.exchange is None or illegal.stmt is None:
            return False
        steering = Steering(self._snapshot.checkpoints[LOWERED])
        shuffle, barrier = (
            {stmt for stmt in steering.around(each) if isinstance(stmt, If)}
            for each in (illegal.exchange, illegal.stmt)
        )
        return barrier < shuffle

    def _line(self, line: int) -> SourceLine:
        return source_line(self._snapshot, line)

    def _finding(
        self, problem: str, what: str, buffer: str, witness: Witness, stmt: Stmt | None, onset: Onset | None = None
    ) -> Finding:
        rule = rule_of(problem)
        at = LOWERED if onset is None else onset.checkpoint
        return Finding(
            rule=rule.id,
            name=rule.name,
            title=rule.title,
            others=(),
            checkpoint=at,
            pass_name="" if onset is None else _pass_before(self._snapshot, at),  # no onset: a race
            what=what,
            witness=witness,
            words=witness.words(buffer),
            advice="",
            pass_config=pass_config(rule.id, at, release_of(self._snapshot.toolchain)),
            excerpt=excerpt(self._snapshot, at, stmt),
            skipped=() if onset is None else tuple([f"{name} ({reason})" for name, reason in onset.skipped]),
        )


def _seen(claim: Claim, blocks: tuple[tuple[int, int, int], ...], seeds: tuple[int, ...]) -> Claim:
    """A refuted claim with the blocks and seeds that show it."""
    finding = claim.finding
    return claim if finding is None else replace(claim, finding=replace(finding, blocks=blocks, seeds=seeds))


def _is_explained(claim: Claim, fault: Fault) -> bool:
    """Whether a claim is undecided because of a fault of the source."""
    return claim.verdict == UNDECIDED and claim.reason in fault.reasons


def _writer(access: Access) -> Writer:
    return Writer(access.block, access.thread, access.origin)


def _pass_before(snapshot: Snapshot, checkpoint: str) -> str:
    """The pass between a checkpoint and the one before it, if that is the only one: LowerTileOp."""
    return snapshot.pass_at(checkpoint) if checkpoint == Checkpoint.LOWER_TILE_OP else ""


def _is_barrier(stmt: Stmt) -> bool:
    return any(map(is_sync_threads, postorder(expressions(stmt))))


def _counts_all(stmt: Stmt) -> bool:
    """Whether a barrier does not say how many threads it counts."""
    return isinstance(stmt, Evaluate) and not any(argument.op == "int" for argument in stmt.value.args)


def _unordered(name: str, race: Race) -> str:
    """Return what is wrong, in a sentence."""
    if race.missing == AGREEMENT:
        return f"threads store different values to one element of {name} at once"
    if race.missing == HALVES:
        return f"two threads store the halves of one byte of {name} at once"
    if race.missing == BLOCKS:
        return f"nothing orders accesses of two blocks to {name}, which as written access different elements"
    return f"nothing orders two accesses to {name}: between them {race.missing} is missing"
