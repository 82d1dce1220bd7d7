"""Define what a run on the device showed, as plain data for the reports and the gate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tlcheck import exits
from tlcheck.lower.runs import Run
from tlcheck.run.sanitizer import Sanitized
from tlcheck.verdicts.claim import REFUTED, UNDECIDED, Claim
from tlcheck.verdicts.results import Result
from tlcheck.worker.protocol import Failure

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"

# What a failure that is no finding is called: by its phase, where the device itself did not say.
_BUILD_PHASES = ("start", "import", "compile")
_KERNEL_PHASES = ("launch", "compare")


@dataclass(frozen=True)
class DeviceFinding:
    """One thing wrong on the device. kind: as in `tlcheck.worker.gpu.verification`, or `fault`, `timeout`, `crash`,
    `out-of-memory`, `sanitizer`. inputs: which, with the seed. elements: the first wrong ones.
    """

    kind: str
    buffer: str
    message: str
    inputs: str = ""
    elements: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Timing:
    """Milliseconds by contender (the kernel is ""), as `tlcheck.worker.gpu.timing` has them; the device's floor."""

    times: Mapping[str, Mapping[str, Any]]
    bytes: int
    flops: int
    floor: float


@dataclass(frozen=True)
class DeviceResult:
    """One run on the device.

    status: `passed`, `failed` or `not run`; reason: why not run. trials: numbers of each set of inputs.
    source: `same` as the snapshot's, `different` (with the first lines of the difference) or `unknown`.
    refuted: what is refuted in the same code. unrefuted: where nothing is, who has looked, and what they leave open.
    excused: why a failure is expected.
    """

    run: Run
    status: str
    reason: str = ""
    findings: tuple[DeviceFinding, ...] = ()
    trials: tuple[Mapping[str, Any], ...] = ()
    source: str = "unknown"
    difference: tuple[str, ...] = ()
    refuted: tuple[Claim, ...] = ()
    unrefuted: str = ""
    excused: str = ""
    sanitized: tuple[Sanitized, ...] = ()
    timing: Timing | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def faults(self) -> list[DeviceFinding]:
        """The findings that are the kernel's fault: inputs that are not exact are not."""
        return [found for found in self.findings if found.kind != "inexact-inputs"]

    @property
    def inputs(self) -> int:
        """Return how many sets of inputs were tried."""
        return len(self.trials)

    @property
    def error(self) -> float | None:
        """The largest relative error of all outputs and inputs; None where it is no number."""
        errors = [out["error"] for trial in self.trials for out in trial["outputs"].values() if "error" in out]
        worst = max(map(float, errors), default=math.inf)
        return worst if math.isfinite(worst) else None


def exit_code(results: Iterable[DeviceResult]) -> int:
    """Return the exit code of results; what is expected counts as well."""
    unexcused = {result.status for result in results if not result.excused}
    return exits.exit_code(found=FAILED in unexcused, unchecked=NOT_RUN in unexcused)


def with_verdicts(result: DeviceResult, checked: Result) -> DeviceResult:
    """Add what is refuted in the same code, which may excuse a failure.

    Where judging fails, what was said before stays.
    """
    if checked.failure is not None:
        why = f"{checked.failure.phase}: {checked.failure.message}"
        said = f"{result.unrefuted}; not executed: {why}" if result.unrefuted else f"not judged: {why}"
        return replace(result, unrefuted=said)
    refuted = tuple(claim for claim in checked.claims if claim.verdict == REFUTED)
    found = replace(result, refuted=refuted, unrefuted="" if refuted else _unrefuted(checked.claims))
    return replace(found, excused=excuse(refuted)) if result.status == FAILED else found


def _unrefuted(claims: Sequence[Claim]) -> str:
    """`proofs and execution refute nothing in this code; undecided: ...`."""
    executed = any(claim.basis == "execution" for claim in claims)
    reasons = dict.fromkeys(claim.reason for claim in claims if claim.verdict == UNDECIDED)
    undecided = f"; undecided: {'; '.join(reasons)}" if reasons else ""
    return f"{'proofs and execution' if executed else 'proofs'} refute nothing in this code{undecided}"


def excuse(refuted: Sequence[Claim]) -> str:
    """Return why a failure is no surprise: everything that is refuted is expected or accepted."""
    excuses = [claim.excuse for claim in refuted]
    if not excuses or None in excuses:
        return ""
    return "; ".join(dict.fromkeys(excuse.reason for excuse in excuses if excuse is not None))


def findings_of(trials: Sequence[Mapping[str, Any]]) -> Iterable[DeviceFinding]:
    """Each kind at each output once for each name of inputs: other seeds show the same again."""
    shown: set[tuple[str, ...]] = set()
    for trial in trials:
        for found in trial["findings"]:
            key = (found["kind"], found["buffer"], trial["inputs"])
            if key not in shown:
                shown.add(key)
                label = f"{trial['inputs'] or 'inputs'} of seed {trial['seed']}"
                yield DeviceFinding(found["kind"], found["buffer"], found["message"], label, tuple(found["elements"]))


def finding_of(failure: Failure, fault: str) -> DeviceFinding | None:
    """Return what a process that failed shows about the kernel; None where it never came to run it."""
    if failure.phase in _BUILD_PHASES or failure.kind == "usage":
        return None
    where = f" while it was at {failure.phase}"
    if fault == "out of memory":
        return DeviceFinding("out-of-memory", "", f"{failure.message}{where}")
    if fault and failure.phase in _KERNEL_PHASES:
        return DeviceFinding("fault", "", f"{fault}: the device stopped the kernel ({failure.message})")
    kind = "timeout" if failure.kind == "timeout" else "crash"
    return DeviceFinding(kind, "", f"{failure.message}{where}")
