"""Describe what the issue for TileLang says of a kernel: a script, an element that is wrong, a workaround, CUDA side by
side.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tlcheck.gate.verdict_outcomes import wrong_claims
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.remedy.kernel_changes import key_of
from tlcheck.remedy.reducing import Reduced, Reducer
from tlcheck.remedy.reproduction import FORMULAS, Reproduction, tensors_of
from tlcheck.remedy.search import Workarounds, WorkaroundSearch, WrongKernel
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.results import Result
from tlcheck.witness import Element

_DECLARED = re.compile(
    r"\s*(void\* \w+ = \(\(void\*\)\(\(char\*\)buf_dyn_shmem.*|(extern )?(__shared__ .*|[\w:]+ \w+(\[\d+\])?);"
    r"|auto \w+ = reinterpret_cast.*|#pragma.*|[{}])$"
)
_ZEROS = ("0", "0.0", "-0.0", "False")
_MOST_CUDA = 60  # lines that differ
_CALLED = re.compile(r"([A-Za-z_][\w:]*(?:<[^<>()]*>)?)\(")


@dataclass(frozen=True)
class ShownElement:
    """An element of an output that is wrong where the script's numbers are the inputs."""

    output: str
    element: Element


@dataclass(frozen=True)
class CudaChange:
    """A record of how the CUDA source of a kernel that is right differs. what: `TileLang 0.1.11`, or another change
    that mends it.

    hunks: lines of a diff, for each place.
    """

    what: str
    hunks: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SharedBytes:
    """A record of buffers that overlap in shared memory. first: buffer -> its first byte. apart: the workaround with
    which they do not; empty where it does not move them.
    """

    first: Mapping[str, int]
    apart: str


@dataclass(frozen=True)
class Issue:
    """claim: the finding, of the small kernel where that was checked. text: that its lines are of. script: shows it.

    shown, workarounds, cuda, overlap: None where there is none, or nobody looked. generated: the lines of its CUDA
    kernel; None where nobody looked.
    """

    reduced: Reduced
    claim: Claim
    text: str
    script: str
    shown: ShownElement | None = None
    workarounds: Workarounds | None = None
    cuda: CudaChange | None = None
    overlap: SharedBytes | None = None
    generated: tuple[str, ...] | None = None


@dataclass(frozen=True)
class IssueSearch:
    """Finds what an issue says. reducer: that has made the kernel small. settings: for the kernel of its script. whole:
    the kernel that it was made of; None where the small one is that kernel, or no one but its script can make it.
    """

    reducer: Reducer
    reduced: Reduced
    script: Reproduction
    settings: Settings
    whole: WrongKernel | None = None

    @classmethod
    def of(cls, reducer: Reducer, reduced: Reduced, whole: WrongKernel | None) -> IssueSearch:
        """Return the search for a kernel that is small by now."""
        run = reduced.result.run
        script = Reproduction.of(reduced.text, reduced.function, run.target, reduced.result.pass_configs or {})
        configs = {key_of(name): value for name, value in script.configs.items()}
        settings = replace(
            reducer.settings, arch=(run.target,), args={}, pass_configs=configs, scripts=None, cluster=None
        )
        return cls(reducer, reduced, script, settings, whole)

    def issue(self) -> Issue:
        """Return the issue; with a script alone where the user has ended the command."""
        reduced, shows = self.reduced, self.script.written("", None)
        bare = Issue(reduced, reduced.claim_after or reduced.claim, reduced.text, shows)
        if reduced.claim_after is None:
            written = Path(bare.claim.source.file)  # a case may be declared in another file
            bare = replace(bare, text=written.read_text(encoding="utf-8") if written.is_file() else "")
        if self.reducer.stopped():
            return bare
        kernel = self._selection(self.script.text, self.reduced.function)
        result, snapshot = self._checked(kernel)
        if snapshot is None or not wrong_claims(result):
            return bare
        script, shown = self._shown(snapshot)
        shows = script.written(shown.output, shown.element) if shown is not None else bare.script
        found = self._workarounds(WrongKernel(result, snapshot))
        right = self._right(kernel, bare.claim, found)
        return replace(
            bare,
            script=shows,
            shown=shown,
            workarounds=found,
            cuda=least_change(snapshot, right),
            overlap=overlap(bare.claim, snapshot, right),
            generated=readable(snapshot.cuda),
        )

    def _shown(self, snapshot: Snapshot) -> tuple[Reproduction, ShownElement | None]:
        """Look for inputs, given by a formula, with which an element is wrong that should be a number.

        One that is never written may be 0 on a GPU: another number is shown instead, where some inputs have one.
        """
        hidden = None
        for formulas in FORMULAS:
            called = replace(self.script, tensors=tensors_of(snapshot.checkpoints[Checkpoint.SOURCE], formulas))
            if not called.tensors:
                break
            done, _ = self._checked(self._selection(called.declared(), "shown"))
            if any(claim.kind == "source" and claim.finding is not None for claim in done.claims):
                continue  # such as indices beyond a tensor's end
            for claim in wrong_claims(done):
                assert claim.finding is not None
                witness = claim.finding.witness
                if isinstance(witness, Element) and witness.expected not in ("poison", "nan", witness.got):
                    found = called, ShownElement(claim.buffer, witness)
                    if not witness.got.startswith("poison") or witness.expected not in _ZEROS:
                        return found
                    hidden = hidden or found
        return hidden or (self.script, None)

    def _workarounds(self, wrong: WrongKernel) -> Workarounds:
        """Search for what mends the small kernel, and the one that it was made of."""
        reducer, policy = self.reducer, Policy(excusing=False, execute=self.reducer.request)
        folder, watcher = reducer.folder, reducer.watcher
        search = WorkaroundSearch(self.settings, policy, folder, watcher, False, reducer.stoppable, reducer.stopped)
        if self.whole is not None:
            whole = replace(search, settings=reducer.settings)
            search = replace(search, whole=partial(whole.attempt, self.whole))
        return search.search(wrong)

    def _right(self, kernel: Selection, claim: Claim, found: Workarounds) -> dict[str, Snapshot]:
        """The kernel where it is right: with each workaround, in their order, then in the nearest releases."""
        right = []
        for change in (trial.change for trial in found.found):
            toolchain = change.release or kernel.toolchain
            right.append((change.words, replace(kernel, toolchain=toolchain, variation=change.variation)))
        history = claim.finding.history if claim.finding is not None else None
        right += [(name, replace(kernel, toolchain=name)) for name in (history.right_in if history is not None else ())]
        lowered = {what: self._checked(selection)[1] for what, selection in right}
        return {what: snapshot for what, snapshot in lowered.items() if snapshot is not None}

    def _selection(self, text: str, name: str) -> Selection:
        run = self.reduced.result.run
        return Selection(self.reducer.file(text, name), name, run.toolchain, only=frozenset([(name, run.target)]))

    def _checked(self, kernel: Selection) -> tuple[Result, Snapshot | None]:
        return self.reducer.check(self.settings, kernel)


