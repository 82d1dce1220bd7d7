"""Say why a kernel fails on the device: what proofs do not refute is executed on the CPU, as by `tlcheck check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tlcheck.lower.runs import Lowered, of_saved
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.run.device_results import FAILED, DeviceResult, with_verdicts
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.judge import JudgeWatcher, Policy
from tlcheck.verdicts.results import read_snapshot
from tlcheck.verdicts.words import plural


def explained(
    ran: Sequence[DeviceResult],
    selections: Sequence[Selection],
    settings: Settings,
    policy: Policy,
    folder: Path,
    watcher: JudgeWatcher,
) -> Iterator[DeviceResult]:
    """Each failure for which nothing is refuted, with what an execution says; no other result is executed.

    selections, settings: what was run, and how it was lowered: that happens again, now with the cases' own inputs.
    """
    found = {result.run.position: result for result in ran if result.status == FAILED and not result.refuted}
    if not found or policy.execute is None:
        return
    watcher.stage(f"executing {plural(len(found), 'case')} that failed")
    again = folder / "executed"
    again.mkdir()
    with checking(settings, policy, again, watcher) as checks:
        for lowered, checked in checks.judge.each(_lowered([*found.values()], selections, checks.session)):
            position = lowered.run.position
            if position in found:  # a file that is not imported this time has none
                yield with_verdicts(found[position], checked)


def _lowered(failed: Sequence[DeviceResult], selections: Sequence[Selection], session: Session) -> Iterator[Lowered]:
    """Yield what failed, lowered once more: now with the case's own inputs."""
    wanted: dict[int, set[tuple[str, str]]] = {}
    for result in failed:
        wanted.setdefault(result.run.position[0], set()).add((result.run.name, result.run.target))
    files = [place for place in wanted if not selections[place].is_snapshot]
    for place in wanted.keys() - files:
        saved = selections[place].path
        yield of_saved(saved, read_snapshot(saved), place)
    if files:
        for lowered in session.lower([replace(selections[p], only=frozenset(wanted[p])) for p in files]):
            first, *rest = lowered.run.position
            yield replace(lowered, run=replace(lowered.run, position=(files[first], *rest)))
