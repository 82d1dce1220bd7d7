"""Define what can come of one case for one target when the toolchain changes, and which of it a project accepts.

The id of an accepted entry is a class (`slower-risk`), a class and what differs (`slower-risk/atomic`), or the rule
that refutes an atomic (`TLA001`); its releases are those of the new toolchain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tlcheck.facts import Facts
from tlcheck.gate.nvcc import CompiledCuda
from tlcheck.lower.runs import MadeInputs
from tlcheck.run.device_results import DeviceResult
from tlcheck.verdicts.acceptance import Acceptance, Acceptances
from tlcheck.verdicts.claim import Claim, Finding
from tlcheck.verdicts.results import Result
from tlcheck.witness import indexed
from tlcheck.worker.protocol import Failure

# From the worst to the best; each outcome belongs to one, a comparison to the worst of its outcomes.
CLASSES: Mapping[str, str] = {
    "wrong": "a claim is newly refuted, or a kernel newly fails on the device or differs from its reference",
    "hazard": "an order is newly refuted, by a rule of the manual alone: no value was wrong",
    "weaker": "a proved or agreed claim is now undecided, or the file builds a kernel with other outputs",
    "broken": "a kernel no longer imports, builds, lowers, compiles or runs",
    "sync-risk": "a barrier, wait or fence is gone, and the order of the accesses there is not decided",
    "slower-risk": "the kernel asks for more work than before, or takes much longer to lower",
    "changed": "the kernel differs in another way",
    "fixed": "a claim is now right, or a kernel now lowers or passes on the device",
    "fails-in-both": "a kernel fails with both toolchains",
    "same": "no difference was found",
}
DEFAULT_FAILING = ("wrong", "hazard", "weaker", "broken", "sync-risk")
SAME, FAILS_IN_BOTH = "same", "fails-in-both"
UNSEEN = "capture"  # kind of failure: a script could not go on without a GPU, which says nothing of the kernel


@dataclass(frozen=True, slots=True)
class Outcome:
    """One difference between the two sides.

    kind: what differs: `error`, `lowering time`, a rule's id, or a kind of `facts.Change`. before, after: in words that
    are equal for equal differences of different kernels. subject: a buffer, or empty. words: the whole sentence.
    line: in the kernel's file. finding: what refutes the atomic now. accepted: why the project accepts it, if it does.
    claims: what the claims say about it, where it is no claim itself.
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
    accepted: str | None = None
    claims: str = ""

    @property
    def id(self) -> str:
        """Return what an acceptance names: `slower-risk/atomic`."""
        return f"{self.klass}/{self.kind}".replace(" ", "-")

    @property
    def rule(self) -> str | None:
        """The rule that refutes a claim now, if one does."""
        return self.finding.rule if self.finding is not None else None


@dataclass(frozen=True, slots=True)
class LoweredSide:
    """One case for one target, lowered with one toolchain and checked.

    facts: None where it did not lower. seconds: of processor time for building and lowering; 0 where unknown. line:
    where the kernel begins, in `file`. snapshot, digest: its file and hash. compiled: by nvcc, and device: what a GPU
    shows, None where that was not asked for. inputs: the case's own.
    """

    result: Result
    facts: Facts | None = None
    seconds: float = 0.0
    line: int = 0
    digest: str = ""
    file: str = ""
    compiled: CompiledCuda | None = None
    snapshot: Path | None = None
    device: DeviceResult | None = None
    inputs: MadeInputs | None = None

    @property
    def failure(self) -> Failure | None:
        """Return why the kernel was not lowered or checked, if it was not."""
        return self.result.failure

    @property
    def expected(self) -> bool:
        """Whether the case expects the failure."""
        return self.result.excuse is not None

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of the lowered kernel."""
        return self.result.claims


AGREES, DIFFERS = "agrees", "differs"  # what a source kernel does with its reference


@dataclass(frozen=True, slots=True)
class OtherKernel:
    """The first element of which the sources leave two values: `expected` before, `got` now.

    count: of the elements that differ, on the inputs of this seed. before, after: `agrees` or `differs`, of either side
    and the case's reference; otherwise there is none, or it says nothing. open: why they could not be compared; then
    there is no such element.
    """

    buffer: str
    index: tuple[int, ...]
    expected: str
    got: str
    seed: int
    count: int
    before: str = ""
    after: str = ""
    open: str = ""

    @property
    def words(self) -> str:
        """`C[0, 0] is 2.0, was 1.0 (inputs of seed 0; 8 elements differ)`; or why the kernels were not compared."""
        if self.open:
            what = "its blocks have other parts of the work, and to compare all of them takes more than is allowed"
            return f"{what} ({self.open}): --blocks all"
        element = indexed(self.buffer, self.index)
        said = f"as written {element} is {self.got}, was {self.expected}"
        return f"{said} (inputs of seed {self.seed}; {self.count} elements differ)"

    @property
    def judgement(self) -> str:
        """Return what the reference says, in words."""
        if not self.before or not self.after or "undecided" in (self.before, self.after):
            return "no reference says which is right"
        if self.before == self.after:
            return "both agree with the reference" if self.after == AGREES else "both differ from the reference"
        now = "it agrees with the reference now, and did not"
        return now if self.after == AGREES else "it agreed with the reference, and does not now"


@dataclass(frozen=True, slots=True)
class LoweredPair:
    """One case for one target. before, after: None where the file does not declare it for that toolchain.

    captured: whether this is a kernel of a script, which compiles it instead of declaring it. traced: how the
    sources differ, None where they do not, or where that was not asked or cannot be told. specializations: how many
    kernels the script compiles of this one's function, with each toolchain, where it runs as far with both.
    """

    file: str
    name: str
    target: str
    before: LoweredSide | None
    after: LoweredSide | None
    outcomes: tuple[Outcome, ...] = ()
    captured: bool = False
    traced: OtherKernel | None = None
    specializations: tuple[int, int] = (0, 0)

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


def accepted(compared: LoweredPair, acceptances: Acceptances, versions: Mapping[str, str]) -> LoweredPair:
    """Add the reasons for what is accepted. versions: of the new toolchain."""
    ours = [entry for entry in acceptances.entries if _concerns(entry, compared, acceptances, versions)]
    return replace(compared, outcomes=tuple(_settled(outcome, ours) for outcome in compared.outcomes))


def unused(comparisons: Sequence[LoweredPair], acceptances: Acceptances, versions: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each entry of the gate's that is about a case that was compared, and matches nothing."""
    for entry in acceptances.entries:
        if entry.id.partition("/")[0] not in CLASSES:
            continue
        ours = [compared for compared in comparisons if _concerns(entry, compared, acceptances, versions)]
        if ours and not any(_names(entry, outcome) for compared in ours for outcome in compared.outcomes):
            yield f"acceptance of {entry.id} in {entry.case} ({entry.releases}) matches nothing: remove it"


def _concerns(entry: Acceptance, compared: LoweredPair, acceptances: Acceptances, versions: Mapping[str, str]) -> bool:
    """A case that is gone is known from before."""
    side = compared.after or compared.before
    if side is None or not versions:
        return False
    run = replace(side.result.run, name=compared.name, versions=versions)
    return entry.concerns(run, acceptances.folder)


def _settled(outcome: Outcome, ours: Sequence[Acceptance]) -> Outcome:
    reason = next((entry.reason for entry in ours if _names(entry, outcome)), None)
    return replace(outcome, accepted=reason) if reason else outcome


def _names(entry: Acceptance, outcome: Outcome) -> bool:
    return entry.id in (outcome.klass, outcome.id, outcome.rule)
