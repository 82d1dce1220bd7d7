"""Targets by the name of their arch."""

from __future__ import annotations

from collections.abc import Iterable

from tlcheck.errors import UsageError, did_you_mean
from tlcheck.targets import amd, nvidia
from tlcheck.targets.target import Target

TARGETS = {target.arch: target for target in (*nvidia.TARGETS, *amd.TARGETS)}
USUAL = ("sm_80", "sm_90")  # those that a kernel is for whose file names none
_PLAIN = [arch for arch in TARGETS if arch[-1].isdigit()]


def target(arch: str) -> Target:
    """The target with this name. Raises UsageError for one that is not known."""
    found = TARGETS.get(arch)
    if found is None:
        known = f"{', '.join(_PLAIN)} (with an `a` or `f` where CUDA has it)"
        raise UsageError(f"unknown arch {arch!r}; known: {known}{did_you_mean(arch, TARGETS)}")
    return found


def warp_of(arch: str) -> int:
    """Threads of a warp of an arch; as the usual targets have it for one that is not known."""
    return TARGETS.get(arch, TARGETS[USUAL[-1]]).warp


def rows_of(archs: Iterable[str]) -> list[int]:
    """Rows of these archs in the table of the device library, if it has any for them. Raises UsageError."""
    return [row for arch in archs if (row := target(arch).measured) is not None]
