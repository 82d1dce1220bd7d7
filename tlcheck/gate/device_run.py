"""Describe what a GPU shows of both sides of every comparison: one toolchain's kernels are run after the other's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tlcheck.gate.outcome import LoweredPair, LoweredSide
from tlcheck.lower.session import Watcher
from tlcheck.run import circumstances
from tlcheck.run.device_results import NOT_RUN, DeviceResult
from tlcheck.run.suite import DeviceCase, DeviceOptions, NoDeviceError, Suite
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.results import read_snapshot


@dataclass(frozen=True)
class Wanted:
    """The way to run kernels. args: build arguments, as text. if_available: a missing GPU is no more than a note."""

    options: DeviceOptions
    args: Mapping[str, str]
    if_available: bool = False


@dataclass(frozen=True)
class FoundDevice:
    """The GPU as one toolchain's torch sees it (as in `Suite.device`), or why there is none."""

    device: Mapping[str, Any]
    missing: str = ""


@dataclass(frozen=True)
class DeviceRun:
    """A record of how both sides were run. clocks: before and after. commit: of the kernels."""

    wanted: Wanted
    before: FoundDevice
    after: FoundDevice
    clocks: tuple[Mapping[str, str], Mapping[str, str]]
    date: str
    commit: str

    @property
    def unavailable(self) -> bool:
        """Whether a GPU is missing that has to be there."""
        return bool(self.before.missing or self.after.missing) and not self.wanted.if_available

    def notes(self, before: str, after: str) -> list[str]:
        """A line for each reason why nothing was run. before, after: the toolchains as the user names them."""
        if self.before.missing == self.after.missing:
            return [f"no GPU: {self.after.missing}: nothing was run"] if self.after.missing else []
        sides = ((before, self.before), (after, self.after))
        return [f"no GPU with {name}: {found.missing}: nothing was run" for name, found in sides if found.missing]


def run_both(
    pairs: Sequence[LoweredPair], toolchains: Sequence[Toolchain], wanted: Wanted, folder: Path, watcher: Watcher
) -> tuple[list[LoweredPair], DeviceRun]:
    """The comparisons with the device's results on both sides. folder: for files on the way. Raises UsageError."""
    clocks, date = circumstances.clocks(), circumstances.now()
    old, before = _run([pair.before for pair in pairs], toolchains[0], wanted, folder / "device-before", watcher)
    new, after = _run([pair.after for pair in pairs], toolchains[1], wanted, folder / "device-after", watcher)
    both = [replace(pair, before=one, after=other) for pair, one, other in zip(pairs, old, new, strict=True)]
    commit = circumstances.commit(Path(pairs[0].file).absolute().parent)
    return both, DeviceRun(wanted, before, after, (clocks, circumstances.clocks()), date, commit)


def _run(
    sides: Sequence[LoweredSide | None], toolchain: Toolchain, wanted: Wanted, folder: Path, watcher: Watcher
) -> tuple[list[LoweredSide | None], FoundDevice]:
    """One toolchain's sides, each with its result."""
    folder.mkdir()
    suite = Suite(toolchain, wanted.options, folder)
    watcher.stage(f"{toolchain.name}: looking at the device")
    try:
        found = FoundDevice(suite.device())
    except NoDeviceError as error:
        found = FoundDevice({}, str(error))
    prepared = [_prepared(side, found, wanted.args) if side is not None else None for side in sides]
    subjects = [item for item in prepared if isinstance(item, DeviceCase)]
    results = {result.run.position: result for result in suite.run(subjects, watcher)}
    shown = [results[item.run.position] if isinstance(item, DeviceCase) else item for item in prepared]
    return [replace(s, device=r) if s is not None else None for s, r in zip(sides, shown, strict=True)], found


def _prepared(side: LoweredSide, found: FoundDevice, args: Mapping[str, str]) -> DeviceCase | DeviceResult:
    """Return what can be run, or why it cannot: that is told elsewhere too, or nothing to be told, hence excused."""
    run, failure = side.result.run, side.failure
    if found.missing:
        return DeviceResult(run, NOT_RUN, f"no GPU: {found.missing}", excused="no GPU")
    if side.snapshot is None:
        reason = f"{failure.phase}: {failure.message}" if failure is not None else "not lowered"
        return DeviceResult(run, NOT_RUN, reason, excused="does not lower")
    if run.target != found.device["arch"]:
        reason = f"made for {run.target}, the device is {found.device['arch']}"
        return DeviceResult(run, NOT_RUN, reason, excused="another arch")
    return DeviceCase(run, read_snapshot(side.snapshot), side.result, args)
