"""Every mutant of a snapshot, judged twice: by the oracle and by tlcheck."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.cpu.mutations.mutants import LOWERED, Mutant, mutants
from tests.cpu.prove.oracle import Kernel
from tests.cpu.prove.oracle_text import UnsupportedError
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.check import check
from tlcheck.verdicts.claim import PROVED, REFUTED, UNDECIDED

CHANGED, SAME, UNSUPPORTED = "changed", "same", "unsupported"
SMALL = 17  # a size that cuts the tiles of all cases
BY_DEFINITION = frozenset(("drop the memory order",))  # no addition differs, and it is wrong all the same


@dataclass(frozen=True, slots=True)
class Judged:
    """truth: what the oracle found. verdict: the worst of the destination's atomics, with its rule or reason."""

    kind: str
    checkpoints: tuple[str, ...]
    root: str
    truth: str
    detail: str
    verdict: str
    why: str

    @property
    def right(self) -> bool:
        """Whether what changed is refuted, and what did not is not."""
        if self.truth == UNSUPPORTED:
            return True
        return (self.truth == CHANGED) == (self.verdict == REFUTED)


def judged(snapshot: Snapshot, checkpoints: Sequence[str] = LOWERED) -> Iterator[Judged]:
    """The mutants of all destinations that are proved in the snapshot itself."""
    atomics = check(snapshot).claims
    doubtful = {a.buffer for a in atomics if a.verdict != PROVED}
    kernels = [Kernel(snapshot)]
    if kernels[0].sizes and not kernels[0].promises:
        kernels.append(Kernel(snapshot, dict.fromkeys(kernels[0].sizes, SMALL)))
    for mutant in mutants(snapshot, checkpoints):
        if mutant.root not in doubtful:
            yield _judged(kernels, mutant)


def _judged(kernels: Sequence[Kernel], mutant: Mutant) -> Judged:
    found = [_truth(kernel, mutant) for kernel in kernels]
    truth, detail = max(found, key=lambda f: (SAME, UNSUPPORTED, CHANGED).index(f[0]))
    own = [a for a in check(mutant.snapshot).claims if a.buffer == mutant.root]
    worst = max(own, key=lambda a: (PROVED, UNDECIDED, REFUTED).index(a.verdict))
    why = worst.reason if worst.finding is None else f"{worst.finding.rule}: {worst.finding.what}"
    return Judged(mutant.kind, mutant.checkpoints, mutant.root, truth, detail, worst.verdict, why)


def _truth(kernel: Kernel, mutant: Mutant) -> tuple[str, str]:
    if mutant.kind in BY_DEFINITION:
        return CHANGED, mutant.kind
    try:
        changed = kernel.changed(mutant.snapshot)
        for block in changed.blocks():
            for checkpoint in mutant.checkpoints:
                wrong = changed.differs(checkpoint, mutant.root, block)
                if wrong:
                    return CHANGED, f"{checkpoint}, block {block}: {wrong}"
    except UnsupportedError as error:
        return UNSUPPORTED, str(error)
    return SAME, ""
