"""What comes of one case for one target when the toolchain changes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tlcheck.facts import changes
from tlcheck.gate.classes import FAILS_IN_BOTH
from tlcheck.gate.compilation import compile_outcomes
from tlcheck.gate.device_outcomes import device_outcomes
from tlcheck.gate.outcome import Comparison, Outcome, Side
from tlcheck.gate.verdicts import verdict_outcomes
from tlcheck.toolchain.client import Failure

_SLOWER, _SECONDS = 2.0, 1.0  # lowering is slower by this factor, and by so many seconds: less is noise
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
_ATOMIC = ("atomic", "atomic count")


def outcomes(compared: Comparison, *, one_toolchain: bool) -> tuple[Outcome, ...]:
    """All differences, the worst first is up to the caller. one_toolchain: both sides are the same, and so must they be
    found.
    """
    before, after = compared.before, compared.after
    if before is None or after is None:
        return (_undeclared(compared),)
    return (
        *_static_outcomes(before, after, one_toolchain=one_toolchain),
        *device_outcomes(before, after, one_toolchain=one_toolchain),
    )


def _static_outcomes(before: Side, after: Side, *, one_toolchain: bool) -> Iterator[Outcome]:
    """What needs no GPU."""
    if before.facts is None or after.facts is None:
        yield from _failures(before, after)
    elif one_toolchain and before.digest != after.digest:
        yield _not_deterministic(before, after)
    else:
        yield from _checked(before, after)
        yield from _facts(before, after)
        yield from _seconds(before, after)
        yield from compile_outcomes(before.compiled, after.compiled, after.line)


def _undeclared(compared: Comparison) -> Outcome:
    there, words = ("before", "no longer declared") if compared.after is None else ("after", "declared only now")
    return Outcome("changed", "declaration", there, words, f"the case is {words}")


def _failures(before: Side, after: Side) -> Iterator[Outcome]:
    old, new = before.result.failure, after.result.failure
    if old is not None and new is not None:
        changed = "" if _first(old) == _first(new) else f"; before: {_first(old)}"
        words = f"{_phase(new)}: {_first(new)}{changed}"
        yield Outcome(FAILS_IN_BOTH, "error", _general(old), _general(new), words, detail=new.detail)
    elif new is not None:
        expected = "; the case expects it of this release" if after.result.excuse is not None else ""
        words = f"fails now, {_phase(new)}: {_first(new)}{expected}"
        yield Outcome("broken", "error", "lowers", _general(new), words, line=before.line, detail=new.detail)
    elif old is not None:
        words = f"lowers now; before, {_phase(old)}: {_first(old)}"
        yield Outcome("fixed", "error", _general(old), "lowers", words, line=after.line, detail=old.detail)
        yield from (o for o in verdict_outcomes((), after.result.atomics) if o.klass == "wrong")


def _checked(before: Side, after: Side) -> Iterator[Outcome]:
    """Verdicts; a kernel that lowers and whose atomics cannot be read is not checked."""
    old, new = before.result.failure, after.result.failure
    if new is None:
        yield from verdict_outcomes(before.result.atomics, after.result.atomics)
    elif old is not None:
        words = f"not checked: {_first(new)}"
        yield Outcome(FAILS_IN_BOTH, "not checked", _general(old), _general(new), words, line=after.line)
    else:
        words = f"could be checked, and cannot now: {_first(new)}"
        yield Outcome("weaker", "not checked", "checked", _general(new), words, line=after.line, detail=new.detail)
    if old is not None and new is None:
        yield Outcome("fixed", "not checked", _general(old), "checked", f"can be checked now; before: {_first(old)}")


def _facts(before: Side, after: Side) -> Iterator[Outcome]:
    """Other atomics than before belong to the fix where those before were wrong and these are right."""
    assert before.facts is not None
    assert after.facts is not None
    lines = {atomic.buffer: atomic.source.number for atomic in after.result.atomics}
    righted = {o.subject for o in verdict_outcomes(before.result.atomics, after.result.atomics) if o.klass == "fixed"}
    buffers = {buffer.name for side in (before.facts, after.facts) for buffer in side.buffers}
    for change in changes(before.facts, after.facts):
        subjects = change.subject.split(", ")
        klass = "slower-risk" if change.slower else "changed"
        if change.kind in _ATOMIC and righted.issuperset(subjects):
            klass = "fixed"
        line = next((lines[s] for s in subjects if s in lines and change.kind in _ATOMIC), after.line)
        subject = change.subject if buffers.issuperset(subjects) else ""
        yield Outcome(klass, change.kind, change.before, change.after, change.words, subject, line)


def _seconds(before: Side, after: Side) -> Iterator[Outcome]:
    old, new = before.seconds, after.seconds
    if old and new >= old * _SLOWER and new - old >= _SECONDS:
        words = f"lowering takes {new / old:.1f} times as long: {old:.1f} s -> {new:.1f} s of processor time"
        yield Outcome("slower-risk", "lowering time", "", "lowering takes much longer", words, line=after.line)


def _not_deterministic(before: Side, after: Side) -> Outcome:
    assert before.facts is not None
    assert after.facts is not None
    first = next((change.words for change in changes(before.facts, after.facts)), "only the text of the IR differs")
    words = f"not deterministic: lowered twice with one toolchain, it differs ({first})"
    return Outcome("changed", "not deterministic", "", "not deterministic", words, line=after.line)


def _phase(failure: Failure) -> str:
    return f"{failure.phase} ({failure.kind})" if failure.kind != "exception" else failure.phase


def _first(failure: Failure) -> str:
    return failure.message.partition("\n")[0]


def _general(failure: Failure) -> str:
    """The error without what differs from kernel to kernel."""
    return f"{failure.phase}: {_NUMBER.sub('N', _first(failure))}"
