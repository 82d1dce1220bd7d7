"""Options of the commands that run scripts, which are kernel files without a case."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tlcheck.cli.options import count
from tlcheck.errors import UsageError
from tlcheck.lower.scripts import is_script
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.run.suite import DeviceOptions, Suite
from tlcheck.toolchain.resolve import resolve

MAX_CONFIGS = 1
RECORD_LIMIT = 1024  # MiB


def add_script_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of scripts stands after `--`: `tlcheck.cli.main` puts it into `script_args`."""
    group = parser.add_argument_group("scripts", "Files without a case are run, with the arguments after `--`.")
    group.add_argument(
        "--max-configs",
        type=count,
        default=MAX_CONFIGS,
        metavar="N",
        help=f"configurations of an autotuned kernel (default: {MAX_CONFIGS})",
    )
    group.add_argument("--keep-going", action="store_true", help="pass over scripts that end before their first kernel")


def add_live_arguments(parser: argparse.ArgumentParser, *, record: bool) -> None:
    """For scripts on a GPU. record: whether calls of kernels can be kept. See `live_settings`."""
    parser.add_argument(
        "--live", action="store_true", help="scripts have this machine's GPU: kernels are compiled and launched"
    )
    if record:
        parser.add_argument(
            "--record-limit",
            type=count,
            metavar="MIB",
            help=f"with --live: tensors of one call that are kept at most (default: {RECORD_LIMIT})",
        )


def live_settings(args: argparse.Namespace, settings: Settings, chosen: Sequence[Selection]) -> Settings:
    """From `add_live_arguments`: for the device's arch, one script at a time, in fresh processes, and nothing is kept.

    Raises NoDeviceError where there is no GPU, and UsageError for what has no meaning with or without one.
    """
    limit = getattr(args, "record_limit", None)
    if not args.live:
        _refuse(limit is not None, "--record-limit has a meaning with --live only")
        return settings
    _refuse(not any(map(is_script, chosen)), "--live: none of these files is a script, which is a file without cases")
    _refuse(
        args.max_configs != MAX_CONFIGS,
        "--max-configs has no meaning with --live: the tuner runs, and the configuration that it chooses is captured",
    )
    assert settings.scripts is not None
    kept = (limit or RECORD_LIMIT) * 2**20 if hasattr(args, "record_limit") else 0
    scripts = replace(settings.scripts, live=True, record_limit=kept)
    arch = _device_archs(settings, chosen)
    asked = settings.arch if args.arch else arch
    _refuse(
        {name.rstrip("af") for name in asked} != set(arch),
        f"--arch {args.arch}: with --live scripts run on the device, which is {', '.join(arch)}",
    )
    return replace(settings, arch=asked, jobs=1, fork=False, cache=False, scripts=scripts)


def _refuse(wrong: bool, message: str) -> None:
    if wrong:
        raise UsageError(message)


def _device_archs(settings: Settings, chosen: Sequence[Selection]) -> tuple[str, ...]:
    """The device's arch, which the torch of each toolchain has to see. Raises NoDeviceError."""
    toolchains = dict.fromkeys(s.toolchain or settings.toolchain for s in chosen if not s.is_snapshot)
    with tempfile.TemporaryDirectory(prefix="tlcheck-") as folder:
        suites = [Suite(resolve(name, settings.requirements), DeviceOptions(), Path(folder)) for name in toolchains]
        return tuple(dict.fromkeys(suite.device()["arch"] for suite in suites))
