"""`tlcheck bisect`: which releases have a kernel wrong, and which pass makes it so."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tlcheck import exits
from tlcheck.case import ALL_TARGETS
from tlcheck.cli.execution_options import ExecutionOptions, add_execution_arguments
from tlcheck.cli.lowered import lowered, lowering_session, show_tracebacks, working
from tlcheck.cli.options import LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, read
from tlcheck.cli.projects import one_project
from tlcheck.cli.scripts import add_script_arguments, scripts_of
from tlcheck.errors import UsageError
from tlcheck.execute.request import SOURCE, Request
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds.source_runs import SourceRuns
from tlcheck.files import require_place
from tlcheck.gate import bisect, source_reference
from tlcheck.gate.bisect_passes import judge_passes
from tlcheck.gate.compared_passes import LoweredPasses, compare_passes
from tlcheck.gate.judged_releases import JudgedRelease, judged_releases
from tlcheck.lower.runs import Lowered, Position
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.remedy.configs import judged_configs
from tlcheck.report import bisect_json, bisect_report, shared
from tlcheck.report.bisect_report import Bisected
from tlcheck.report.console import console
from tlcheck.report.outputs import Outputs
from tlcheck.run.examination import RunRequest
from tlcheck.run.suite import DeviceOptions
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.checking import checking, judge_by, with_inputs
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.own_inputs import on_own_inputs
from tlcheck.verdicts.results import Result, exit_code, read_snapshot, unlowered

_CASE_HELP = "FILE[::NAME], a script or a folder of kernel files"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="+", metavar="CASE", help=_CASE_HELP)
    parser.add_argument("--from", dest="first", metavar="TOOLCHAIN", help="the first release (default: the oldest)")
    parser.add_argument("--to", dest="last", metavar="TOOLCHAIN", help="the last one (default: the newest)")
    parser.add_argument(
        "--passes", action="store_true", help="look at the passes of --toolchain, or compare those of --from and --to"
    )
    parser.add_argument(
        "--configs", action="store_true", help="flip each pass configuration that a kernel sets, with one --toolchain"
    )
    add_execution_arguments(parser)
    add_lowering_arguments(parser)
    add_script_arguments(parser)
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the report (default: text)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the report there")


def run(args: argparse.Namespace) -> int:
    _check(args)
    target = Outputs((args.format,), args.output)
    if args.output is not None and not args.output.is_dir():
        require_place(args.output)
    lowering = read(LoweringOptions, args)
    project = one_project(args.cases, lowering.for_kernel_files)
    config, chosen = project.config, project.selections
    _require_files(chosen)
    execution = read(ExecutionOptions, args)
    scripts = None if args.configs else scripts_of(args)
    settings = lowering.settings(config, scripts, every_pass=args.passes).saying(execution.words)
    # Neither an expectation nor an acceptance makes a release right.
    request = execution.request(config)
    if request is not None:  # kernels are judged one after the other, and mostly have one source
        request = replace(request, sources=SourceRuns())
    policy = Policy(excusing=False, execute=request)
    if args.passes and args.first:
        found = _compared(chosen, (args.first, args.last), settings, policy)
    elif args.configs:
        found = _configs(chosen, settings, policy)
    elif args.passes:
        found = _passes(chosen, settings, policy)
    else:
        ends, every = bisect.ends_of(args.first, args.last, config.requirements), bool(args.first and args.last)
        toolchains = bisect.range_of(*ends, config.requirements, every=every)
        found = _releases(chosen, toolchains, settings, policy, everywhere=execution.names_some)
    code = _code(found)
    target.deliver(
        "bisect",
        {
            "text": lambda file: bisect_report.write(console(file), found, verbose=args.verbose),
            "json": lambda file: shared.put(file, bisect_json.render(found, code)),
        },
    )
    if args.verbose:
        show_tracebacks(found.results)
    return code


def _code(found: Bisected) -> int:
    """Return the exit code. Where something is wrong, it does not count that another case is not there."""
    unlowered = not (found.rows or found.configs) and exit_code(found.results, strict=False) == exits.USAGE
    return exits.exit_code(
        usage=unlowered and not found.is_wrong,
        found=found.is_wrong,
        unchecked=found.is_silent or any(result.failure for result in found.results),
    )


def _check(args: argparse.Namespace) -> None:
    """Raises UsageError for options that do not go together."""
    if args.passes and bool(args.first) != bool(args.last):
        raise UsageError("--passes looks at one --toolchain, or at two: then give both --from and --to")
    if args.configs and (args.passes or args.first or args.last):
        raise UsageError("--configs looks at one --toolchain: leave out --passes, --from and --to")
    if args.first and args.toolchain:
        raise UsageError("--toolchain goes with --passes alone: leave it out, or --from and --to")
    if args.toolchain and not (args.passes or args.configs):
        raise UsageError("--toolchain goes with --passes or --configs: give --from and --to for a range of releases")


def _require_files(chosen: Sequence[Selection]) -> None:
    """Raises UsageError for what names a toolchain itself."""
    for selection in chosen:
        if selection.toolchain or selection.is_snapshot:
            raise UsageError(f"{selection.path}: bisecting needs {_CASE_HELP}, without a toolchain")


def _releases(
    chosen: Sequence[Selection], toolchains: Sequence[str], settings: Settings, policy: Policy, *, everywhere: bool
) -> Bisected:
    """Every case with every toolchain, and its source with each against the reference.

    everywhere: whether kernels are executed with those releases, too, that proofs tell apart.
    """
    wanted = [replace(selection, toolchain=toolchain) for toolchain in toolchains for selection in chosen]
    with (
        working(loudness=settings.loudness, judging=True) as (folder, watcher),
        checking(settings, policy, folder, watcher) as checks,
        judge_by(replace(policy, execute=None), settings, watcher, checks.session.cache) as prover,
    ):
        if everywhere or policy.execute is None:
            found = [JudgedRelease(done, result) for done, result in checks.results(wanted)]
        else:
            found = judged_releases(list(checks.session.lower(wanted)), checks.judge.each, prover.each)
        kernels = [one.lowered for one in found]
        written = _as_written(kernels, policy.execute, checks.session) if policy.execute is not None else {}
    results, ends = tuple([one.result for one in found]), checks.session.ends
    proved = {one.lowered.run.position for one in found if not one.executed}
    remarks = [f"{end.run.tilelang}: {remark}" for end in ends for remark in end.remarks]
    remarks += _passed_over(results) if ends and not settings.arch else []
    return Bisected(
        rows=tuple(bisect.rows(results, toolchains, written, proved)), results=results, remarks=tuple(remarks)
    )


def _configs(chosen: Sequence[Selection], settings: Settings, policy: Policy) -> Bisected:
    """Every case as it is, and with each pass configuration flipped that it sets."""
    with (
        working(loudness=settings.loudness, judging=True) as (folder, watcher),
        checking(settings, policy, folder, watcher) as checks,
    ):
        rows, results = judged_configs(checks, chosen)
    return Bisected(configs=tuple(rows), results=tuple(results))


def _passed_over(results: Sequence[Result]) -> Iterator[str]:
    """The archs that nobody asked about: a script runs for one."""
    seen = list(dict.fromkeys(result.run.target for result in results if result.run.target))
    if others := [arch for arch in ALL_TARGETS if arch not in seen]:
        yield f"a script is looked at for one arch, here {', '.join(seen)}; for another: --arch {','.join(others)}"


def _as_written(
    found: Sequence[Lowered], asked: Request, session: Session
) -> dict[Position, source_reference.SourceAnswer]:
    """The answer of the reference for each source, on one set of inputs."""
    settings = session.settings
    options = DeviceOptions(pythonpath=settings.pythonpath)
    with tempfile.TemporaryDirectory(prefix="tlcheck-", ignore_cleanup_errors=True) as folder:
        request = RunRequest((), settings, options)
        return source_reference.with_reference(found, request, asked, Path(folder), session.watcher)


def _passes(chosen: Sequence[Selection], settings: Settings, policy: Policy) -> Bisected:
    """Every case after each pass, and those that cannot be lowered."""
    passes, failed = [], []
    with lowering_session(with_inputs(settings, policy.execute)) as session:
        for done in sorted(session.lower(chosen), key=lambda done: done.run.position):
            session.watcher.stage(f"looking at the passes of {done.run.case} {done.run.target}")
            if done.snapshot is None:
                failed.append(policy.apply(unlowered(done)))
            else:
                snapshot = read_snapshot(done.snapshot)
                passes.append(judge_passes(done.run, snapshot, _request(done, snapshot, policy)))
    return Bisected(passes=tuple(passes), results=tuple(failed))


def _compared(chosen: Sequence[Selection], toolchains: tuple[str, str], settings: Settings, policy: Policy) -> Bisected:
    """Every case after each pass of two compilers, up to where one of them fails."""
    wanted = [replace(selection, toolchain=toolchain) for toolchain in toolchains for selection in chosen]
    sides: dict[tuple[str, str], list[LoweredPasses]] = {}
    compared, failed = [], []
    for done in lowered(wanted, with_inputs(settings, policy.execute)):
        result = policy.apply(unlowered(done)) if done.snapshot is None else None
        failed += [result] if result is not None else []
        if (file := done.snapshot or done.until) is None:
            continue
        mine = sides.setdefault((bisect.case_key(done.run), done.run.target), [])
        snapshot = read_snapshot(file)
        request = _request(done, snapshot, policy) if result is None else None
        mine.append(LoweredPasses(done.run, snapshot, request, result))
        if len(mine) == len(toolchains):
            compared.append(compare_passes(mine[0], mine[1]))
    return Bisected(compared=tuple(compared), results=tuple(failed))


def _request(done: Lowered, snapshot: Snapshot, policy: Policy) -> Request | None:
    """Return how a case is executed: on its own inputs, if any. Raises UsageError where these raise or do not fit."""
    if policy.execute is None:
        return None
    written = next(iter(snapshot.checkpoints.values()))  # before the first of all passes
    try:
        return on_own_inputs(done, replace(snapshot, checkpoints={SOURCE: written}), policy.execute)
    except Stopped as stopped:
        raise UsageError(f"{done.run.case}: {stopped}") from stopped
