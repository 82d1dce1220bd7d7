"""Checking what a command is given: each project with its own settings, snapshots kept where the user wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tlcheck.cli.execution_options import ExecutionOptions
from tlcheck.cli.interruption import Interruption
from tlcheck.cli.lowered import working
from tlcheck.cli.options import LoweringOptions
from tlcheck.cli.projects import ProjectCases, projects
from tlcheck.cli.scripts import on_device
from tlcheck.errors import UsageError
from tlcheck.execute.worlds.stored_inputs import packed
from tlcheck.files import make_folder, save
from tlcheck.lower.runs import Lowered, unique_name
from tlcheck.lower.scripts import Scripts
from tlcheck.lower.session import Settings
from tlcheck.snapshot.codec import dumps, loads
from tlcheck.verdicts.acceptance import project_acceptances
from tlcheck.verdicts.checking import Checks, checking
from tlcheck.verdicts.judge import JudgeWatcher, Policy
from tlcheck.verdicts.results import Result, read_snapshot
from tlcheck.verdicts.rule_filter import EVERY_RULE, RuleFilter
from tlcheck.verdicts.words import plural

if TYPE_CHECKING:
    from tlcheck.page.shown import Entry


WHY_SECONDS = 10.0  # that are taken without being asked


@dataclass(frozen=True)
class CheckOptions:
    """The choice of what is checked, and how. excusing: whether what a case expects is excused. strict: whether
    undecided is wrong, and a warning.

    save: the folder that keeps the snapshots, if any does. with_inputs: with what they are executed on. with_page:
    whether a page is to be made. why: whether the neighbouring releases and the passes are looked at where a kernel is
    wrong; None for where that takes little. rules: that count. repeat: how often each kernel is lowered.
    """

    cases: tuple[str, ...]
    lowering: LoweringOptions
    execution: ExecutionOptions
    scripts: Scripts
    excusing: bool = True
    strict: bool = False
    save: Path | None = None
    with_inputs: bool = False
    with_page: bool = False
    why: bool | None = None
    rules: RuleFilter = EVERY_RULE
    repeat: int = 1


@dataclass(frozen=True)
class Checked:
    """A record of what checking found. entries: the same for a page, where one is asked for.

    passed_over: files without a case. notes: what else there is to say.
    """

    results: Sequence[Result]
    entries: Sequence[Entry] = ()
    notes: Sequence[str] = ()
    passed_over: int = 0


def checked(options: CheckOptions, interruption: Interruption) -> Checked:
    """Check everything. Raises UsageError, also where there is nothing to check, and NoDeviceError."""
    chosen = projects(options.cases, options.lowering.for_kernel_files)
    if options.save is not None:  # better now than after minutes of work
        make_folder(options.save)
    found = [_checked(options, each, interruption) for each in chosen]
    results = [result for each in found for result in each.results]
    notes = [note for each in found for note in each.notes]
    passed_over = sum(each.passed_over for each in found)
    if not results:
        keyword = options.lowering.keyword
        if keyword is not None and passed_over:
            raise UsageError(f"-k {keyword} leaves no kernel in {plural(passed_over, 'file')}")
        why = notes or (["one without the word tilelang is run where you name it"] if passed_over else [])
        raise UsageError("; ".join([f"no case to check in {plural(passed_over, 'file')}", *why]))
    notes += [f"{plural(passed_over, 'file')} without a case for these targets passed over"] if passed_over else []
    return Checked(results, [entry for each in found for entry in each.entries], notes, passed_over)


def _checked(options: CheckOptions, project: ProjectCases, interruption: Interruption) -> Checked:
    """Check with the project's settings. Raises UsageError and NoDeviceError."""
    config, chosen = project.config, project.selections
    accepted = replace(project_acceptances(config), rules=options.rules)
    settings = on_device(options.lowering.settings(config, options.scripts), chosen, options.lowering.arch)
    settings = settings.saying(options.execution.words)
    policy = Policy(accepted, options.excusing, options.execution.request(config))
    with (
        working(loudness=settings.loudness, judging=True) as (folder, watcher),
        checking(settings, policy, folder, watcher) as checks,
    ):
        interruption.add(checks.stop)
        found = sorted(checks.results(chosen), key=lambda each: each[1].run.position)
        if options.repeat > 1 and not interruption.number:
            from tlcheck.gate.repetition import Repetition  # which imports what reads facts

            again = Repetition(options.repeat, settings, folder, watcher, interruption.add)
            found = again.judged(found, [each for each in chosen if not each.is_snapshot], checks.judge)
        left_out = 0
        if options.save is not None:
            left_out = _save([lowered for lowered, _ in found], options.save, options.with_inputs)
        results = [result for _, result in found]
        if policy.execute is not None and settings.cluster is None and not interruption.number:
            results = _referred(found, settings, policy, folder, watcher, checks)
        if _asks_why(options, results) and not interruption.number:
            from tlcheck.gate.front_end import FrontEndSearch  # which imports all that executes
            from tlcheck.gate.history import HistorySearch, with_histories

            limit = None if options.why else WHY_SECONDS
            search = HistorySearch(settings, policy, folder, watcher, interruption.add, limit)
            front_end = FrontEndSearch(search, checks.session.cache)
            results = [front_end.told(result) for result in with_histories(results, search)]
        notes = [] if not left_out else [f"inputs of {plural(left_out, 'snapshot')} not kept: they are too large"]
        entries = []
        if options.with_page:
            entries = [_entry(lowered, result) for (lowered, _), result in zip(found, results, strict=True)]
    notes += [*accepted.unused(results), *checks.session.remarks]
    return Checked(results, entries, notes, len(checks.session.passed_over))


