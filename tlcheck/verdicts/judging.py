"""Judging a snapshot: from what it holds to verdicts, whatever becomes of it.

`end_with_parent` and `serve` are all that a judging process does.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.errors import UsageError
from tlcheck.execute.request import SOURCE, GivenInputs, Request
from tlcheck.execute.stops import MEMORY
from tlcheck.execute.worlds.source_runs import SourceRuns
from tlcheck.lower.runs import Run
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.atomic_claims import judge_atomics
from tlcheck.verdicts.causes import by_cause
from tlcheck.verdicts.claim import Claim, adds_wrong, on_device, with_content
from tlcheck.verdicts.kept import Verdicts, dumps
from tlcheck.verdicts.launch_limits import with_launch
from tlcheck.verdicts.results import Result, internal_failure, result_of
from tlcheck.worker.protocol import Failure

_PROOFS = 600.0
_RECURSION = 20_000  # frames: several for each of the nodes that a snapshot may have in each other
_MEMORY = 1 << 32  # bytes of a judging process, beside twice the budget of executions


def serve(descriptor: int) -> None:
    """Judge the snapshots whose files come in, one after the other, until the other side is closed."""
    sys.setrecursionlimit(_RECURSION)
    sources = SourceRuns()
    with Connection(descriptor) as asked, suppress(EOFError, BrokenPipeError):
        while True:
            file = Path(os.fsdecode(asked.recv_bytes()))
            request, inputs = pickle.loads(asked.recv_bytes())
            _limit_memory(request)
            if request is not None and request.sources is not None:
                request = replace(request, sources=sources)
            found = _verdicts_in(file, request, inputs)
            asked.send_bytes(dumps(found))
            if any(claim.code == MEMORY.code for claim in found.claims):
                os.execv(sys.executable, sys.orig_argv)  # what has filled the memory may still be there: begin anew


def end_with_parent() -> None:
    """Look now and then, from a thread of its own, whether the parent is gone, and end: who would have the verdicts?

    prctl's signal comes when the thread ends that made this process, which may be before its process does.
    """

    def watch(parent: int) -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()


def _limit_memory(request: Request | None) -> None:
    """Limit the memory for computing and proofs; what the simulated machine holds is counted apart."""
    wanted = _MEMORY + (0 if request is None else 2 * request.budget.bytes)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard < 0 else min(wanted, hard), hard))


def _verdicts_in(file: Path, request: Request | None, inputs: GivenInputs | None) -> Verdicts:
    try:
        with _uncollected():
            snapshot = codec.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return Verdicts(failure=internal_failure(error))
    if request is not None:
        try:
            request = with_inputs_of(request, snapshot) if inputs is None else with_given(request, snapshot, inputs)
        except UsageError as error:
            where = "" if inputs is None else inputs.where
            return Verdicts(failure=Failure("usage", "inputs", str(error), where=where))
        except (OSError, ValueError) as error:
            return Verdicts(failure=internal_failure(error))
    return verdicts_of(snapshot, request)


def with_inputs_of(request: Request, snapshot: Snapshot) -> Request:
    """The request with the inputs that a snapshot has with it, if it has any. Raises UsageError where they do not fit
    the kernel.
    """
    if not snapshot.inputs:
        return request
    from tlcheck.execute.worlds.stored_inputs import unpacked  # as below

    with unpacked(snapshot.inputs) as inputs:
        return with_given(request, snapshot, inputs)


def with_given(request: Request, snapshot: Snapshot, inputs: GivenInputs) -> Request:
    """The request with a case's own inputs, or with what a script passed. Raises UsageError where a case's do not fit
    the kernel.
    """
    from tlcheck.execute.worlds import given  # for proofs alone nothing of execution is imported
    from tlcheck.execute.worlds.inputs import known

    if SOURCE not in snapshot.checkpoints:
        return request
    function = snapshot.checkpoints[SOURCE]
    if inputs.captured:
        first, *others = given.called(function, inputs, request) or [request]
        return replace(first, further=tuple(others))
    sets = given.tensors(function, inputs)
    seeds = given.alike(sets)
    sizes = known(function, sets[seeds[0]])
    given.require_shapes(function, sets[seeds[0]], sizes)
    return replace(request, seeds=seeds, given=sets, poisoned=given.poisoned(function, inputs.updates))


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """End what takes longer, in seconds of the processor, with TimeoutError; again and again where that is caught.

    Only in the main thread of a process that has no such timer of its own.
    """
    alone = threading.current_thread() is threading.main_thread()
    if not alone or signal.getitimer(signal.ITIMER_VIRTUAL)[0]:
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds / 10)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Put off collections: what reading and proving make stays until the snapshot is judged, and is gone through again
    and again.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _end(*_: object) -> NoReturn:
    raise TimeoutError("proofs without an end")


def verdicts_of(snapshot: Snapshot, request: Request | None = None, seconds: float = _PROOFS) -> Verdicts:
    """Judge a snapshot. request: how it is executed; None where it is not. seconds: of the processor, for proofs.

    A fault of tlcheck's own is this snapshot's failure: the others go on.
    """
    try:
        with _limited(seconds), _uncollected():
            report = judge_atomics(snapshot)
    except TimeoutError:
        message = f"the proofs took more than {seconds:g} s of the processor"
        return Verdicts(failure=Failure("timeout", "check", message), pass_configs=snapshot.pass_configs)
    except Exception as error:
        return Verdicts(failure=internal_failure(error), pass_configs=snapshot.pass_configs)
    try:
        explained = {claim.buffer for claim in report.claims if adds_wrong(claim)}
        found, digest, cost = ((), "", None) if request is None else _executed(snapshot, request, explained)
    except UsageError as error:  # blocks that are not in the grid
        return Verdicts(failure=Failure("usage", "execute", str(error)), pass_configs=snapshot.pass_configs)
    except Exception as error:
        return Verdicts(failure=internal_failure(error), pass_configs=snapshot.pass_configs)
    failure = Failure("check", "check", report.problem) if report.problem and not found else None
    found = on_device(report.claims, found)
    sizes = _given_sizes(found) if request is not None and request.given is not None and not request.captured else {}
    claims = with_launch(snapshot, by_cause(with_content(report.claims, found) + found), sizes)
    return Verdicts(
        claims,
        failure,
        snapshot.pass_configs,
        report.unjudged,
        source_digest=digest,
        cost=cost,
    )


def _given_sizes(claims: tuple[Claim, ...]) -> Mapping[str, int]:
    """The sizes of symbolic shapes that the case's own inputs have."""
    return next((claim.executed.sizes for claim in claims if claim.executed is not None), {})


def _executed(
    snapshot: Snapshot, request: Request, explained: Collection[str]
) -> tuple[tuple[Claim, ...], str, KernelCost | None]:
    """The claims, the digest of what the source left, and the cost where it is asked for and can be counted.

    explained: outputs to which a refuted atomic adds.
    """
    from tlcheck.cost.measure import cost_by  # as above
    from tlcheck.execute.compare.diagnosis import diagnose
    from tlcheck.execute.compare.executions import executed
    from tlcheck.scope.block_scope import missing, representatives
    from tlcheck.scope.overlaps import shared
    from tlcheck.verdicts.execution_claims import claims_of

    request = replace(request, representatives=representatives, missing=missing, overlap=shared)
    done, request = executed(snapshot, request)
    cost = None if done.counts is None else cost_by(done.counts, snapshot)
    done = replace(done, counts=None)
    return claims_of(snapshot, diagnose(snapshot, request, done, explained=explained), request), done.digest, cost


def judged(run: Run, snapshot: Snapshot) -> Result:
    """Judge a snapshot here and now, by no policy."""
    return result_of(run, verdicts_of(snapshot))
