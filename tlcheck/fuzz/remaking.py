"""A kernel of a campaign, made again from its number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.fuzz.campaign_folder import logged_as, weights_of
from tlcheck.fuzz.making import FuzzedKernel, make
from tlcheck.fuzz.seeds import SeedKernel


def remade(folder: Path, number: int, seeds: Sequence[SeedKernel]) -> FuzzedKernel:
    """Return the kernel that a campaign had under a number. seeds: those of the campaign.

    Raises UsageError if the campaign had no such kernel, or made it of something else.
    """
    made, weights = logged_as(folder, number), weights_of(folder, number)
    if made is None:
        raise UsageError(f"{folder} has no kernel {number}: the numbers are the first in each line of log.jsonl")
    if weights is None:
        raise UsageError(f"{folder} has no weights.jsonl, by which its kernels were drawn: fuzz into a new folder")
    kernel = make(number, seeds, weights)
    if kernel.made != made:
        raise UsageError(f"kernel {number} was made from {made}, not from {kernel.made}: give the campaign's SEEDs")
    return kernel
