"""Kernels as reports tell them: what was found of one case, for all its targets together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from tlcheck.reasons import NOT_EXECUTED, told
from tlcheck.verdicts.problems import Problem, problem_of
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.words import clean_in_words, silence_in_words

_DEFAULT = "pinned"
Told = TypeVar("Told")


@dataclass(frozen=True)
class Open:
    """A record of what of a kernel is not decided. code, reason: why. buffers: of whose claims this is the reason."""

    code: str
    reason: str
    buffers: tuple[str, ...]

    @property
    def words(self) -> str:
        """`not decided: U001 cluster_sync is not modelled (C). This is not a pass.`"""
        about = f" ({', '.join(self.buffers)})" if self.buffers else ""
        return f"not decided: {told(self.code, self.reason)}{about}. This is not a pass."


@dataclass(frozen=True)
class CheckedKernel:
    """The results of one case with one release, one for each target."""

    results: tuple[Result, ...]

    @property
    def name(self) -> str:
        """`FILE::NAME`, with `@TOOLCHAIN` where that is not the pinned release; or the saved snapshot's file."""
        first, run = self.results[0], self.results[0].run
        return first.saved or (run.case if run.toolchain in ("", _DEFAULT) else f"{run.case}@{run.toolchain}")

    @cached_property
    def problems(self) -> list[tuple[Problem, list[str]]]:
        """The kernel's findings, each with the targets that have it."""
        return _with_targets(
            (problem_of(result, claim, claim.finding), result)
            for result in self.results
            for claim in result.claims
            if claim.finding is not None
        )

    @cached_property
    def open(self) -> list[tuple[Open, list[str]]]:
        """Return what is not decided, each reason with the targets that have it."""
        return _with_targets((found, result) for result in self.results for found in _open(result))

    @cached_property
    def clean(self) -> list[tuple[str, list[str]]]:
        """Return what was found of the targets for which all is well."""
        return _with_targets((clean_in_words(r), r) for r in self.results if is_clean(r))

    @cached_property
    def notes(self) -> list[tuple[str, list[str]]]:
        """Return what else there is to know, each with its targets."""
        return _with_targets((note, result) for result in self.results for note in _notes(result))

    @property
    def failed(self) -> list[Result]:
        """The results of what was not checked."""
        return [result for result in self.results if result.failure is not None]

    def seconds(self, targets: Sequence[str]) -> float:
        """Return how long checking took for these targets; 0 where everything was known."""
        return sum(result.seconds for result in self.results if result.run.target in targets)


def kernels_of(results: Iterable[Result]) -> list[CheckedKernel]:
    """The results by kernel, in the order of the first of each."""
    found: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        found.setdefault((result.run.case, result.saved, result.run.tilelang), []).append(result)
    return [CheckedKernel(tuple(each)) for each in found.values()]


def is_clean(result: Result) -> bool:
    """Whether something is decided, and nothing is open or wrong, be it excused or not; there may be warnings."""
    return (
        bool(result.claims)
        and result.failure is None
        and not result.broken
        and all(claim.is_clean or claim.counts_as == "warning" for claim in result.claims)
    )


def _notes(result: Result) -> Iterator[str]:
    yield from result.notes
    found = [claim for claim in result.claims if claim.not_source]
    if found:
        buffers = ", ".join(dict.fromkeys(claim.buffer for claim in found))
        yield f"{buffers}: compared with the kernel after the first passes, since {found[0].not_source}"


def _open(result: Result) -> Iterator[Open]:
    if why := silence_in_words(result):
        yield Open(NOT_EXECUTED.code, why, ())
    found: dict[tuple[str, str], list[str]] = {}
    for claim in result.claims:
        if claim.verdict == "undecided":
            found.setdefault((claim.code, claim.reason), []).append(claim.buffer)
    for (code, reason), buffers in found.items():
        yield Open(code, reason, tuple(dict.fromkeys(buffers)))


def _with_targets(told: Iterable[tuple[Told, Result]]) -> list[tuple[Told, list[str]]]:
    """Equal things once, with the targets that they are told of."""
    found: list[tuple[Told, list[str]]] = []
    for what, result in told:
        targets = next((targets for known, targets in found if known == what), None)
        if targets is None:
            found.append((what, targets := []))
        if result.run.target not in targets:
            targets.append(result.run.target)
    return found
