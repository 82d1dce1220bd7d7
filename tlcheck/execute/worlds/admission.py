"""Refuse kernels whose execution would say nothing of the device, before anything runs."""

from __future__ import annotations

from itertools import chain

from tlcheck import reasons
from tlcheck.execute.request import LOWERED, SOURCE
from tlcheck.execute.schedule.launches import kernels
from tlcheck.execute.stops import NotModelled
from tlcheck.program.dependent_launch import access_ahead
from tlcheck.program.generated import lost_values, refusals
from tlcheck.program.release import Release
from tlcheck.program.restrict import read_early
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Function, Snapshot
from tlcheck.snapshot.walk import statements
from tlcheck.targets.target import Target


def require_modelled(snapshot: Snapshot, checkpoint: Checkpoint, target: Target) -> None:
    """Raise NotModelled for what the source, or the kernel at this checkpoint, has and nobody executes."""
    lowered = snapshot.checkpoints[checkpoint]
    for function in (snapshot.checkpoints[SOURCE], lowered):
        _require_values(function)
    if checkpoint == LOWERED:
        _require_printed(snapshot, lowered, target)


def _require_values(function: Function) -> None:
    """Raise NotModelled where a function uses what no call returns, or what the kernel ahead may still change."""
    for lost in chain.from_iterable(map(lost_values, statements(function.body))):
        raise NotModelled(f"the value of {lost.value}, which returns none")
    ahead = access_ahead(kernels(function))
    if ahead is not None:
        raise NotModelled(
            f"an access of {ahead[0]} before T.pdl_sync, while the kernel ahead may still run{_at(ahead[1])}"
        )


def _require_printed(snapshot: Snapshot, lowered: Function, target: Target) -> None:
    """Raise NotModelled where the CUDA that is made of the last checkpoint is refused, or means something else."""
    for refused in refusals(lowered, Release.among(snapshot.toolchain), target):
        raise NotModelled(refused, reasons.CUDA)
    early = read_early(lowered, snapshot.cuda) if target.kind == "cuda" else None
    if early is not None:
        what = f"{early[0]} is __restrict__: nvcc may read before a barrier what another thread stores{_at(early[1])}"
        raise NotModelled(what, reasons.CUDA)


def _at(line: int) -> str:
    return f" (line {line})" if line else ""
