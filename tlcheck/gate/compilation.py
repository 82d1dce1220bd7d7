"""What differs in what nvcc made of the CUDA of two toolchains."""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.gate.classes import FAILS_IN_BOTH
from tlcheck.gate.compiler import Compiled
from tlcheck.gate.outcome import Outcome


def compile_outcomes(before: Compiled | None, after: Compiled | None, line: int) -> Iterator[Outcome]:
    """None where it was not compiled."""
    if before is None or after is None:
        return
    if before.error or after.error:
        yield from _errors(before, after, line)
        return
    if before.spills != after.spills:
        klass, more = ("slower-risk", "more") if after.spills > before.spills else ("changed", "fewer")
        words = f"ptxas: {before.spills} -> {after.spills} bytes of spills in a thread"
        yield Outcome(klass, "spills", "", f"{more} spills", words, line=line)
    yield from _amount("ptxas registers", before.registers, after.registers, line)
    yield from _amount("ptxas shared memory", before.shared, after.shared, line)


def _errors(before: Compiled, after: Compiled, line: int) -> Iterator[Outcome]:
    if before.error and after.error:
        words = f"nvcc, with both toolchains: {after.error}"
        yield Outcome(FAILS_IN_BOTH, "compile", "", "does not compile", words, line=line)
    elif after.error:
        words = f"the generated CUDA no longer compiles: {after.error}"
        yield Outcome("broken", "compile", "compiles", "does not compile", words, line=line)
    else:
        words = f"the generated CUDA compiles now; before: {before.error}"
        yield Outcome("fixed", "compile", "does not compile", "compiles", words, line=line)


def _amount(kind: str, old: int, new: int, line: int) -> Iterator[Outcome]:
    if old != new:
        yield Outcome(
            "changed", kind, "", f"{'more' if new > old else 'fewer'} {kind}", f"{kind}: {old} -> {new}", line=line
        )
