"""Find what comes of one case for one target when the toolchain changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tlcheck.cost.occupancy import resident_blocks
from tlcheck.cost.risen_cost import USUAL, Threshold, line_of_access, risen
from tlcheck.facts import Change, changes
from tlcheck.gate.device_outcomes import device_outcomes
from tlcheck.gate.lost_synchronization import guarded, unordered
from tlcheck.gate.nvcc import CompiledCuda
from tlcheck.gate.outcome import FAILS_IN_BOTH, UNSEEN, LoweredPair, LoweredSide, Outcome
from tlcheck.gate.source_outcomes import source_outcomes
from tlcheck.gate.support import support_in_words
from tlcheck.gate.verdict_outcomes import all_claims, verdict_outcomes
from tlcheck.lower.runs import line_of, near
from tlcheck.targets.lookup import target
from tlcheck.worker.protocol import Failure

_SLOWER, _SECONDS = 2.0, 1.0  # lowering is slower by this factor, and by so many seconds: less is noise
_COMPILING = 5.0  # seconds that nvcc takes longer: on a busy machine less is noise
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
_ATOMIC = ("atomic", "atomic count")


def outcomes(compared: LoweredPair, *, one_toolchain: bool, threshold: Threshold = USUAL) -> tuple[Outcome, ...]:
    """All differences, the worst first is up to the caller. one_toolchain: both sides are the same, and so must they be
    found. threshold: of costs that have risen.
    """
    before, after = compared.before, compared.after
    if before is None or after is None:
        return tuple(_undeclared(compared))
    return (
        *source_outcomes(compared),
        *_static_outcomes(before, after, threshold, one_toolchain=one_toolchain),
        *device_outcomes(before, after, one_toolchain=one_toolchain),
    )


def _static_outcomes(
    before: LoweredSide, after: LoweredSide, threshold: Threshold, *, one_toolchain: bool
) -> Iterator[Outcome]:
    """Yield what needs no GPU."""
    if before.facts is None or after.facts is None:
        yield from _failures(before, after)
    elif one_toolchain and before.digest != after.digest:
        assert before.facts is not None
        assert after.facts is not None
        first = next((change.words for change in changes(before.facts, after.facts)), "only the text of the IR differs")
        words = f"not deterministic: lowered twice with one toolchain, it differs ({first})"
        yield Outcome("changed", "not deterministic", "", "not deterministic", words, line=after.line)
    else:
        yield from _checked(before, after)
        yield from _facts(before, after)
        yield from _costs(before, after, threshold)
        old, new = before.seconds, after.seconds
        if old and new >= old * _SLOWER and new - old >= _SECONDS:
            words = f"lowering takes {new / old:.1f} times as long: {old:.1f} s -> {new:.1f} s of processor time"
            yield Outcome("slower-risk", "lowering time", "", "lowering takes much longer", words, line=after.line)
        yield from _occupancy(before, after)
        compiled = compile_outcomes(before.compiled, after.compiled, after.line)
        yield from (_supported(outcome, outcome.subject, before, after) for outcome in compiled)


def _supported(outcome: Outcome, about: str, before: LoweredSide, after: LoweredSide) -> Outcome:
    """Add what the claims say about it. about: the buffers."""
    if outcome.klass not in ("changed", "slower-risk"):
        return outcome
    return replace(outcome, claims=support_in_words(about, before.claims, after.claims))


def _undeclared(compared: LoweredPair) -> Iterator[Outcome]:
    """A case of one side only. An atomic that is refuted in a new one is wrong all the same."""
    gone = compared.after is None
    what, does = ("kernel", "compiled by the script") if compared.captured else ("case", "declared")
    words = f"no longer {does}" if gone else f"{does} only now"
    yield Outcome("changed", "declaration", "before" if gone else "after", words, f"the {what} is {words}")
    old, new = compared.specializations
    if not gone and 0 < old < new:
        words = f"the script compiles {new} kernels of this function, {old} before: each is compiled by itself"
        yield Outcome("slower-risk", "specializations", "", "more specializations", words)
    if compared.after is not None:
        yield from _refuted(compared.after)


def _refuted(after: LoweredSide) -> Iterator[Outcome]:
    """Yield what is wrong in a kernel that was not there before."""
    return (outcome for outcome in verdict_outcomes((), after.claims) if outcome.klass in ("wrong", "hazard"))


def _failures(before: LoweredSide, after: LoweredSide) -> Iterator[Outcome]:
    old, new = before.result.failure, after.result.failure
    line = before.line or (line_of(after.result.run, new) if new is not None else 0)
    if old is not None and new is not None:
        changed = "" if _first(old) == _first(new) else f"; before: {_first(old)}"
        words = f"{_said(new)}{changed}"
        yield Outcome(FAILS_IN_BOTH, "error", _general(old), _general(new), words, line=line, detail=new.detail)
    elif new is not None and new.kind == UNSEEN:
        words = f"could be captured, and is not now: {_said(new)}"
        yield Outcome("changed", UNSEEN, "captured", _general(new), words, line=line, detail=new.detail)
    elif new is not None:
        expected = "; the case expects it of this release" if after.expected else ""
        words = f"fails now, {_said(new)}{expected}"
        yield Outcome("broken", "error", "lowers", _general(new), words, line=line, detail=new.detail)
    elif old is not None:
        klass = "changed" if old.kind == UNSEEN else "fixed"
        words = f"lowers now; before, {_said(old)}"
        yield Outcome(klass, "error", _general(old), "lowers", words, line=after.line, detail=old.detail)
        yield from _refuted(after)


def _checked(before: LoweredSide, after: LoweredSide) -> Iterator[Outcome]:
    """Verdicts; a kernel that lowers and whose atomics cannot be read is not checked."""
    old, new = before.result.failure, after.result.failure
    if new is None:
        yield from verdict_outcomes(before.claims, after.claims)
    elif old is not None:
        words = f"not checked: {_first(new)}"
        yield Outcome(FAILS_IN_BOTH, "not checked", _general(old), _general(new), words, line=after.line)
    else:
        words = f"could be checked, and cannot now: {_first(new)}"
        yield Outcome("weaker", "not checked", "checked", _general(new), words, line=after.line, detail=new.detail)
    if old is not None and new is None:
        yield Outcome("fixed", "not checked", _general(old), "checked", f"can be checked now; before: {_first(old)}")


def _facts(before: LoweredSide, after: LoweredSide) -> Iterator[Outcome]:
    """Other atomics than before belong to the fix where those before were wrong and these are right."""
    assert before.facts is not None
    assert after.facts is not None
    lines = {claim.buffer: claim.source.line for claim in after.claims if claim.kind == "atomic"}
    righted = {o.subject for o in verdict_outcomes(before.claims, after.claims) if o.klass == "fixed"}
    buffers = {buffer.name for side in (before.facts, after.facts) for buffer in side.buffers}
    for change in changes(before.facts, after.facts):
        subjects = change.subject.split(", ")
        klass, words = "slower-risk" if change.slower else "changed", change.words
        if change.takes_away:
            left = unordered(change, before.facts, after.facts, all_claims(after.claims))
            if left:
                klass = "sync-risk"
                words = f"{words}; the order {left if left.startswith('of ') else f'of {left}'} is not decided now"
        if change.kind in _ATOMIC and righted.issuperset(subjects):
            klass = "fixed"
        line = next((lines[s] for s in subjects if s in lines and change.kind in _ATOMIC), 0)
        line = line or _line_in_cost(change, after) or after.line
        subject = change.subject if buffers.issuperset(subjects) else ""
        guards = ", ".join(sorted(guarded(before.facts, after.facts))) if change.kind == "barrier" else subject
        found = Outcome(klass, change.kind, change.before, change.after, words, subject, line)
        yield _supported(found, guards, before, after)


def _line_in_cost(change: Change, after: LoweredSide) -> int:
    """The line of the accesses or products that are slower; 0 where that is not known."""
    cost, kind = after.result.cost, change.kind.removesuffix(" count")
    if cost is None or not change.slower or kind not in ("read", "write", "atomic", "tensor cores"):
        return 0
    return line_of_access(cost, kind, "" if kind == "tensor cores" else change.subject)


def _costs(before: LoweredSide, after: LoweredSide, threshold: Threshold) -> Iterator[Outcome]:
    """Yield what the accesses themselves cost, counted by execution on both sides."""
    old, new = before.result.cost, after.result.cost
    if old is None or new is None or (old.of, old.sizes) != (new.of, new.sizes):
        return
    for change in risen(old, new, threshold):
        line = change.line or after.line
        yield Outcome("slower-risk", change.kind, change.before, change.after, change.words, change.subject, line)


def _said(failure: Failure) -> str:
    """Return what failed, and for what is run also where: the line of an error in a compiler says less."""
    plain = failure.kind in ("exception", UNSEEN)
    phase = failure.phase if plain else f"{failure.phase} ({failure.kind})"
    where = f" ({near(failure.where)})" if failure.where and failure.phase == "run" else ""
    return f"{phase}: {_first(failure)}{where}"


def _first(failure: Failure) -> str:
    return failure.message.partition("\n")[0]


def _general(failure: Failure) -> str:
    """The error without what differs from kernel to kernel."""
    return f"{failure.phase}: {_NUMBER.sub('N', _first(failure))}"


def _occupancy(before: LoweredSide, after: LoweredSide) -> Iterator[Outcome]:
    """Blocks on a multiprocessor by what nvcc says; where it did not run, costs tell of shared memory and threads."""
    one, other = _resident(before), _resident(after)
    if one is None or other is None or other[0] >= one[0] or other[1] != "registers":
        return
    assert before.facts is not None
    assert after.facts is not None
    if bool(before.facts.shared_bytes) != bool(after.facts.shared_bytes):
        return  # of a release that does not say how much shared memory there is
    words = f"at most {other[0]} instead of {one[0]} blocks fit on a multiprocessor, by {other[1]}"
    yield Outcome("slower-risk", "occupancy", "", "fewer blocks", words, line=after.line)


def _resident(side: LoweredSide) -> tuple[int, str] | None:
    """Return how many blocks fit, and what limits them; None where nvcc did not compile the kernel."""
    compiled, facts = side.compiled, side.facts
    if compiled is None or compiled.error or facts is None or not facts.threads:
        return None
    shared = max(compiled.shared, facts.shared_bytes)
    return resident_blocks(target(side.result.run.target), facts.threads, shared, compiled.registers)


def compile_outcomes(before: CompiledCuda | None, after: CompiledCuda | None, line: int) -> Iterator[Outcome]:
    """None where it was not compiled."""
    if before is None or after is None:
        return
    if before.error or after.error:
        if before.error and after.error:
            words = f"nvcc, with both toolchains: {after.error}"
            yield Outcome(FAILS_IN_BOTH, "compile", "", "does not compile", words, line=line)
        elif after.error:
            words = f"the generated CUDA no longer compiles: {after.error}"
            yield Outcome("broken", "compile", "compiles", "does not compile", words, line=line)
        else:
            words = f"the generated CUDA compiles now; before: {before.error}"
            yield Outcome("fixed", "compile", "does not compile", "compiles", words, line=line)
        return
    if before.spills != after.spills:
        klass, more = ("slower-risk", "more") if after.spills > before.spills else ("changed", "fewer")
        words = f"ptxas: {before.spills} -> {after.spills} bytes of spills in a thread"
        yield Outcome(klass, "spills", "", f"{more} spills", words, line=line)
    if before.seconds and after.seconds >= before.seconds * _SLOWER and after.seconds - before.seconds >= _COMPILING:
        times = after.seconds / before.seconds
        words = f"nvcc takes {times:.1f} times as long: {before.seconds:.1f} s -> {after.seconds:.1f} s"
        yield Outcome("slower-risk", "compile time", "", "nvcc takes much longer", words, line=line)
    yield from _amount("ptxas registers", before.registers, after.registers, line)
    yield from _amount("ptxas shared memory", before.shared, after.shared, line)


def _amount(kind: str, old: int, new: int, line: int) -> Iterator[Outcome]:
    if old != new:
        yield Outcome(
            "changed", kind, "", f"{'more' if new > old else 'fewer'} {kind}", f"{kind}: {old} -> {new}", line=line
        )