def least_change(wrong: Snapshot, right: Mapping[str, Snapshot]) -> CudaChange | None:
    """Return the least difference to the CUDA of a kernel that is right. right: by what differs from the wrong one."""
    changes = [CudaChange(what, difference(wrong.cuda, snapshot.cuda)) for what, snapshot in right.items()]
    return min((c for c in changes if c.hunks), key=lambda change: sum(map(len, change.hunks)), default=None)


def overlap(claim: Claim, wrong: Snapshot, right: Mapping[str, Snapshot]) -> SharedBytes | None:
    """Return where the buffers of a finding overlap in shared memory, and the first of `right` if it keeps them apart;
    None where they do not, or where the CUDA itself says it.

    The first one is the workaround that the issue names: it does not speak of another one here.
    """
    finding, places = claim.finding, _places(wrong)
    named = finding.origin.buffers if finding is not None and finding.origin is not None else ()
    first = {name: places[name] for name in named if name in places}
    what, snapshot = next(iter(right.items()), ("", wrong))
    is_apart = not set(first) <= set(_places(snapshot))
    return SharedBytes(first, what if is_apart else "") if len(first) > 1 else None


def _places(snapshot: Snapshot) -> dict[str, int]:
    return {str(pointer.value): place for pointer, place in snapshot.checkpoints[Checkpoint.DEVICE_TIR].places}


def difference(wrong: str, right: str) -> tuple[tuple[str, ...], ...]:
    """Return the places where the bodies of two CUDA kernels differ: lines of a diff with one of context.

    Releases name and address buffers differently. Lines differ if they call other functions; only where no line does,
    every difference counts. Declarations are left out. Nothing is returned where the two have little in common.
    """
    one, other = (_body(text) for text in (wrong, right))
    hunks = _hunks(one, other, _calls) or _hunks(one, other, str.strip)
    return hunks if sum(map(len, hunks)) <= _MOST_CUDA else ()


def readable(cuda: str) -> tuple[str, ...]:
    """Return what the last kernel does: its lines without declarations, and without the braces around all of them."""
    lines = cuda.split("__global__")[-1].splitlines()[1:]
    kept = [line for line in lines if line.strip() in ("{", "}") or (line.strip() and not _DECLARED.match(line))]
    return tuple(kept[:-1] if kept and kept[-1] == "}" else kept)


def _body(cuda: str) -> list[str]:
    """The lines of the last kernel, without declarations and braces."""
    return [line for line in cuda.split("__global__")[-1].splitlines() if line.strip() and not _DECLARED.match(line)]


def _calls(line: str) -> str:
    """The functions that a line calls; all of it where it calls none."""
    if not re.match(r"\s*(if|for|while)\b", line) and (found := _CALLED.findall(line)):
        before = line.partition(found[0])[0]
        return " ".join(
            ["[" * (before.count("[") - before.count("]")), *found]
        )  # a call inside an index is its own kind
    return re.sub(r"_\d+\b", "", line.strip())


def _hunks(one: list[str], other: list[str], key: Callable[[str], str]) -> tuple[tuple[str, ...], ...]:
    matcher = difflib.SequenceMatcher(None, [key(line) for line in one], [key(line) for line in other], autojunk=False)
    return tuple(
        (
            *(f" {line}" for line in one[max(0, i1 - 1) : i1]),
            *(f"-{line}" for line in one[i1:i2]),
            *(f"+{line}" for line in other[j1:j2]),
            *(f" {line}" for line in one[i2 : i2 + 1]),
        )
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    )
