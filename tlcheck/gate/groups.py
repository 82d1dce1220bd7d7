"""Equal differences of many kernels, shown once: nobody reads three hundred."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tlcheck.gate.device_outcomes import evidence_in_words
from tlcheck.gate.outcome import CLASSES, LoweredPair, Outcome
from tlcheck.run.device_results import FAILED, NOT_RUN, PASSED
from tlcheck.verdicts.brief_names import brief_names

_About = tuple[list[str], list[str]]  # subjects, targets


@dataclass(frozen=True, slots=True)
class DifferenceGroup:
    """One difference, and everything that has it."""

    klass: str
    kind: str
    before: str
    after: str
    accepted: str | None
    members: tuple[tuple[LoweredPair, Outcome], ...]

    @property
    def words(self) -> str:
        """Return what happened: the sentence of a single one, else what all have in common."""
        sentences = {outcome.words for _, outcome in self.members}
        if len(sentences) == 1:
            return sentences.pop()
        return f"{self.kind}: " + " -> ".join(dict.fromkeys(part for part in (self.before, self.after) if part))

    @property
    def claims(self) -> dict[str, int]:
        """Return what the claims say about it, with how many members it is said of."""
        return Counter(outcome.claims for _, outcome in self.members if outcome.claims)


def groups(comparisons: Iterable[LoweredPair]) -> list[DifferenceGroup]:
    """Sort groups by class, the worst first, then by size. Accepted ones are a group of their own."""
    found: dict[tuple[str, str, str, str, str | None], list[tuple[LoweredPair, Outcome]]] = {}
    for compared in comparisons:
        for o in compared.outcomes:
            found.setdefault((o.klass, o.kind, o.before, o.after, o.accepted), []).append((compared, o))
    order = list(CLASSES)
    made = [DifferenceGroup(*key, tuple(members)) for key, members in found.items()]
    return sorted(made, key=lambda g: (order.index(g.klass), -len(g.members), g.kind, g.before, g.after))


def device_evidence(comparisons: Iterable[LoweredPair]) -> dict[str, list[LoweredPair]]:
    """Return what the device shows, in words, with the comparisons of which it is so: what fails now first. Empty
    without a device run.
    """
    found: dict[str, list[LoweredPair]] = {}
    for compared in sorted(comparisons, key=_badness):
        if words := evidence_in_words(compared):
            found.setdefault(words, []).append(compared)
    return found


def _badness(compared: LoweredPair) -> int:
    side = compared.after
    status = side.device.status if side is not None and side.device is not None else NOT_RUN
    return (FAILED, NOT_RUN, PASSED).index(status)


def members_in_words(members: Sequence[tuple[LoweredPair, Outcome]]) -> list[str]:
    """`cases/atomics.py: tile_x2 (B; sm_80, sm_90), tile_x4 (B; sm_90)`: a line for each file."""
    return files_in_words((compared, outcome.subject) for compared, outcome in members)


def files_in_words(members: Iterable[tuple[LoweredPair, str]]) -> list[str]:
    """The same of comparisons with their subjects, with commas between several."""
    files: dict[str, dict[str, _About]] = {}
    for compared, subject in members:
        subjects, targets = files.setdefault(compared.file, {}).setdefault(compared.name, ([], []))
        subjects += [s for s in subject.split(", ") if s and s not in subjects]
        targets += [compared.target] if compared.target and compared.target not in targets else []
    return [f"{file}: {_cases(_briefly(file, cases))}".removesuffix(": ") for file, cases in files.items()]


def _briefly(file: str, cases: Mapping[str, _About]) -> dict[str, _About]:
    """Shorten the names of captured kernels, as `check` does."""
    brief = brief_names(f"{file}::{name}" for name in cases)
    return {brief.get(f"{file}::{name}", f"::{name}").partition("::")[2]: about for name, about in cases.items()}


def _cases(cases: Mapping[str, _About]) -> str:
    """Neighbours with the same subjects and targets share them."""
    runs: list[tuple[list[str], str]] = []
    for name, (subjects, targets) in cases.items():
        about = "; ".join(part for part in (", ".join(subjects), ", ".join(targets)) if part)
        if runs and runs[-1][1] == about:
            runs[-1][0].append(name)
        else:
            runs.append(([name], about))
    return ", ".join(
        " ".join(part for part in (", ".join(filter(None, names)), f"({about})" if about else "") if part)
        for names, about in runs
    )
