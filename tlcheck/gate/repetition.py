"""Lowering kernels again in fresh processes: one release may lower one kernel in several ways.

A search inside of a pass that ends at a limit of time gives another answer on a busy machine. So verdicts belong to the
TIR that they judge, and each form of a kernel is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tlcheck.facts.changes import changes
from tlcheck.facts.extract import facts_of
from tlcheck.lower.runs import Lowered
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.checking import with_inputs
from tlcheck.verdicts.claim import REFUTED, UNDECIDED, Claim, Finding
from tlcheck.verdicts.excerpts import source_line
from tlcheck.verdicts.judge import Judge, JudgeWatcher
from tlcheck.verdicts.results import Result, read_snapshot
from tlcheck.verdicts.rules.rule import rule_of
from tlcheck.verdicts.words import plural
from tlcheck.witness import Accesses, Act

_Found = tuple[Lowered, Result]
_Key = tuple[str, str, tuple[int, ...]]  # of a run: its case, target and position
_FAILS = "fails"  # in place of a form's hash


@dataclass(frozen=True)
class Repetition:
    """The way in which kernels are lowered again. times: in all, the first time counted. folder: of snapshots.

    stoppable: takes what ends the work where the user ends the command.
    """

    times: int
    settings: Settings
    folder: Path
    watcher: JudgeWatcher
    stoppable: Callable[[Callable[[], None]], None] = lambda stop: None

    def judged(self, found: Sequence[_Found], selections: Sequence[Selection], judge: Judge) -> list[_Found]:
        """Judge what was found once and is lowered in several ways again: the worst form, with a claim about that."""
        others: dict[_Key, list[Lowered]] = {}
        for lowered in self._again(selections, judge):
            others.setdefault(_key(lowered), []).append(lowered)
        return [self._worst(each, others.get(_key(each[0]), []), judge) for each in found]

    def _again(self, selections: Sequence[Selection], judge: Judge) -> Iterator[Lowered]:
        """Lower everything anew, each time with workers of its own. What ended early says nothing."""
        settings = with_inputs(replace(self.settings, cache=False), judge.policy.execute)
        for number in range(1, self.times):
            folder = self.folder / f"again-{number}"
            folder.mkdir()
            session = Session(settings, folder, self.watcher)
            self.stoppable(session.stop)
            yield from (each for each in session.lower(selections) if not each.is_interrupted)

    def _worst(self, first: _Found, others: Sequence[Lowered], judge: Judge) -> _Found:
        forms = {_form(lowered): lowered for lowered in (*reversed(others), first[0])}
        if len(forms) == 1:
            return first
        counts = Counter(map(_form, (first[0], *others)))
        anew = [lowered for form, lowered in forms.items() if form != _form(first[0])]
        lowered, result = max((first, *judge.each(anew)), key=lambda each: _badness(each[1]))
        if result.failure is not None:
            words = f"lowered {self.times} times by one release, it fails {plural(counts[_FAILS], 'time')}"
            return lowered, replace(result, notes=(*result.notes, words))
        claim = _claim([(counts[form], read_snapshot(each.snapshot)) for form, each in forms.items() if each.snapshot])
        settled = judge.policy.apply(replace(result, claims=(*result.claims, claim)))
        return lowered, replace(settled, notes=tuple(dict.fromkeys(settled.notes)))  # those of the other claims twice


def _key(lowered: Lowered) -> _Key:
    return lowered.run.case, lowered.run.target, lowered.run.position


def _form(lowered: Lowered) -> str:
    return lowered.hash or _FAILS


def _badness(result: Result) -> tuple[bool, int, int]:
    refuted = result.count(REFUTED) + len(result.broken)
    return result.failure is not None, refuted, result.count(UNDECIDED)


def _claim(forms: Sequence[tuple[int, Snapshot]]) -> Claim:
    """Refute that the release lowers the kernel in one way. forms: how often each was made, and one of them."""
    (often, usual), (seldom, other), *_ = sorted(forms, key=lambda form: -form[0])
    first = next(
        (change.words for change in changes(facts_of(usual), facts_of(other))), "only the text of the IR differs"
    )
    times = sum(count for count, _ in forms)
    what = f"lowered {times} times by one release, it has {len(forms)} forms"
    words = f"{plural(often, 'time')} one, {plural(seldom, 'time')} another: {first}"
    rule = rule_of("repetition")
    witness = Accesses((), Act(words, (), at=Checkpoint.DEVICE_TIR))
    finding = Finding(
        rule.id,
        rule.name,
        rule.title,
        (),
        Checkpoint.DEVICE_TIR,
        "",
        what,
        witness,
        words,
        advice="pin another release; check the kernel with --repeat in CI",
        weight="hazard",
    )
    place = source_line(usual, 0)
    return Claim("legality", "repetition", "the kernel", place, REFUTED, "execution", finding=finding)
