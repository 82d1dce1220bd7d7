"""Every mutant of a snapshot, judged twice: by the oracle and by tlcheck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.cpu.mutations.mutants import Mutant
from tests.cpu.prove.oracle import Kernel
from tests.cpu.prove.oracle_text import UnsupportedError
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.atomic_claims import judge_atomics
from tlcheck.verdicts.claim import PROVED, REFUTED, UNDECIDED

CHANGED, SAME, UNSUPPORTED = "changed", "same", "unsupported"
SMALL = 17  # a size that cuts the tiles of all cases
BY_DEFINITION = frozenset(("drop the memory order",))  # no addition differs, and it is wrong all the same


@dataclass(frozen=True, slots=True)
class Judged:
    """truth: what the oracle found. verdict: the worst of the destination's atomics, with its rule or reason; none
    where the truth is `UNSUPPORTED`: the oracle has no opinion.
    """

    kind: str
    checkpoints: tuple[str, ...]
    root: str
    truth: str
    detail: str
    verdict: str
    why: str

    @property
    def covered(self) -> bool:
        """Say whether the oracle judged it."""
        return self.truth != UNSUPPORTED

    @property
    def wrong(self) -> bool:
        """Say whether what changed is not refuted, or what did not is."""
        return self.covered and (self.truth == CHANGED) != (self.verdict == REFUTED)


def judged(snapshot: Snapshot, chosen: Iterable[Mutant]) -> Iterator[Judged]:
    """Judge mutants of a snapshot."""
    doubtful = {a.buffer for a in judge_atomics(snapshot).claims if a.verdict != PROVED}
    kernels = [Kernel(snapshot)]
    if kernels[0].sizes and not kernels[0].promises:
        kernels.append(Kernel(snapshot, dict.fromkeys(kernels[0].sizes, SMALL)))
    for mutant in chosen:
        found = _truth_of_all(kernels, mutant) if mutant.root not in doubtful else (UNSUPPORTED, "not proved as it is")
        verdict = _verdict(mutant, found[0])
        if (found[0], verdict[0]) == (SAME, REFUTED):  # made-up indices may miss the last one
            found = max(found, *_truths_at_the_end(snapshot, mutant), key=lambda f: f[0] == CHANGED)
        yield Judged(mutant.kind, mutant.checkpoints, mutant.root, *found, *verdict)


def _truths_at_the_end(snapshot: Snapshot, mutant: Mutant) -> Iterator[tuple[str, str]]:
    """Yield what is found where memory holds the last index of the destination."""
    function = next(iter(snapshot.checkpoints.values()))
    buffer = next(b for b in function.buffers if b.name == mutant.root)
    for extent in buffer.shape:
        if isinstance(extent.value, int):
            yield _truth(Kernel(snapshot, content=extent.value - 1), mutant)


def _verdict(mutant: Mutant, truth: str) -> tuple[str, str]:
    if truth == UNSUPPORTED:
        return "", ""
    own = [a for a in judge_atomics(mutant.snapshot).claims if a.buffer == mutant.root]
    worst = max(own, key=lambda a: (PROVED, UNDECIDED, REFUTED).index(a.verdict))
    why = worst.reason if worst.finding is None else f"{worst.finding.rule}: {worst.finding.what}"
    return worst.verdict, why


def _truth_of_all(kernels: Sequence[Kernel], mutant: Mutant) -> tuple[str, str]:
    found = [_truth(kernel, mutant) for kernel in kernels]
    return max(found, key=lambda f: (SAME, UNSUPPORTED, CHANGED).index(f[0]))


def _truth(kernel: Kernel, mutant: Mutant) -> tuple[str, str]:
    if mutant.kind in BY_DEFINITION:
        return CHANGED, mutant.kind
    try:
        changed = kernel.changed(mutant.snapshot)
        if not any(a.root == mutant.root for block in changed.blocks() for a in changed.additions("intent", block)):
            return UNSUPPORTED, "nothing is added with the memory that the oracle makes up"
        for block in changed.blocks():
            for checkpoint in mutant.checkpoints:
                wrong = changed.differs(checkpoint, mutant.root, block)
                if wrong:
                    return CHANGED, f"{checkpoint}, block {block}: {wrong}"
    except UnsupportedError as error:
        return UNSUPPORTED, str(error)
    return SAME, ""
