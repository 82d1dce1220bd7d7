"""The gate: compare two toolchains on a project's cases, and say whether the upgrade is safe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tlcheck import exits
from tlcheck.cache.store import open_cache
from tlcheck.cost.risen_cost import USUAL, Threshold
from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.gate.compare import outcomes
from tlcheck.gate.device_outcomes import DEVICE
from tlcheck.gate.device_run import DeviceRun, Wanted, run_both
from tlcheck.gate.nvcc import Compiler, uncompiled
from tlcheck.gate.outcome import CLASSES, DEFAULT_FAILING, SAME, LoweredPair, LoweredSide, accepted, unused
from tlcheck.gate.pairing import remarks
from tlcheck.gate.sides import bench_of, sides
from tlcheck.gate.source_outcomes import compare_sources
from tlcheck.lower.scripts import left_out_tests
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings, Watcher
from tlcheck.run.device_results import NOT_RUN
from tlcheck.toolchain.resolve import Toolchain, resolve
from tlcheck.verdicts.acceptance import Acceptances
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.judge import JudgeWatcher, Policy
from tlcheck.verdicts.words import plural

NO_REFERENCE = (
    "a script has no reference to compare with: `tlcheck capture` writes case files for one,"
    " with --live also what kernels leave on a GPU"
)


@dataclass(frozen=True)
class GatePlan:
    """The plan of what to compare and how to judge. before, after: toolchains as the user names them. failing: classes.

    device: how to run it on a GPU too, None for not at all. execute: how to execute it on the CPU, likewise.
    """

    before: str
    after: str
    selections: Sequence[Selection]
    settings: Settings
    acceptances: Acceptances
    failing: tuple[str, ...] = DEFAULT_FAILING
    compiler: Compiler | None = None
    device: Wanted | None = None
    execute: Request | None = None
    threshold: Threshold = USUAL


@dataclass(frozen=True)
class Gate:
    """All comparisons. versions: of both sides. notes: what else is to know. compiler: version of the nvcc that ran.

    device: where the kernels were run, None where that was not asked for. is_partial: whether most tests of scripts did
    not run to their end.
    """

    before: str
    after: str
    versions: tuple[Mapping[str, str], Mapping[str, str]]
    comparisons: tuple[LoweredPair, ...]
    failing: tuple[str, ...]
    notes: tuple[str, ...] = ()
    compiler: str = ""
    device: DeviceRun | None = None
    is_partial: bool = False

    def counts(self) -> Mapping[str, int]:
        """Number of comparisons that have something of each class; one may be in several."""
        found = Counter(klass for compared in self.comparisons for klass in compared.classes)
        return {klass: found[klass] for klass in CLASSES}

    @property
    def failed(self) -> bool:
        return any(number and klass in self.failing for klass, number in self.counts().items())

    @property
    def exit_code(self) -> int:
        """The exit code. A kernel that could be run on a device and was not is not checked."""
        unavailable = self.device is not None and self.device.unavailable
        unchecked = unavailable or any(_unchecked(compared) for compared in self.comparisons)
        return exits.exit_code(found=self.failed, unchecked=unchecked)

    @property
    def seconds(self) -> tuple[float, float]:
        """Processor seconds of lowering what lowers with both toolchains."""
        both = [(c.before.seconds, c.after.seconds) for c in self.comparisons if c.before and c.after]
        measured = [(old, new) for old, new in both if old and new]
        return sum(old for old, _ in measured), sum(new for _, new in measured)


def _unchecked(compared: LoweredPair) -> bool:
    """Fails with the new toolchain (or its CUDA with nvcc), and neither the case expects nor the project accepts it.

    A script's kernel that it no longer compiles counts too: nobody knows what would become of it.
    """
    side = compared.after
    if side is None:
        return compared.captured and compared.klass != SAME
    if side.device is not None and side.device.status == NOT_RUN and not side.device.excused:
        return not any(outcome.kind == DEVICE and outcome.accepted for outcome in compared.outcomes)
    if compared.klass == SAME:
        return False
    compiles = side.compiled is None or not side.compiled.error
    return not compiles or (side.failure is not None and not side.expected)


def gate(plan: GatePlan, folder: Path, watcher: JudgeWatcher) -> Gate:
    """Lower, check and compare everything. folder: for snapshots. Raises UsageError."""
    _require(plan.selections)
    settings = plan.settings
    toolchains = [resolve(name, settings.requirements) for name in (plan.before, plan.after)]
    one = _is_same(*toolchains)
    kept = open_cache(settings.cache)  # verdicts and facts of equal snapshots are the same in any case
    benches = [bench_of(kept, plan.compiler, toolchain) for toolchain in toolchains]
    # By what cases expect; what the project accepts of a gate are differences.
    policy, anew = Policy(execute=plan.execute), replace(settings, cache=settings.cache and not one)
    with checking(anew, policy, folder, watcher, kept) as checks:
        pairs = sides(checks, plan.selections, (plan.before, plan.after), (benches[0], benches[1]))
    session = checks.session
    if not pairs:
        nothing = f"no case to compare in {plural(len(plan.selections), 'file')}"
        raise UsageError("; ".join([nothing, *remarks(session.ends)]))
    device = None
    if plan.device is not None:
        pairs, device = _run(pairs, toolchains, plan.device, folder, watcher)
    if plan.execute is not None and not one:
        pairs = compare_sources(pairs, plan.execute, session.settings, kept, folder, watcher)
    compared = [replace(pair, outcomes=outcomes(pair, one_toolchain=one, threshold=plan.threshold)) for pair in pairs]
    versions = (_versions(p.before for p in pairs), _versions(p.after for p in pairs))
    judged = [accepted(pair, plan.acceptances, versions[1]) for pair in compared]
    passed_over = {str(path) for path in session.passed_over} - {pair.file for pair in pairs}
    notes = [*unused(judged, plan.acceptances, versions[1]), *_notes(passed_over, one), *remarks(session.ends)]
    notes += _device_notes(plan, device, judged)
    notes += uncompiled(pair.target for pair in pairs) if plan.compiler is not None else ()
    compiler = plan.compiler.version if plan.compiler is not None else ""
    partial = any(left_out_tests(session.ends))
    return Gate(plan.before, plan.after, versions, tuple(judged), plan.failing, tuple(notes), compiler, device, partial)


def _run(
    pairs: Sequence[LoweredPair], toolchains: Sequence[Toolchain], wanted: Wanted, folder: Path, watcher: Watcher
) -> tuple[list[LoweredPair], DeviceRun]:
    """See `run_both`. Kernels of scripts have no inputs and no reference. Raises UsageError if there are only these."""
    cases = [pair for pair in pairs if not pair.captured]
    if not cases:
        raise UsageError(NO_REFERENCE)
    ran, device = run_both(cases, toolchains, wanted, folder, watcher)
    shown = iter(ran)
    return [pair if pair.captured else next(shown) for pair in pairs], device


def _require(selections: Sequence[Selection]) -> None:
    """Raises UsageError for what cannot be lowered with two toolchains."""
    for selection in selections:
        if selection.is_snapshot:
            raise UsageError(f"{selection.path} is a saved snapshot: the gate lowers kernel files with both toolchains")
        if selection.toolchain:
            raise UsageError(
                f"{selection.path}@{selection.toolchain}: the gate has its toolchains from --from and --to"
            )


def _is_same(one: Toolchain, other: Toolchain) -> bool:
    return (one.python, one.checkout, dict(one.env)) == (other.python, other.checkout, dict(other.env))


def _versions(found: Iterable[LoweredSide | None]) -> Mapping[str, str]:
    return next((side.result.run.versions for side in found if side is not None), {})


def _notes(passed_over: Collection[str], one_toolchain: bool) -> Iterator[str]:
    if passed_over:
        yield f"{plural(len(passed_over), 'file')} without a case for these targets passed over"
    if one_toolchain:
        yield "both toolchains are the same: everything was lowered twice, what differs is not deterministic"


def _device_notes(plan: GatePlan, device: DeviceRun | None, comparisons: Sequence[LoweredPair]) -> Iterator[str]:
    """Yield why nothing was run, and where something else ran than what was checked."""
    if device is None:
        return
    if captured := sum(compared.captured for compared in comparisons):
        yield f"{plural(captured, 'kernel')} of scripts not run: {NO_REFERENCE}"
    yield from device.notes(plan.before, plan.after)
    for compared in comparisons:
        for name, side in ((plan.before, compared.before), (plan.after, compared.after)):
            if side is not None and side.device is not None and side.device.source == "different":
                first = " ".join(side.device.difference[:3])
                what = f"{compared.case} {compared.target} with {name}"
                yield f"{what}: the CUDA that ran is not the one that was checked: {first}"
