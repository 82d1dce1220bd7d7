"""What the commands that lower kernels have in common on the command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tlcheck.config import Config, naming
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.lower.elsewhere import MachinePool
from tlcheck.lower.scripts import Scripts
from tlcheck.lower.selection import Selection, parse_archs, parse_args, select
from tlcheck.lower.session import Settings
from tlcheck.run.suite import DeviceOptions, NoDeviceError
from tlcheck.targets.lookup import USUAL

if TYPE_CHECKING:
    from tlcheck.report.diff import DiffForm

CASE_HELP = "FILE[::NAME][@TOOLCHAIN], a folder of kernel files, or a saved snapshot"


def add_lowering_arguments(
    parser: argparse.ArgumentParser, *, toolchain: bool = True, archs: str = "what cases declare"
) -> None:
    """All but the CASE itself. toolchain: whether the command works with one of them. archs: the default, in words."""
    parser.add_argument("--arch", metavar="LIST", help=f"comma list such as {','.join(USUAL)} (default: {archs})")
    if toolchain:
        parser.add_argument(
            "--toolchain", metavar="TOOLCHAIN", help="a release, `pinned`, `latest`, `current` or a path"
        )
    else:
        parser.set_defaults(toolchain=None)
    parser.add_argument(
        "--arg", dest="args", action="append", default=[], metavar="NAME=VALUE", help="build argument; may be repeated"
    )
    parser.add_argument(
        "--timeout", type=_positive, default=300.0, metavar="S", help="processor seconds for one kernel (default: 300)"
    )
    parser.add_argument("--jobs", type=count, metavar="N", help="kernels at a time (default: one per processor)")
    parser.add_argument("--no-fork", action="store_true", help="lower each kernel in a process of its own from start")
    parser.add_argument("--no-cache", action="store_true", help="neither use nor keep results of earlier runs")
    said = parser.add_mutually_exclusive_group()
    said.add_argument("-q", "--quiet", action="store_true", help="no progress, and of `check` only what is wrong")
    said.add_argument(
        "-v", "--verbose", action="store_true", help="how many kernels were lowered; tracebacks of what was not"
    )
    parser.add_argument(
        "--pythonpath", action="append", default=[], metavar="DIR", help="where kernels' imports are; may be repeated"
    )


def add_form_arguments(parser: argparse.ArgumentParser) -> None:
    """How differences are shown."""
    parser.add_argument("--format", choices=("text", "markdown"), default="text", help="default: text")
    parser.add_argument("--stat", action="store_true", help="differences in words alone, without the TIR")


def form_of(args: argparse.Namespace) -> DiffForm:
    """From `add_form_arguments`."""
    from tlcheck.report.diff import DiffForm  # which imports what compares: most commands do not

    return DiffForm(markdown=args.format == "markdown", stat=args.stat)


def add_cluster_argument(parser: argparse.ArgumentParser) -> None:
    """Where the work is done."""
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="lower and judge on a Ray cluster: ray://HOST:PORT, HOST:PORT or `auto`"
    )


def _cluster(args: argparse.Namespace) -> MachinePool | None:
    """The cluster that the user names, connected to. Raises UsageError, also for what a cluster does not do."""
    if getattr(args, "cluster", None) is None:
        return None
    for name in ("jobs", "live"):
        if getattr(args, name, None):
            raise UsageError(f"--{name} is for this machine: it has no meaning with --cluster")
    from tlcheck.cluster.connection import connected

    return connected(args.cluster)


def add_device_arguments(parser: argparse._ActionsContainer) -> None:
    """How kernels are run on a GPU. None where the user says nothing: see `device_options`."""
    parser.add_argument("--seeds", type=count, metavar="N", help="sets of inputs (default: 3; with --device cpu 1)")
    parser.add_argument("--repeats", type=count, metavar="N", help="runs of each set (default: 3)")
    parser.add_argument("--exact", action="store_true", help="also on inputs with exact sums: results must be equal")
    parser.add_argument("--limit", type=_positive, metavar="S", help="seconds on the GPU for one case (default: 120)")
    parser.add_argument("--if-available", action="store_true", help="without a GPU: a note, and no exit code 3 for it")


def device_options(args: argparse.Namespace, settings: Settings) -> DeviceOptions:
    """From `add_device_arguments`."""
    return DeviceOptions(
        seeds=args.seeds or 3,
        repeats=args.repeats or 3,
        exact=args.exact,
        limit=args.limit or 120.0,
        jobs=args.jobs,
        pythonpath=settings.pythonpath,
    )


def given_device_options(args: argparse.Namespace) -> list[str]:
    """The names of those that the user gave."""
    names = ("seeds", "repeats", "exact", "limit", "if_available")
    return [f"--{name.replace('_', '-')}" for name in names if getattr(args, name)]


def without_device(missing: NoDeviceError, *, if_available: bool = False, hint: str = "") -> int:
    """Say that there is no GPU; the exit code. if_available: the user is content without one. hint: what to do."""
    print(
        f"tlcheck: {'skipped' if if_available else 'not run'}: no GPU: {missing}{'' if if_available else hint}",
        file=sys.stderr,
    )
    return exit_code(unchecked=not if_available)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of seconds")
    return value


def count(text: str) -> int:
    """A number from one on, as an option's value."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def selections(args: argparse.Namespace, cases: Sequence[str], config: Config) -> list[Selection]:
    """The given cases, else the project's. Raises UsageError, also for options that mean nothing to these cases."""
    chosen = select(cases) if cases else project_paths(config)
    if not chosen:
        raise UsageError(f"nothing to work on: give {CASE_HELP}, or set `paths` in [tool.tlcheck]")
    given = [f"--{name}" for name in ("arch", "toolchain") if getattr(args, name)] + ["--arg"] * bool(args.args)
    runs = getattr(args, "runs_snapshots", False)  # with a toolchain, as `run` does
    if given and not runs and all(selection.is_snapshot for selection in chosen):
        raise UsageError(f"{given[0]} has no meaning for a saved snapshot, which has its own")
    return chosen


def project_paths(config: Config) -> list[Selection]:
    """What the project's `paths` name. Raises UsageError."""
    with naming(config, "paths"):
        return select(os.path.relpath(path) for path in config.paths)


def settings_of(args: argparse.Namespace, config: Config, every_pass: bool = False) -> Settings:
    """How to lower, from the command line and else from the project. Raises UsageError."""
    with naming(None if args.arch is not None else config, "arch"):
        arch = parse_archs(args.arch.split(",") if args.arch is not None else config.arch)
    return Settings(
        toolchain=args.toolchain or config.toolchain,
        toolchain_from="" if args.toolchain else config.place("toolchain"),
        arch=arch,
        args=parse_args(args.args),
        pythonpath=(*map(str, config.pythonpath), *map(os.path.abspath, args.pythonpath)),
        requirements=config.requirements,
        timeout=args.timeout,
        jobs=args.jobs,
        fork=not args.no_fork,
        every_pass=every_pass,
        cache=not args.no_cache,
        scripts=_scripts_of(args),
        cluster=_cluster(args),
        loudness=args.verbose - args.quiet,
    )


def _scripts_of(args: argparse.Namespace) -> Scripts | None:
    """From `cli.scripts.add_script_arguments`; None for a command without it, which runs no scripts."""
    if not hasattr(args, "max_configs"):
        return None
    return Scripts(tuple(getattr(args, "script_args", ())), args.max_configs, args.keep_going)
