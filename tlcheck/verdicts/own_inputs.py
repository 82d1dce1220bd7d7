"""Execution on the inputs that a kernel has of its own."""

from __future__ import annotations

from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.execute.stops import Stopped
from tlcheck.lower.runs import Lowered
from tlcheck.reasons import INPUTS
from tlcheck.snapshot.ir import Snapshot


def on_own_inputs(done: Lowered, snapshot: Snapshot, request: Request) -> Request:
    """The request on the inputs that the case declares, or that the snapshot has with it, if any.

    Raises UsageError, and Stopped where these raise.
    """
    if done.inputs is None:
        from tlcheck.verdicts.judging import with_inputs_of  # which imports all that proves and executes

        return with_inputs_of(request, snapshot)
    failure = done.inputs.failure
    if failure is not None:
        message = f"{failure.phase}: {failure.message}"
        raise UsageError(f"{done.run.case}: {message}") if failure.kind == "usage" else Stopped(message, INPUTS)
    assert done.inputs.given is not None
    try:
        from tlcheck.verdicts.judging import with_given  # as above

        return with_given(request, snapshot, done.inputs.given)
    except UsageError as error:
        raise UsageError(f"{done.run.case}: {done.inputs.given.where}: {error}") from error
