"""Options of the commands that run scripts, which are kernel files without a case."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tlcheck.cli.parser import Parser, count
from tlcheck.errors import UsageError
from tlcheck.lower.scripts import Scripts, is_script
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.run.suite import DeviceOptions, Suite
from tlcheck.toolchain.resolve import resolve


def add_script_arguments(parser: Parser) -> None:
    """Add the arguments that say how scripts are run. Their command line stands after `--`."""
    parser.runs_scripts = True
    group = parser.add_argument_group("scripts", "Files without a case are run, with the arguments after `--`.")
    group.add_argument(
        "--max-configs",
        type=count,
        default=Scripts.max_configs,
        metavar="N",
        help=f"capture up to N configurations of an autotuned kernel (default: {Scripts.max_configs})",
    )
    group.add_argument("--keep-going", action="store_true", help="skip scripts that fail before their first kernel")


def scripts_of(args: argparse.Namespace) -> Scripts:
    """Read the options of `add_script_arguments`."""
    return Scripts(args.script_args, args.max_configs, args.keep_going)


def add_live_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--live`, for scripts on a GPU: see `on_device`."""
    parser.add_argument(
        "--live", action="store_true", help="let scripts compile and launch their kernels on this machine's GPU"
    )


def on_device(settings: Settings, chosen: Sequence[Selection], archs: str | None) -> Settings:
    """Settings for live scripts: for the device's arch, one script at a time, in fresh processes, and nothing is kept.

    Any others are as they were. archs: as the user names them. Raises NoDeviceError where there is no GPU, and
    UsageError for what has no meaning with one.
    """
    if settings.scripts is None or not settings.scripts.live:
        return settings
    if not any(map(is_script, chosen)):
        raise UsageError("--live: none of these files is a script, which is a file without cases")
    if settings.scripts.max_configs != Scripts.max_configs:
        raise UsageError(
            "--max-configs has no meaning with --live: the tuner runs, and the configuration that it chooses is"
            " captured"
        )
    arch = _device_archs(settings, chosen)
    asked = settings.arch if archs else arch
    if {name.rstrip("af") for name in asked} != set(arch):
        raise UsageError(f"--arch {archs}: with --live scripts run on the device, which is {', '.join(arch)}")
    return replace(settings, arch=asked, jobs=1, fork=False, cache=False)


def _device_archs(settings: Settings, chosen: Sequence[Selection]) -> tuple[str, ...]:
    """The device's arch, which the torch of each toolchain has to see. Raises NoDeviceError."""
    toolchains = dict.fromkeys(s.toolchain or settings.toolchain for s in chosen if not s.is_snapshot)
    with tempfile.TemporaryDirectory(prefix="tlcheck-") as folder:
        suites = [Suite(resolve(name, settings.requirements), DeviceOptions(), Path(folder)) for name in toolchains]
        return tuple(dict.fromkeys(suite.device()["arch"] for suite in suites))
