"""Describe how kernels are run on a GPU, from the command line."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from tlcheck.cli.parser import count, positive
from tlcheck.exits import exit_code
from tlcheck.lower.session import Settings
from tlcheck.run.suite import DeviceOptions, NoDeviceError


def add_device_arguments(parser: argparse._ActionsContainer) -> None:
    """Add all of `GpuOptions`."""
    parser.add_argument("--seeds", type=count, metavar="N", help="sets of inputs (default: 3; with --device cpu 1)")
    parser.add_argument("--repeats", type=count, metavar="N", help="runs of each set (default: 3)")
    parser.add_argument("--exact", action="store_true", help="also on inputs with exact sums: results must be equal")
    parser.add_argument("--limit", type=positive, metavar="S", help="seconds on the GPU for one case (default: 120)")
    parser.add_argument(
        "--if-available", action="store_true", help="without a GPU: print a note instead of exit code 3"
    )


@dataclass(frozen=True)
class GpuOptions:
    """The options that `add_device_arguments` adds; None where the user says nothing."""

    seeds: int | None = None
    repeats: int | None = None
    exact: bool = False
    limit: float | None = None
    if_available: bool = False

    @property
    def given(self) -> list[str]:
        """The names of those that the user gave."""
        named = (
            ("--seeds", self.seeds),
            ("--repeats", self.repeats),
            ("--exact", self.exact),
            ("--limit", self.limit),
            ("--if-available", self.if_available),
        )
        return [name for name, value in named if value]

    def device_options(self, settings: Settings) -> DeviceOptions:
        """Return how to run, where the user says nothing in the usual way."""
        return DeviceOptions(
            seeds=self.seeds or 3,
            repeats=self.repeats or 3,
            exact=self.exact,
            limit=self.limit or 120.0,
            jobs=settings.jobs,
            pythonpath=settings.pythonpath,
            pass_configs=settings.pass_configs,
        )


def without_device(missing: NoDeviceError, *, if_available: bool = False, hint: str = "") -> int:
    """Say that there is no GPU; the exit code. if_available: the user is content without one. hint: what to do."""
    print(
        f"tlcheck: {'skipped' if if_available else 'not run'}: no GPU: {missing}{'' if if_available else hint}",
        file=sys.stderr,
    )
    return exit_code(unchecked=not if_available)
