"""`tlcheck init`: settings, first cases and a CI workflow for a project, from the kernels that its tests compile."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from tlcheck import __version__
from tlcheck.cli import check
from tlcheck.cli.interruption import stoppable
from tlcheck.cli.lowered import lowering_session
from tlcheck.cli.options import LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, read
from tlcheck.cli.pins import pinned_release
from tlcheck.cli.scripts import add_script_arguments, scripts_of
from tlcheck.config import Config, read_config
from tlcheck.errors import UsageError
from tlcheck.files import make_folder, save
from tlcheck.lower.captured import write
from tlcheck.lower.reach import Reach
from tlcheck.lower.selection import Selection, select
from tlcheck.lower.session import Settings
from tlcheck.targets.lookup import USUAL
from tlcheck.toolchain.releases import PINNED
from tlcheck.toolchain.resolve import resolve
from tlcheck.worker.capture.pytests import is_test

_SECONDS = 300.0  # of wall time for the tests of a project of which the user names none
_CASES = Path("cases")
_PROJECT = Path("pyproject.toml")
_WORKFLOW = Path(".github", "workflows", "tilelang-gate.yml")
_TEMPLATE = Path(__file__).with_name(_WORKFLOW.name)
_TABLE = """\
[tool.tlcheck]
paths = [{paths}]  # what `tlcheck check` and `tlcheck gate` work on
toolchain = {toolchain}  # the TileLang that is deployed
pythonpath = [{pythonpath}]  # where the kernels' own imports are found
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "scripts",
        nargs="*",
        metavar="SCRIPT",
        help="files that compile kernels (default: tests whose imports reach TileLang)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite what is there without asking")
    add_lowering_arguments(parser, archs=USUAL[-1])
    add_script_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Capture the kernels, write everything, and check what was written: its exit code."""
    config = read_config(Path.cwd())
    _require_own_project(config)
    has_table = config.file == _PROJECT.absolute()
    if not has_table:
        config = replace(config, pythonpath=_import_folders())
    config = _with_pin(config, args.toolchain)
    lowering = read(LoweringOptions, args)
    settings = lowering.settings(config, scripts_of(args))
    resolve(settings.toolchain, settings.requirements)  # what is missing is said before anything is asked
    scripts = _scripts(args.scripts)
    files = [_CASES / f"{script.path.stem}_cases.py" for script in scripts]
    writes_cases = all(_may_write(file, args.force) for file in files)
    writes_workflow = _may_write(_WORKFLOW, args.force)
    paths = [str(_CASES)]
    if writes_cases:
        paths = _write_cases(scripts, settings, math.inf if args.scripts else _SECONDS)
    if has_table:
        _complete_table(config, paths)
    else:
        _write_table(settings.toolchain, config, paths)
    if writes_workflow:
        make_folder(_WORKFLOW.parent)
        text = _TEMPLATE.read_text(encoding="utf-8").replace("{version}", __version__)
        save(_WORKFLOW, text)
        print(f"wrote {_WORKFLOW}: say there with TLCHECK what pip installs")
    words = [*paths, *(word for one in lowering.pass_configs for word in ("--pass-config", one))]
    print(f"checking {', '.join(paths)}: `{shlex.join(['tlcheck', 'check', *words])}`", flush=True)
    checking = Parser()
    check.add_arguments(checking)
    return check.run(checking.command_line([*words, "--toolchain", settings.toolchain]))


def _require_own_project(config: Config) -> None:
    """Raises UsageError where a folder above has the project's settings: a second table would take their place."""
    here = Path.cwd()
    above = [folder / _PROJECT for folder in here.parents if (folder / _PROJECT).is_file()]
    if config.file in above:
        raise UsageError(f"{config.file} has [tool.tlcheck] for this folder, too: run `tlcheck init` beside it")
    if above and not _PROJECT.exists():
        raise UsageError(f"this folder is part of {above[0]}: run `tlcheck init` there, or make a {_PROJECT} here")


def _with_pin(config: Config, named: str | None) -> Config:
    """The settings with the release that the project pins, if neither they nor the user name one."""
    release, file = ("", "") if named or config.place("toolchain") else pinned_release(Path.cwd())
    if not release:
        return config
    print(f"{file} pins TileLang {release}: that release is checked")
    return replace(config, toolchain=release)


def _import_folders() -> tuple[Path, ...]:
    root = Path.cwd()
    return tuple(folder for folder in (root, root / "src") if folder.is_dir())


