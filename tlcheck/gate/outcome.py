"""What can come of one case for one target when the toolchain changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tlcheck.facts import Facts
from tlcheck.gate.classes import CLASSES, SAME
from tlcheck.gate.compiler import Compiled
from tlcheck.run.results import DeviceResult
from tlcheck.verdicts.claim import Finding
from tlcheck.verdicts.results import Result


@dataclass(frozen=True, slots=True)
class Outcome:
    """One difference between the two sides.

    kind: what differs: `error`, `lowering time`, a rule's id, or a kind of `facts.Change`. before, after: in words that
    are equal for equal differences of different kernels. subject: a buffer, or empty. words: the whole sentence.
    line: in the kernel's file. finding: what refutes the atomic now. accepted: the reason, if the project accepts it.
    """

    klass: str
    kind: str
    before: str
    after: str
    words: str
    subject: str = ""
    line: int = 0
    detail: str = ""
    finding: Finding | None = None
    accepted: str = ""

    @property
    def id(self) -> str:
        """What an acceptance names: `slower-risk/atomic`."""
        return f"{self.klass}/{self.kind}".replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Side:
    """One case for one target, lowered with one toolchain and checked.

    facts: None where it did not lower. seconds: of processor time for building and lowering; 0 where unknown. line:
    where the kernel begins, in `file`. snapshot, digest: its file and hash. compiled: by nvcc, and device: what a GPU
    shows, None where that was not asked for.
    """

    result: Result
    facts: Facts | None = None
    seconds: float = 0.0
    line: int = 0
    digest: str = ""
    file: str = ""
    compiled: Compiled | None = None
    snapshot: Path | None = None
    device: DeviceResult | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One case for one target. before, after: None where the file does not declare it for that toolchain.

    captured: whether this is a kernel of a script, which compiles it instead of declaring it.
    """

    file: str
    name: str
    target: str
    before: Side | None
    after: Side | None
    outcomes: tuple[Outcome, ...] = ()
    captured: bool = False

    @property
    def source(self) -> str:
        """The file that lines of outcomes are of: a kernel may be of a module that its file imports."""
        sides = (side.file for side in (self.after, self.before) if side is not None)
        return next(filter(None, sides), self.file)

    @property
    def case(self) -> str:
        return f"{self.file}::{self.name}" if self.name else self.file

    @property
    def classes(self) -> list[str]:
        """The classes of what is not accepted, the worst first; `same` where there is nothing."""
        found = {outcome.klass for outcome in self.outcomes if not outcome.accepted}
        return [klass for klass in CLASSES if klass in found] or [SAME]

    @property
    def klass(self) -> str:
        """The worst class that is not accepted."""
        return self.classes[0]
