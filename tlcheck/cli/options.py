"""Describe how kernels are lowered, from the command line and else from the project."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tlcheck.cli.parser import count, positive
from tlcheck.config import Config, naming
from tlcheck.errors import UsageError
from tlcheck.lower.keyword import parse_keyword
from tlcheck.lower.machines import MachinePool
from tlcheck.lower.scripts import Scripts
from tlcheck.lower.selection import parse_archs, parse_args, parse_pass_configs
from tlcheck.lower.session import Settings
from tlcheck.report.outputs import formats
from tlcheck.targets.lookup import USUAL

if TYPE_CHECKING:
    from tlcheck.report.diff_text import DiffForm

CASE_HELP = "FILE[::NAME][@TOOLCHAIN], FILE:LINE, a folder of kernel files, or a saved snapshot"
REPEAT_HELP = "lower each kernel N times in fresh processes, and judge each form (default: 1)"
_TIMEOUT = 300.0


def add_lowering_arguments(
    parser: argparse.ArgumentParser,
    *,
    toolchain: bool = True,
    archs: str = "what cases declare",
    cluster: bool = False,
) -> None:
    """Add all of `LoweringOptions`. archs: the default, in words.

    toolchain: whether the command works with one of them. cluster: whether it can work on a cluster.
    """
    parser.add_argument("--arch", metavar="LIST", help=f"comma list such as {','.join(USUAL)} (default: {archs})")
    if toolchain:
        parser.add_argument(
            "--toolchain", metavar="TOOLCHAIN", help="a release, `pinned`, `latest`, `current` or a path"
        )
    parser.add_argument(
        "--arg", dest="args", action="append", default=[], metavar="NAME=VALUE", help="build argument; may be repeated"
    )
    parser.add_argument(
        "--pass-config",
        dest="pass_configs",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="override a pass configuration of the kernel, such as TL_DISABLE_WGMMA=True; may be repeated",
    )
    parser.add_argument(
        "-k",
        dest="keyword",
        metavar="EXPR",
        help="only kernels or tests whose names match, such as 'sparse and not fp8'",
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=_TIMEOUT,
        metavar="S",
        help="processor seconds for one kernel (default: 300)",
    )
    parser.add_argument("-j", "--jobs", type=count, metavar="N", help="kernels at a time (default: one per processor)")
    parser.add_argument("--no-fork", action="store_true", help="lower each kernel in a fresh process (slower)")
    parser.add_argument("--no-cache", action="store_true", help="do not use results of earlier runs, and keep none")
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="show no progress; `check` shows only problems")
    loudness.add_argument("-v", "--verbose", action="store_true", help="show more: claims, TIR, tracebacks of errors")
    parser.add_argument(
        "--pythonpath",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder from which kernels import; may be repeated",
    )
    if cluster:
        parser.add_argument(
            "--cluster",
            metavar="ADDRESS",
            help="lower and judge on a Ray cluster: ray://HOST:PORT, HOST:PORT or `auto`",
        )
    parser.set_defaults(**{name: None for name, has in (("toolchain", toolchain), ("cluster", cluster)) if not has})


@dataclass(frozen=True)
class LoweringOptions:
    """The options that `add_lowering_arguments` adds; None where the user says nothing, and the project decides.

    arch: a comma list. keyword: an expression. args, pass_configs: texts `NAME=VALUE`. cluster: its address.
    """

    arch: str | None = None
    toolchain: str | None = None
    args: tuple[str, ...] = ()
    pass_configs: tuple[str, ...] = ()
    timeout: float = _TIMEOUT
    jobs: int | None = None
    no_fork: bool = False
    no_cache: bool = False
    quiet: bool = False
    verbose: bool = False
    pythonpath: tuple[str, ...] = ()
    cluster: str | None = None
    keyword: str | None = None

    @property
    def for_kernel_files(self) -> list[str]:
        """The given options that mean nothing for a saved snapshot."""
        named = (
            ("--arch", self.arch),
            ("--toolchain", self.toolchain),
            ("--arg", self.args),
            ("--pass-config", self.pass_configs),
            ("-k", self.keyword),
        )
        return [name for name, value in named if value]

    @property
    def words(self) -> tuple[str, ...]:
        """Return what the user says of the kernels, for other commands about them."""
        found = (("--arch", self.arch), ("--toolchain", self.toolchain))
        return (*(word for name, value in found if value for word in (name, value)), *self._of_kernels())

    def settings(self, config: Config, scripts: Scripts | None = None, *, every_pass: bool = False) -> Settings:
        """Return how to lower. scripts: how they are run; None for a command that runs none. Raises UsageError."""
        if self.pass_configs and scripts is not None and scripts.live:
            raise UsageError("--pass-config has no meaning with --live: TileLang itself compiles the kernels")
        with naming(None if self.arch is not None else config, "arch"):
            arch = parse_archs(self.arch.split(",") if self.arch is not None else config.arch)
        return Settings(
            toolchain=self.toolchain or config.toolchain,
            toolchain_from="" if self.toolchain else config.place("toolchain"),
            arch=arch,
            args=parse_args(self.args),
            pass_configs=parse_pass_configs(self.pass_configs),
            pythonpath=(*map(str, config.pythonpath), *map(os.path.abspath, self.pythonpath)),
            requirements=config.requirements,
            timeout=self.timeout,
            jobs=self.jobs,
            fork=not self.no_fork,
            every_pass=every_pass,
            cache=not self.no_cache,
            scripts=scripts,
            cluster=self._cluster(live=scripts is not None and scripts.live),
            loudness=self.verbose - self.quiet,
            said=self._said(scripts),
            keyword=parse_keyword(self.keyword) if self.keyword is not None else None,
        )

    def _said(self, scripts: Scripts | None) -> tuple[str, ...]:
        """The words that a command about the same kernels needs; a script's own stand last, after `--`."""
        words = self._of_kernels()
        if scripts is not None and scripts.max_configs != Scripts.max_configs:
            words += ["--max-configs", str(scripts.max_configs)]
        return (*words, *(("--", *scripts.args) if scripts is not None and scripts.args else ()))

    def _of_kernels(self) -> list[str]:
        words = [word for arg in self.args for word in ("--arg", arg)]
        words += [word for one in self.pass_configs for word in ("--pass-config", one)]
        return words + [word for folder in self.pythonpath for word in ("--pythonpath", folder)]

    def _cluster(self, *, live: bool) -> MachinePool | None:
        """The cluster that the user names, connected to. Raises UsageError, also for what a cluster does not do."""
        if self.cluster is None:
            return None
        for name, given in (("jobs", self.jobs), ("live", live)):
            if given:
                raise UsageError(f"--{name} is for this machine: it has no meaning with --cluster")
        from tlcheck.cluster.connection import connected

        return connected(self.cluster)


def add_report_arguments(parser: argparse.ArgumentParser, known: Sequence[str]) -> None:
    """Add the arguments that say which reports are written, of those that are known, and where to."""
    read, names = partial(formats, known=known), ", ".join(known)
    parser.add_argument("--format", type=read, default="text", metavar="LIST", help=f"{names} (default: text)")
    parser.add_argument("-o", "--output", type=Path, metavar="PATH", help="a file, or a folder for several formats")


def add_form_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how differences are shown."""
    parser.add_argument("--format", choices=("text", "markdown"), default="text", help="default: text")
    parser.add_argument("--stat", action="store_true", help="describe differences in words, without the TIR")


def form_of(args: argparse.Namespace) -> DiffForm:
    """Read the options of `add_form_arguments`."""
    from tlcheck.report.diff_text import DiffForm  # which imports what compares: most commands do not

    return DiffForm(markdown=args.format == "markdown", stat=args.stat)