def _scripts(named: list[str]) -> list[Selection]:
    """Find what is run: the files that the user names, else each test whose imports lead to TileLang.

    Raises UsageError if there is none.
    """
    if named:
        return select(named)
    tests = [file for file in sorted(Path().rglob("*.py")) if is_test(file) and _is_own(file)]
    if not tests:
        raise UsageError("no test below this folder: name scripts that compile kernels, `tlcheck init SCRIPT ...`")
    found = Reach(Path()).nearest(tests)
    if not found:
        raise UsageError(f"none of {len(tests)} tests leads to TileLang: name scripts, `tlcheck init SCRIPT ...`")
    if len(found) < len(tests):
        print(f"{len(tests) - len(found)} of {len(tests)} tests do not lead to TileLang: left out")
    return [Selection(file) for file in found]


def _is_own(file: Path) -> bool:
    return not any(part.startswith(".") or part == "site-packages" for part in file.parts)


def _may_write(file: Path, force: bool) -> bool:
    """Ask before a file is overwritten. Raises UsageError where nobody can answer."""
    if force or not file.exists():
        return True
    if not sys.stdin.isatty():
        raise UsageError(f"{file} is there, and may be edited: --force overwrites it")
    return input(f"{file} is there. Overwrite it? [y/N] ").strip().lower() in ("y", "yes")


def _write_cases(scripts: list[Selection], settings: Settings, seconds: float) -> list[str]:
    """Capture the kernels of these seconds and write their case files. Raises UsageError if there is no kernel.

    Returns what is to be checked: the cases, and the files of whose kernels no case can be made.
    """
    with lowering_session(settings) as session:
        # the first signal, or the last second, ends the tests, and what they have compiled is written
        with stoppable(session.stop), _ending(session.stop, seconds):
            found = sorted(session.lower(scripts), key=lambda lowered: lowered.run.position)
        make_folder(_CASES)
        written = write(found, _CASES, force=True, snapshots=False, pythonpath=settings.pythonpath)
    left = [lowered for lowered, case in written if lowered.is_interrupted and not case]
    if left:
        print(f"{len(left)} files were not run to their end: `tlcheck init SCRIPT ...` takes those that you name")
    told = [
        f"{lowered.run.case}  {case or (lowered.failure.message if lowered.failure else 'compiles no kernel')}"
        for lowered, case in written
        if lowered not in left
    ]
    advice = [lowered.failure.advice for lowered, case in written if lowered.failure and not case]
    for line in dict.fromkeys([*told, *filter(None, advice)]):  # one for all archs
        print(line)
    for remark in session.remarks:
        print(f"note: {remark}")
    with_cases = {lowered.run.file for lowered, case in written if "::" in case}
    if not with_cases:
        with suppress(OSError):
            _CASES.rmdir()
    if not any(lowered.snapshot for lowered, _ in written):
        raise UsageError("no kernel was captured: nothing was written")
    whole = dict.fromkeys(lowered.run.file for lowered, case in written if case and lowered.run.file not in with_cases)
    return [*([str(_CASES)] if with_cases else []), *map(os.path.relpath, whole)]


@contextmanager
def _ending(stop: Callable[[], None], seconds: float) -> Iterator[None]:
    """Stop the work after so many seconds."""
    if math.isinf(seconds):
        yield
        return
    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _write_table(toolchain: str, config: Config, paths: list[str]) -> None:
    """Add the settings to pyproject.toml, which is made where there is none."""
    there = _PROJECT.read_text(encoding="utf-8").rstrip("\n") + "\n\n" if _PROJECT.exists() else ""
    folders = ", ".join(f'"{os.path.relpath(folder)}"' for folder in config.pythonpath)
    name = PINNED if toolchain == "pinned" else toolchain
    table = _TABLE.format(paths=_listed(paths), toolchain=json.dumps(name), pythonpath=folders)
    save(_PROJECT, there + table)
    print(f"wrote [tool.tlcheck] into {_PROJECT}")


def _listed(paths: list[str]) -> str:
    """The items of a TOML list."""
    return ", ".join(json.dumps(path, ensure_ascii=False) for path in paths)


def _complete_table(config: Config, paths: list[str]) -> None:
    """Say in settings that are there what `check` and `gate` work on; all else in them is left as it is."""
    if config.paths:
        print(f"{_PROJECT} has [tool.tlcheck] already: left as it is")
        return
    text = _PROJECT.read_text(encoding="utf-8")
    save(_PROJECT, re.sub(r"(?m)^(\[tool\.tlcheck\].*)$", rf"\1\npaths = [{_listed(paths)}]", text, count=1))
    print(f"added paths to [tool.tlcheck] in {_PROJECT}")
