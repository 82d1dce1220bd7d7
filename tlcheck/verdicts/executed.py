"""Claims that an execution decides: outputs are what was written, accesses are in order and legal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from tlcheck.execute.comparison import OutputOutcome
from tlcheck.execute.order import SEVERAL, Access, Origin, Race
from tlcheck.execute.plain import evaluated
from tlcheck.execute.reasons import Deadlock, Illegal, NotModelled
from tlcheck.execute.run import LOWERED, SOURCE, Execution, Request, execute
from tlcheck.execute.writers import Writer
from tlcheck.lower.runs import release_of
from tlcheck.snapshot.ir import Buffer, Snapshot, Stmt
from tlcheck.snapshot.text import render
from tlcheck.verdicts.claim import AGREED, REFUTED, UNDECIDED, Claim, Excerpt, Executed, Finding, SourceLine
from tlcheck.verdicts.remedies import pass_config
from tlcheck.verdicts.rules.rule import rule_of
from tlcheck.witness import Accesses, Act, Element, Witness

_BEFORE, _AFTER = 2, 1  # lines of TIR shown around a statement
NO_SOURCE = "the snapshot has no source"


def executed(snapshot: Snapshot, request: Request) -> tuple[Claim, ...]:
    """Execute a kernel: a claim for each output, each shared buffer that was watched, and an illegal access."""
    if SOURCE not in snapshot.checkpoints:
        return ()
    return claims_of(snapshot, execute(snapshot, request), request)


def claims_of(snapshot: Snapshot, execution: Execution, request: Request) -> tuple[Claim, ...]:
    """The claims that an execution decides."""
    return tuple(_Claims(snapshot, execution, request).all())


class _Claims:
    """The claims of one execution."""

    def __init__(self, snapshot: Snapshot, execution: Execution, request: Request) -> None:
        self._snapshot, self._execution = snapshot, execution
        self._written = {str(b.data.value): b for b in snapshot.checkpoints[SOURCE].buffers}
        self._executed = None
        if execution.blocks:
            inputs = ("the case's",) if request.given else ("random",)
            self._executed = Executed(execution.blocks, execution.of, inputs, execution.seeds, ("float64",))

    def all(self) -> Iterator[Claim]:
        if self._execution.illegal is not None:
            yield self._illegal(self._execution.illegal)
        for race in self._execution.races:
            yield self._race(race)
        racing = {race.buffer for race in self._execution.races}
        for name in self._execution.shared:
            if name not in racing:
                yield Claim("order", name, name, self._line(0), AGREED, "execution", executed=self._executed)
        for outcome in self._execution.outputs:
            yield self._output(outcome)

    def _output(self, outcome: OutputOutcome) -> Claim:
        buffer = self._written.get(outcome.name)
        name = buffer.name if buffer is not None else outcome.name
        claim = Claim(
            "output", name, name, self._line(0), UNDECIDED, "execution", reason=outcome.reason, executed=self._executed
        )
        if outcome.verdict == "undecided":
            return claim
        if outcome.verdict == "agreed":
            return replace(claim, verdict=AGREED)
        found = outcome.difference
        assert found is not None
        poisoned = found.got.startswith("poison")
        index = _index(found.element, buffer, dict(self._execution.sizes))
        inputs = f"inputs of seed {found.seed}; {found.count} elements differ"
        witness = Element(index, found.got, found.expected, inputs, self._last(found.writer))
        what = f"{name} depends on what was never written, or is still under way" if poisoned else f"{name} is wrong"
        finding = self._finding("poison" if poisoned else "differs", what, name, witness, None)
        return replace(claim, verdict=REFUTED, finding=finding)

    def _race(self, race: Race) -> Claim:
        problem = "fence" if race.missing == "fence.proxy.async" else "race"
        witness = Accesses((race.offset,), self._act(race.first, race.world), self._act(race.second, race.world))
        what = f"nothing orders two accesses to {race.buffer}: between them {race.missing} is missing"
        finding = self._finding(problem, what, race.buffer, witness, race.second.origin.stmt)
        stmt = race.second.origin.stmt
        line = self._line(0 if stmt is None else stmt.line)
        claim = Claim("order", race.buffer, race.buffer, line, UNDECIDED, "execution", executed=self._executed)
        return replace(claim, verdict=REFUTED, finding=finding)

    def _act(self, access: Access, world: int) -> Act:
        what = f"{access.kind} by the async proxy" if access.proxy == "async" else access.kind
        if access.thread <= SEVERAL:
            what = f"{what} by several threads of warp {SEVERAL - access.thread}"
        block = self._execution.blocks[world % len(self._execution.blocks)]
        return self._made(what, block, access.thread, access.origin)

    def _last(self, writer: Writer | None) -> Act | None:
        return None if writer is None else self._made("write", writer.block, writer.thread, writer.origin)

    def _made(self, what: str, block: tuple[int, int, int], thread: int, origin: Origin) -> Act:
        """An access as a witness names it. thread: -1 for a bulk copy."""
        stmt = origin.stmt
        line = 0 if stmt is None else render(self._snapshot.checkpoints[LOWERED]).line_of(stmt) or 0
        maker = thread if thread >= 0 else None
        return Act(what, block, maker, dict(origin.loops), line, 0 if stmt is None else stmt.line)

    def _illegal(self, illegal: Illegal) -> Claim:
        problem = "deadlock" if isinstance(illegal, Deadlock) else "illegal"
        block = self._execution.blocks[illegal.world % max(1, len(self._execution.blocks))]
        witness = Accesses((), Act(str(illegal), block, illegal.lane, {}, 0, illegal.line))
        finding = self._finding(problem, str(illegal), illegal.buffer, witness, None)
        line = self._line(illegal.line)
        key = illegal.buffer
        claim = Claim("legality", key, key, line, UNDECIDED, "execution", executed=self._executed)
        return replace(claim, verdict=REFUTED, finding=finding)

    def _line(self, line: int) -> SourceLine:
        return SourceLine(self._snapshot.file, line or self._snapshot.line, bool(line))

    def _finding(self, problem: str, what: str, buffer: str, witness: Witness, stmt: Stmt | None) -> Finding:
        rule = rule_of(problem)
        return Finding(
            rule=rule.id,
            name=rule.name,
            title=rule.title,
            others=(),
            checkpoint=LOWERED,
            pass_name=self._snapshot.passes.get(LOWERED, ""),
            what=what,
            witness=witness,
            words=witness.words(buffer),
            pass_config=pass_config(rule.id, LOWERED, release_of(self._snapshot.toolchain)),
            excerpt=self._excerpt(stmt),
        )

    def _excerpt(self, stmt: Stmt | None) -> Excerpt | None:
        if stmt is None:
            return None
        text = render(self._snapshot.checkpoints[LOWERED])
        number = text.line_of(stmt)
        if not number:
            return None
        first = max(1, number - _BEFORE)
        return Excerpt(first, number, text.lines[first - 1 : number + _AFTER])


def _index(element: int, buffer: Buffer | None, sizes: dict[str, int]) -> tuple[int, ...]:
    """The logical index of an element of a row-major tensor; its number where the shape is not known."""
    if buffer is None or buffer.strides:
        return (element,)
    try:
        shape = [max(1, int(evaluated(e, sizes))) for e in buffer.shape]
    except NotModelled:
        return (element,)
    return tuple([element // prod(shape[axis + 1 :]) % size for axis, size in enumerate(shape)])
