"""`tlcheck check --watch`: after each edit, what it touched is checked again: proofs at once, executions after."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from tlcheck.cli.checking import CheckOptions, checked
from tlcheck.cli.interruption import Interruption
from tlcheck.cli.projects import projects
from tlcheck.errors import UsageError
from tlcheck.exits import CLEAN, USAGE
from tlcheck.report import check_text
from tlcheck.report.console import console
from tlcheck.verdicts.results import Result, exit_code
from tlcheck.worker.packages import project_folders

_POLL = 0.3  # seconds
Stamps = Mapping[Path, int]  # of files: when they were changed last


def watch(options: CheckOptions) -> int:
    """Check until Ctrl-C. Exit code: that of the last check."""
    shown: dict[str, Result] = {}
    code = CLEAN
    try:
        while True:
            before = _stamps(options)
            code = _round(options, shown)
            while _stamps(options) == before:
                time.sleep(_POLL)
    except KeyboardInterrupt:
        return code


def _round(options: CheckOptions, shown: dict[str, Result]) -> int:
    """Check once without executing and once with it; what is as it was is lowered and judged by the cache."""
    code = CLEAN
    for quick in (False,) if options.execution.quick or options.execution.names_some else (True, False):
        execution = replace(options.execution, quick=quick or options.execution.quick)
        try:
            found = checked(replace(options, execution=execution, why=bool(options.why)), Interruption())
        except UsageError as error:  # an edit may be half done
            print(f"tlcheck: error: {error}", file=sys.stderr)
            return USAGE
        new = [
            result
            for result in found.results
            if shown.get(_name(result, quick)) != result and not (quick and result.is_silent)
        ]
        shown |= {_name(result, quick): result for result in found.results}
        code = exit_code(found.results, strict=options.strict)
        if new:
            check_text.write(console(), new, list(found.notes))
        print(f"{'proofs' if quick else 'checked'} {time.strftime('%H:%M:%S')}: {len(new)} changed", flush=True)
    return code


def _name(result: Result, quick: bool) -> str:
    return f"{result.run.case} {result.run.target} {result.run.toolchain} {result.saved} {quick}"


def _stamps(options: CheckOptions) -> Stamps:
    """Return when the Python files beside the selected ones and in their projects, and the settings, were changed."""
    try:
        found = projects(options.cases, options.lowering.for_kernel_files)
    except UsageError:  # a file that is being replaced
        return {}
    places = {folder for each in found for s in each.selections for folder in (s.path.parent, *project_folders(s.path))}
    files = [file for folder in places for file in folder.rglob("*.py") if not _is_hidden(file.relative_to(folder))]
    settings = [each.config.file for each in found if each.config.file is not None]
    return dict(_stamped([*files, *settings, *(s.path for each in found for s in each.selections)]))


def _is_hidden(file: Path) -> bool:
    return any(part.startswith(".") or part in ("site-packages", "__pycache__") for part in file.parts)


def _stamped(files: Iterable[Path]) -> Iterable[tuple[Path, int]]:
    for file in files:
        try:
            yield file, file.stat().st_mtime_ns
        except OSError:
            yield file, 0