def _referred(
    found: Sequence[tuple[Lowered, Result]],
    settings: Settings,
    policy: Policy,
    folder: Path,
    watcher: JudgeWatcher,
    checks: Checks,
) -> list[Result]:
    """The results, those of cases with a reference compared with that."""
    if not any(lowered.run.has_reference for lowered, _ in found):
        return [result for _, result in found]
    from tlcheck.run.references import ReferenceCheck  # which imports all that executes

    assert policy.execute is not None
    return ReferenceCheck(settings, policy, policy.execute, checks.session.cache, folder, watcher).compared(found)


def _asks_why(options: CheckOptions, results: Sequence[Result]) -> bool:
    """Whether to look for since when and by which pass: where the user asks, and else where one kernel is checked."""
    claims = [claim for result in results for claim in result.claims]
    if options.why is not None or not any(claim.blames_compiler or claim.is_of_reference for claim in claims):
        return bool(options.why)
    return options.lowering.cluster is None and len({result.run.case for result in results}) == 1


def _entry(lowered: Lowered, result: Result) -> Entry:
    """Return what a page shows; made at once, since snapshots do not stay."""
    from tlcheck.page.check_page import entry_of  # pages are rarely asked for

    return entry_of(result, read_snapshot(lowered.snapshot) if lowered.snapshot is not None else None)


def _save(found: Sequence[Lowered], folder: Path, with_inputs: bool) -> int:
    """Keep the snapshots that were made, under names that say what they are. Returns how many are without their inputs,
    which are too large.
    """
    names: set[str] = set()
    left_out = 0
    for lowered in found:
        if lowered.snapshot is not None and not lowered.saved:
            name = unique_name(lowered.run.slug, names)
            names.add(name)
            content = lowered.snapshot.read_bytes()
            given = lowered.inputs.given if with_inputs and lowered.inputs is not None else None
            if given is not None:
                text = packed(given)
                left_out += not text
                content = dumps(replace(loads(content.decode()), inputs=text)).encode()
            save(folder / f"{name}.snapshot.json", content)
    return left_out
