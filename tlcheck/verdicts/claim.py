"""The one shape from judgement to report: a claim is one thing that must hold of a kernel, with its verdict.

Reports write these classes as they are: their fields are the fields of the JSON, their docstrings its descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tlcheck.reasons import DEVICE, ENUMERATION, OTHER_FORM, UNSAID, VALUE_UNREAD, Reason, told
from tlcheck.scope.claim_scope import ClaimScope
from tlcheck.witness import Witness

Kind = Literal["atomic", "output", "order", "legality", "source"]
Verdict = Literal["proved", "agreed", "refuted", "undecided"]
Basis = Literal["proof", "execution", "device"]
Blame = Literal["compiler", "author"]
Weight = Literal["error", "hazard"]
OriginKind = Literal[
    "overwritten",
    "early",
    "late",
    "unwritten",
    "unguarded",
    "other-index",
    "other-operand",
    "repeated",
    "incomplete",
    "rounded",
    "other-value",
    "unordered",
    "illegal",
]
PassRole = Literal["breaks", "may-break", "orders"]
Status = Literal["same", "different", "undecided"]

_LETTERS: Mapping[str, Kind] = {"A": "atomic", "O": "output", "R": "order", "L": "legality", "S": "source"}

PROVED: Verdict = "proved"
AGREED: Verdict = "agreed"
REFUTED: Verdict = "refuted"
UNDECIDED: Verdict = "undecided"


def kind_of(rule: str) -> Kind | None:
    """The kind of claims that a rule is about, by its id; None for what is no rule."""
    return _LETTERS.get(rule[2:3])


@dataclass(frozen=True, slots=True)
class Excuse:
    """The reason why a finding or failure is shown but not counted against the kernel; `--strict` counts a warning."""

    kind: Literal["expected", "accepted", "warning"]
    reason: str


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's file, and the one above; empty if the file cannot be read.

    exact: whether it is the claim's own, else it is where the kernel begins; copied: or that of the only copy into the
    claim's buffer. line: 0 if unknown.
    """

    file: str
    line: int
    exact: bool
    text: str = ""
    above: str = ""
    copied: bool = False

    @property
    def words(self) -> str:
        """`FILE:LINE`, and that it is only where the kernel begins, or the buffer is copied into."""
        inexact = "the copy into it" if self.copied else "the kernel; the line is not known"
        return f"{self.file}:{self.line}" + ("" if self.exact else f" ({inexact})")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a function at a checkpoint, from number `first` on; `marked` is the one that matters."""

    first: int
    marked: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """A record of how a claim fared at one checkpoint, compared with the kernel as written."""

    checkpoint: str
    status: Status


@dataclass(frozen=True, slots=True)
class Executed:
    """The execution behind a verdict: some blocks of all, on some inputs.

    blocks: their indices; of: how many the grid has. inputs: their names. seeds: of each. dtypes: what numbers were
    computed as: `float64`, or `declared` for the kernel's own. sizes: chosen for the kernel's symbolic ones. unreached:
    source lines (0: unknown) of branches that were not taken and of loops that ended before their fourth iteration,
    where what is in memory decides that. also: other sizes, with which less was executed.
    """

    blocks: tuple[tuple[int, ...], ...]
    of: int
    inputs: tuple[str, ...]
    seeds: tuple[int, ...]
    dtypes: tuple[str, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)
    unreached: tuple[int, ...] = ()
    also: tuple[Mapping[str, int], ...] = ()

    @property
    def short(self) -> str:
        """`3 of 64 blocks, 2 inputs; not reached: line 162`."""
        return f"{len(self.blocks)} of {self.of} blocks, {self._on}"

    def reaching(self, *, all_blocks: bool, all_inputs: bool) -> str:
        """`all 64 blocks (3 ran), all inputs`: what holds beyond what was executed."""
        ran = len(self.blocks)
        blocks = f"all {self.of} blocks ({ran} ran)" if all_blocks and ran < self.of else f"{ran} of {self.of} blocks"
        return f"{blocks}, {'all inputs' if all_inputs else self._on}"

    @property
    def _on(self) -> str:
        count = len(self.seeds) or len(self.inputs)
        assumed = "; ".join(filter(None, (name.partition(", ")[2] for name in self.inputs)))
        inputs = f"{count} input{'' if count == 1 else 's'}" + (f" ({assumed})" if assumed else "")
        return f"{inputs}{self._left_out}"

    @property
    def words(self) -> str:
        """`3 of 64 blocks, n = 128, inputs random (seeds 0, 1), as float64; not reached: line 162`."""
        seeds = f" (seeds {', '.join(map(str, self.seeds))})" if self.seeds else ""
        inputs = f", inputs {', '.join(self.inputs)}{seeds}" if self.inputs else ""
        sizes = "".join(f", {name} = {size}" for name, size in self.sizes.items())
        others = ["and".join(f" {name} = {size} " for name, size in each.items()).strip() for each in self.also]
        inputs += "".join(f", also {other}" for other in others if other)
        dtypes = "float64" + (", one block also in the kernel's own types" if "declared" in self.dtypes else "")
        return f"{len(self.blocks)} of {self.of} blocks{sizes}{inputs}, as {dtypes}{self._left_out}"

    @property
    def _left_out(self) -> str:
        lines = sorted({line for line in self.unreached if line})
        if lines:
            return f"; not reached: line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
        count = len(self.unreached)
        return f"; {count} branch{'es' if count > 1 else ''} not reached" if count else ""


@dataclass(frozen=True, slots=True)
class FindingOrigin:
    """The first access, in execution order, in which lowered differs from source.

    kind: `overwritten`: by another buffer in the same memory, or by a write that comes once more; `early`: read while
    its copy is under way, or before the write that it needs; `late`: read after a write that comes later in the source;
    `unwritten`: never written; `unguarded`: written where a condition of the source does not hold; `other-index`:
    another element of the buffer; `other-operand`: an element of another buffer; `repeated`: so many times the right
    value; `incomplete`: terms are missing; `rounded`: to a narrower type than in the source; `other-value`: computed
    otherwise; `unordered`: two accesses that nothing orders; `illegal`: an access that the device does not allow.
    line: source line of the access, 0 if unknown. other_line: of the other access. buffers: those that are concerned,
    first the one that is accessed. words: the sentence. missing: what would order the two accesses.
    """

    kind: OriginKind
    line: int
    other_line: int
    buffers: tuple[str, ...]
    words: str
    missing: str = ""


@dataclass(frozen=True, slots=True)
class FindingHistory:
    """Since when something is wrong, and by which pass.

    right_in: the nearest installed releases that have it right, oldest first. wrong_in: those tried that have the
    kernel wrong too. open_in: those of which it is not known. proved: whether it is proved in each that has it right,
    and not only agrees in what was executed. pass_name: the first pass after which it is wrong, empty where that is not
    known. role: `breaks` where the TIR is right before that pass, `may-break` where an earlier one may be to blame,
    `orders` where it should have ordered two accesses. note: what else there is to say of the pass, such as passes
    before it that could not be executed.
    """

    right_in: tuple[str, ...]
    wrong_in: tuple[str, ...] = ()
    open_in: tuple[str, ...] = ()
    proved: bool = False
    pass_name: str = ""
    role: PassRole = "breaks"
    note: str = ""

    @property
    def words(self) -> str:
        """`right (agreed) in 0.1.8 and 0.1.11`, `wrong in 0.1.10 too`; empty where no release was tried."""
        parts = []
        if self.right_in:
            parts.append(f"right{'' if self.proved else ' (agreed)'} in {_listed(self.right_in)}")
        elif self.wrong_in:
            parts.append(f"wrong in {_listed(self.wrong_in)} too")
        if self.open_in:
            parts.append(f"not decided in {_listed(self.open_in)}")
        return "; ".join(parts)


def _listed(names: tuple[str, ...]) -> str:
    """`0.1.8, 0.1.9 and 0.1.10`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding that refutes a claim: one rule broken, at the earliest checkpoint and by the most basic rule.

    name, title: the rule's. others: ids of further rules broken in the same place. pass_name: the pass after which the
    checkpoint was taken. what: the sentence that says what is wrong. words: the witness in words. advice: what to do
    besides changing the release. pass_config: the `PassConfigKey` that avoids it when True, empty if none is known to.
    right_from: the first later release that has it right, where the case says so. layout: index map of the buffer,
    empty without one. excerpt: the TIR around it; None where it is gone. skipped: checkpoints before this one that
    could not be executed, with the reason: one of them may be the first. origin: where it begins; None if that is not
    known for certain. blame: `compiler` where the source is well defined and the lowered kernel differs from it,
    `author` where the source itself is at fault. weight: `error` where values are wrong, or the device hangs or stops;
    `hazard` where a rule of the manual is broken, and no value was wrong in any schedule that was tried.
    history: None where nobody looked for it. blocks, seeds: which show it alone; empty where any may.
    """

    rule: str
    name: str
    title: str
    others: tuple[str, ...]
    checkpoint: str
    pass_name: str
    what: str
    witness: Witness
    words: str
    advice: str = ""
    pass_config: str = ""
    right_from: str = ""
    layout: str = ""
    excerpt: Excerpt | None = None
    skipped: tuple[str, ...] = ()
    origin: FindingOrigin | None = None
    blame: Blame = "compiler"
    weight: Weight = "error"
    history: FindingHistory | None = None
    blocks: tuple[tuple[int, int, int], ...] = ()
    seeds: tuple[int, ...] = ()

    def blamed(self, release: str) -> str:
        """`your kernel`; `TileLang 0.1.9, tl.InjectSoftwarePipeline`: who is to blame. release: TileLang's."""
        if self.blame == "author":
            return "your kernel"
        return f"TileLang {release}" + (f", {self.pass_name}" if self.pass_name else "")

    @property
    def place(self) -> str:
        """`at vectorize-loop, after tl.VectorizeLoop`, and what was skipped on the way there."""
        is_race = self.origin is not None and self.origin.kind == "unordered"  # which is sought at the end alone
        after = f", after {self.pass_name}" if self.pass_name and not is_race else ""
        return f"at {self.checkpoint}{after}" + (f"; not executed: {', '.join(self.skipped)}" if self.skipped else "")


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that must hold of a case and target, and its verdict.

    An atomic adds what is written, an output is what was written, accesses are in order, an access is legal, the source
    itself is well defined: it does not race with itself, stays in bounds, and sets what it reads.

    key: what it is called in every release, among claims of its kind; several may share it, in program order. buffer:
    the atomic's destination, the output, the buffer accessed; `?` where it could not be read. basis: what the verdict
    rests on. stages: checkpoint by checkpoint, in pipeline order. call: an atomic's spelling as written, or the
    operator at which the source is at fault; instructions: what it became at the last checkpoint. reason: why it is
    undecided, else empty. also: refuted claims that this one explains, and outputs of which nothing is known because of
    it; they are excused with it and count with it as one. executed: what the verdict is of; for a proved atomic, the
    execution in which its content agreed: what it reads is there in time and is what was written. None where nothing
    was executed or decided: of a proved atomic then only the additions are known. not_source: why an atomic is compared
    with what `intent` adds, after the first passes, and not with the kernel as written; else empty. code: of the
    reason, see docs/reasons.md; empty where there is none. scope: how far an agreed output reaches; None for others.
    """

    kind: Kind
    key: str
    buffer: str
    source: SourceLine
    verdict: Verdict
    basis: Basis
    stages: tuple[Standing, ...] = ()
    call: str = ""
    instructions: tuple[str, ...] = ()
    reason: str = ""
    finding: Finding | None = None
    also: tuple[Claim, ...] = ()
    excuse: Excuse | None = None
    executed: Executed | None = None
    not_source: str = ""
    code: str = ""
    scope: ClaimScope | None = None

    def because(self, reason: Reason) -> Claim:
        """The claim with the reason that it is undecided for."""
        return replace(self, reason=str(reason), code=reason.code)

    @property
    def blames_compiler(self) -> bool:
        """Whether it is refuted, and not because of the source itself, which is the same in every release."""
        return self.verdict == REFUTED and not self.is_authors

    @property
    def is_authors(self) -> bool:
        """Whether it is about the source itself: an atomic that is spelled so, a launch that is asked for."""
        return self.kind == "source" or (self.finding is not None and self.finding.blame == "author")

    @property
    def is_of_reference(self) -> bool:
        """Whether the source differs from the case's reference."""
        return self.finding is not None and self.finding.rule == "TLS010"

    @property
    def counts_as(self) -> str:
        """The verdict, but `expected`, `accepted` or `warning` for what is refuted with an excuse."""
        return self.excuse.kind if self.excuse is not None else self.verdict

    @property
    def is_clean(self) -> bool:
        """Whether nothing is said against it."""
        return self.verdict in (PROVED, AGREED)

    @property
    def place(self) -> str:
        """The buffer; the kernel, where threads wait at no buffer."""
        return "the kernel" if self.buffer == "?" else self.buffer

    @property
    def words(self) -> str:
        """`TLA001 at dQ: 2048 of 4096 lanes ...`; `undecided: dQ: ...`."""
        if self.finding is not None:
            return f"{self.finding.rule} at {self.place}: {self.finding.what}"
        return f"{self.verdict}: {self.buffer}" + (f": {self.coded}" if self.reason else "")

    @property
    def coded(self) -> str:
        """`U001 cluster_sync is not modelled`: why it is undecided, with the code."""
        return told(self.code, self.reason)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of its finding and of those that it explains."""
        return tuple(claim.finding.rule for claim in (self, *self.also) if claim.finding is not None)


_NOT_FOLLOWED = frozenset((VALUE_UNREAD.code, OTHER_FORM.code, ENUMERATION.code))


def with_content(atomics: tuple[Claim, ...], executed: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """Atomics, the proved ones with the execution in which their destination agreed.

    One that no proof could follow agrees, too, where its destination does: its additions were executed. For a
    destination that is no output, all outputs have to agree; and no access that the execution saw may be wrong.
    """
    outputs = [claim for claim in executed if claim.kind == "output"]
    sound = not any(claim.verdict == REFUTED for claim in executed if claim.kind != "output")
    agreed = {claim.buffer: claim.executed for claim in outputs if sound and claim.is_clean}
    everything = next(iter(agreed.values())) if agreed and len(agreed) == len(outputs) else None
    named = {claim.buffer for claim in outputs}
    found = []
    for a in atomics:
        executed_in = agreed.get(a.buffer) if a.buffer in named else everything
        if a.verdict == PROVED:
            found.append(replace(a, executed=executed_in))
        elif a.code in _NOT_FOLLOWED and executed_in is not None:
            found.append(replace(a, verdict=AGREED, basis="execution", executed=executed_in).because(UNSAID))
        else:
            found.append(a)
    return tuple(found)


# Rules of what the device does otherwise than the TIR says, and so otherwise than its execution: it takes an address of
# any alignment, and each call of the device library to do what its name says.
_APART = frozenset(("TLA002", "TLA004", "TLA013", "TLA014"))


def on_device(atomics: tuple[Claim, ...], executed: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """Return what was executed, without agreement where the device does something else: such outputs are undecided."""
    apart = next((a for a in atomics if is_apart(a)), None)
    if apart is None or apart.finding is None:
        return executed
    reason = Reason(DEVICE, f"{apart.finding.rule} at {apart.buffer}: the device does not do what was executed")
    return tuple(
        replace(claim, verdict=UNDECIDED, scope=None).because(reason)
        if claim.kind == "output" and claim.is_clean
        else claim
        for claim in executed
    )


def adds_wrong(claim: Claim) -> bool:
    """Whether an atomic leaves other values than the source: not one that lost only its memory order."""
    found = claim.finding
    return (claim.kind, claim.verdict) == ("atomic", REFUTED) and found is not None and found.weight == "error"


def is_apart(claim: Claim) -> bool:
    """Whether an atomic is refuted by what an execution does not show."""
    found = claim.finding
    return claim.kind == "atomic" and found is not None and not _APART.isdisjoint((found.rule, *found.others))
