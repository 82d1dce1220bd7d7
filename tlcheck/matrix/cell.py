"""Define how one kernel fares with one toolchain, as plain data: what reports write is what a later run reads again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tlcheck.cost.figures import CostFigures, figures_of
from tlcheck.lower.runs import Run
from tlcheck.lower.scripts import End
from tlcheck.verdicts.claim import REFUTED, UNDECIDED, Claim
from tlcheck.verdicts.results import Result
from tlcheck.worker.protocol import Failure

State = Literal["fine", "wrong", "hazard", "broken", "undecided", "absent"]
STATES: Mapping[State, str] = {
    "fine": "what was judged is as written",
    "wrong": "something is refuted",
    "hazard": "a rule of the manual is broken, and no value was wrong",
    "broken": "it does not lower, or could not be checked",
    "undecided": "nothing is refuted, and not everything is decided",
    "absent": "there is no such kernel",
}


@dataclass(frozen=True)
class Cell:
    """One kernel for one target with one toolchain.

    file, toolchain: as the user named them. content: hash of the file. name: empty for what is about a whole file: why
    it has no kernel, or a script not all of them. args: build arguments, as Python literals. captured: whether a script
    compiles it. place: among the kernels of its file. counts: claims by verdict. claims: those that are refuted or
    undecided. failure: why it is broken. cost: None where it was not asked for, or could not be counted.
    """

    file: str
    content: str
    name: str
    args: Mapping[str, str]
    target: str
    toolchain: str
    captured: bool
    place: tuple[int, ...]
    state: State
    counts: Mapping[str, int]
    claims: tuple[Claim, ...] = ()
    failure: Failure | None = None
    cost: CostFigures | None = None

    @property
    def words(self) -> str:
        """Return what there is to say besides the state: the first thing that is wrong, else open; empty where it is
        fine.
        """
        if self.failure is not None:
            return f"{self.failure.phase}: {self.failure.message}"
        worst = next((c for c in self.claims if c.verdict == REFUTED), next(iter(self.claims), None))
        return worst.words if worst is not None else ""

    @property
    def is_wrong(self) -> bool:
        """Whether something is refuted."""
        return self.state in ("wrong", "hazard")

    @property
    def is_silent(self) -> bool:
        """Whether it lowers and nothing of it is decided."""
        return self.state == "undecided" and set(self.counts) <= {UNDECIDED}


def cells_of(results: Iterable[Result], ends: Sequence[End]) -> list[Cell]:
    """The cells of what was judged. ends: how far scripts came."""
    scripts = {end.run.file for end in ends}
    results = list(results)
    told = {_file_of(result.run) for result in results if not result.run.name}
    cut = [Result(end.run, failure=end.ended) for end in ends if end.ended is not None]
    results += [result for result in cut if _file_of(result.run) not in told]
    content = {file: hash_of_file(Path(file)) for file in {result.run.file for result in results}}
    return [_cell(result, content[result.run.file], result.run.file in scripts) for result in results]


def _file_of(run: Run) -> tuple[str, str, str]:
    return run.toolchain, run.file, run.target


def _cell(result: Result, content: str, captured: bool) -> Cell:
    run, counts = result.run, Counter(claim.verdict for claim in result.claims)
    return Cell(
        file=run.file,
        content=content,
        name=run.name,
        args=run.args,
        target=run.target,
        toolchain=run.toolchain,
        captured=captured,
        place=run.position[1:],
        state="broken" if result.failure is not None else _state(result.claims),
        counts=dict(sorted(counts.items())),
        claims=tuple(claim for claim in result.claims if claim.verdict in (REFUTED, UNDECIDED)),
        failure=result.failure,
        cost=figures_of(result.cost) if result.cost is not None else None,
    )


def _state(claims: Sequence[Claim]) -> State:
    """A kernel of which nothing is claimed is not fine: nobody has looked at anything. A fault of the source is no
    release's.
    """
    weights = {claim.finding.weight for claim in claims if claim.blames_compiler and claim.finding is not None}
    if weights:
        return "wrong" if "error" in weights else "hazard"
    return "fine" if claims and all(claim.is_clean for claim in claims) else "undecided"


def hash_of_file(file: Path) -> str:
    """Hash of a file; empty for one that cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""
