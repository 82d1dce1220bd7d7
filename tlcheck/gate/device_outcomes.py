"""Find what differs in what a device shows of the kernels of two toolchains."""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.gate.outcome import FAILS_IN_BOTH, LoweredPair, LoweredSide, Outcome
from tlcheck.run.device_results import FAILED, NOT_RUN, PASSED, DeviceFinding, DeviceResult
from tlcheck.verdicts.words import element_in_words

DEVICE = "device"  # kind of these outcomes
_ELEMENTS = 4  # wrong ones that are shown


def device_outcomes(before: LoweredSide, after: LoweredSide, *, one_toolchain: bool) -> Iterator[Outcome]:
    """Yield at most one outcome: a kernel that fails now and did not is wrong, whatever could be proved of it."""
    old, new = before.device, after.device
    if old is None or new is None:
        return
    line = after.line
    if one_toolchain and brief(old) != brief(new):
        words = f"not deterministic: run twice with one toolchain, it {_did(old)}, then it {_did(new)}"
        yield Outcome("changed", DEVICE, "", "not deterministic on the device", words, line=line)
    elif new.status == FAILED:
        klass, was = (FAILS_IN_BOTH, "too") if old.status == FAILED else ("wrong", "now")
        expected = f"; the case expects it of this release: {new.excused}" if new.excused else ""
        words = f"fails on the device {was}: {_said(new)}; before it {_did(old)}{expected}"
        yield Outcome(klass, DEVICE, brief(old), brief(new), words, line=line, detail=_elements(new))
    elif new.status == PASSED and (old.status == FAILED or _could_not(old)):
        words = f"passes on the device now; before it {_did(old)}"
        yield Outcome("fixed", DEVICE, brief(old), brief(new), words, line=line)
    elif _could_not(new) and old.status != NOT_RUN:
        words = f"cannot be run on the device now: {new.reason}; before it {_did(old)}"
        yield Outcome("broken", DEVICE, brief(old), brief(new), words, line=line)


def brief(result: DeviceResult) -> str:
    """`passed`, `failed (misaligned address)`, `not run`: equal for equal results of different kernels."""
    if result.status != FAILED:
        return result.status
    return f"{FAILED} ({', '.join(dict.fromkeys(_name(found) for found in result.faults))})"


def evidence_in_words(compared: LoweredPair) -> str:
    """`failed (misaligned address) -> passed`, `not run (another arch)`; empty without a device run."""
    sides = [_side_in_words(side) for side in (compared.before, compared.after)]
    if not any(side is not None and side.device is not None for side in (compared.before, compared.after)):
        return ""
    return sides[0] if sides[0] == sides[1] and sides[0].startswith(NOT_RUN) else " -> ".join(sides)


def _side_in_words(side: LoweredSide | None) -> str:
    if side is None or side.device is None:
        return "not declared"
    first = side.device.excused or side.device.reason.partition("\n")[0]
    return f"{NOT_RUN} ({first})" if side.device.status == NOT_RUN else brief(side.device)


def _could_not(result: DeviceResult) -> bool:
    """Was to be run, and never came to it: it does not compile there, for instance."""
    return result.status == NOT_RUN and not result.excused


def _did(result: DeviceResult) -> str:
    """The end of a sentence about the kernel."""
    if result.status == PASSED:
        return "passed"
    return f"failed: {_said(result)}" if result.status == FAILED else f"was not run: {result.reason}"


def _said(result: DeviceResult) -> str:
    """The first finding in the device's own words."""
    found = result.faults[0]
    where = f" ({found.inputs})" if found.inputs else ""
    return f"{found.kind}: {f'{found.buffer}: ' if found.buffer else ''}{found.message}{where}"


def _name(found: DeviceFinding) -> str:
    """Return what the device calls a fault, else the kind of finding."""
    return found.message.partition(":")[0] if found.kind == "fault" else found.kind


def _elements(result: DeviceResult) -> str:
    """The first wrong elements, a line for each."""
    shown = [(found.buffer, element) for found in result.faults for element in found.elements]
    return "\n".join(element_in_words(buffer, element) for buffer, element in shown[:_ELEMENTS])
