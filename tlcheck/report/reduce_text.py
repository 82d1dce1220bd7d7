"""The smallest kernel with a finding, as a Python file that says at its top what is wrong in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from tlcheck.remedy.reducing import Reduced
from tlcheck.verdicts.claim import Claim


def write(file: TextIO, found: Reduced) -> None:
    """Write what is wrong as comments, and the kernel."""
    file.write("".join(f"# {line}\n" for line in _comments(found)) + found.text)


def _comments(found: Reduced) -> Iterator[str]:
    claim, run = found.claim_after or found.claim, found.result.run
    assert claim.finding is not None
    history = claim.finding.history
    words = f"; {history.words}" if history is not None and history.words else ""
    guilty = f", {found.pass_name}" if found.pass_name else ""
    yield f"TileLang {run.release}{guilty}, {run.target}: {claim.words}{words}"
    yield from _origin(claim)
    yield f"from {run.case}: {found.lines[0]} -> {found.lines[1]} lines" + ("" if found.after else " (interrupted)")


def _origin(claim: Claim) -> Iterator[str]:
    if claim.finding is not None:
        yield claim.finding.witness.words(claim.buffer)
