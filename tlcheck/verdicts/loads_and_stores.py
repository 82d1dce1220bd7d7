"""Atomic loads and stores: they add nothing that could be proved, but the device library may do something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlcheck.lower.runs import release_of
from tlcheck.program.atomics import PlainAtomic
from tlcheck.program.device_library import LOST, OK, REFUSED, STOPS, WRONG
from tlcheck.program.instructions import Instruction
from tlcheck.program.lines import nearest_line
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.reasons import UNREAD_ATOMIC, Reason
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.verdicts.claim import REFUTED, UNDECIDED, Claim, Finding
from tlcheck.verdicts.excerpts import excerpt, line_of, source_line
from tlcheck.verdicts.remedies import pass_config
from tlcheck.verdicts.rules.library import said, unmeasured
from tlcheck.verdicts.rules.rule import rules
from tlcheck.witness import Accesses, Act

_LAST = Checkpoint.DEVICE_TIR
_RULES = {REFUSED: "TLA013", STOPS: "TLA004", LOST: "TLA010", WRONG: "TLA014"}


def claims(of: PreparedSnapshot) -> Iterator[Claim]:
    """Claims about the loads and stores that the device library has wrong, or of which that is not known.

    One for those of a buffer that are of one kind and line.
    """
    seen = set[tuple[str, str, int]]()
    source_lines = {_key(found): found.stmt.line for found in _at(of, of.reference)}
    for found in _at(of, _LAST):
        line = nearest_line(of.snapshot.checkpoints[_LAST], found.stmt) or source_lines.get(_key(found), 0)
        made = of.plain_instruction(found)
        known = made.behaviour is not None and made.behaviour.verdict == OK
        if not known and (found.operation, found.root, line) not in seen:
            seen.add((found.operation, found.root, line))
            yield _claim(of, found, made, line)


def not_judged(of: PreparedSnapshot, judged: Sequence[Claim]) -> Iterator[str]:
    """Say of each atomic load and store as written that no claim is about where it is, and what is known of it."""
    keys, seen = {claim.key for claim in judged}, dict[str, None]()
    for found in _at(of, of.reference):
        if _key(found) not in keys:
            what = f"atomic {found.operation} {'of' if found.operation == 'load' else 'to'} {found.root or '?'}"
            seen[f"{what}, {source_line(of.snapshot, found.stmt.line).words}"] = None
    yield from (f"{what}: adds nothing that could be proved; executed outputs show what comes of it" for what in seen)


def _at(of: PreparedSnapshot, checkpoint: str) -> Sequence[PlainAtomic]:
    return of.found[checkpoint].plain if checkpoint in of.found else ()


def _key(found: PlainAtomic) -> str:
    return f"{found.root or '?'} {found.operation}"


def _claim(of: PreparedSnapshot, found: PlainAtomic, made: Instruction, line: int) -> Claim:
    name, where = found.root or "?", source_line(of.snapshot, line)
    if made.behaviour is None:
        reason = Reason(UNREAD_ATOMIC, f"the arguments of {found.instruction} are not understood")
        reason = reason if made.call is None else unmeasured(of, made.call)
        return Claim("atomic", _key(found), name, where, UNDECIDED, "proof", call=found.instruction).because(reason)
    finding = _finding(of, found, made, line)
    return Claim("atomic", _key(found), name, where, REFUTED, "proof", call=found.instruction, finding=finding)


def _finding(of: PreparedSnapshot, found: PlainAtomic, made: Instruction, line: int) -> Finding:
    """Return what the library does instead; the witness is the call itself, which a person can compile."""
    assert made.behaviour is not None
    rule = next(rule for rule in rules() if rule.id == _RULES[made.behaviour.verdict])
    act = Act(f"call of {found.instruction}", (), line=line_of(of.snapshot, _LAST, found.stmt), source=line, at=_LAST)
    witness = Accesses((), act)
    return Finding(
        rule=rule.id,
        name=rule.name,
        title=rule.title,
        others=(),
        checkpoint=_LAST,
        pass_name=of.snapshot.pass_at(_LAST),
        what=f"{found.instruction} {said(of, made)}",
        witness=witness,
        words=witness.words(found.root),
        pass_config=pass_config(rule.id, _LAST, release_of(of.snapshot.toolchain)),
        excerpt=excerpt(of.snapshot, _LAST, found.stmt),
    )
