"""The prover of atomics and the execution, each held against the other: they share nothing but the snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.cpu.mutations.kernels import kernels
from tests.cpu.mutations.mutants import mutants
from tests.fixtures.index import Fixture
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.request import LOWERED, SOURCE, Request
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.atomic_claims import judge_atomics
from tlcheck.verdicts.claim import PROVED

BLOCKS = 64  # executed at most: of the kernels here all, but for the large attention


@dataclass(frozen=True, slots=True)
class Opinions:
    """A record of what both say of one tensor. proofs: the verdicts on all atomics of the kernel, since one may read
    what another added; executed: on the tensor.
    """

    kernel: str
    tensor: str
    proofs: frozenset[str]
    executed: str
    reason: str

    @property
    def contradict(self) -> bool:
        """Whether all additions are proved, and what they leave is refuted."""
        return self.proofs == {PROVED} and self.executed == "refuted"


def opinions(kernel: str, snapshot: Snapshot) -> Iterator[Opinions]:
    """Both opinions on each output with atomics."""
    claims = judge_atomics(snapshot).claims
    found = execute(snapshot, Request(blocks=BLOCKS)) if claims else Execution(())
    illegal = found.illegal.buffer if found.illegal is not None else ""
    proofs = frozenset(c.verdict for c in claims)
    added = {c.buffer for c in claims}
    for outcome in found.outputs:
        if outcome.name in added:
            verdict = "refuted" if illegal == outcome.name else outcome.verdict
            yield Opinions(kernel, outcome.name, proofs, verdict, outcome.reason or str(outcome.difference or ""))


def of_fixture(fixture: Fixture) -> Iterator[Opinions]:
    """Both opinions on a committed snapshot."""
    yield from opinions(fixture.path, fixture.snapshot())


def of_mutants(fixture: Fixture, first: int = 0, step: int = 1) -> Iterator[Opinions]:
    """Both opinions on wrong lowerings of it, of which each is lowered as it was but for one statement."""
    snapshot = fixture.snapshot()
    for mutant in list(mutants(snapshot, (LOWERED,)))[first::step]:
        if mutant.checkpoints == (LOWERED,):
            checkpoints = {**mutant.snapshot.checkpoints, SOURCE: snapshot.checkpoints[SOURCE]}
            yield from opinions(f"{fixture.path} {mutant.kind}", replace(mutant.snapshot, checkpoints=checkpoints))


def mutated() -> list[Fixture]:
    """Kernels with the source checkpoint, of which mutants are made."""
    return [f for f in kernels() if SOURCE in f.snapshot().checkpoints]
