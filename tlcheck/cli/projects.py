"""Whose settings go for which kernels: those at or above the folder of their file, else the working folder's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path

from tlcheck.cli.options import CASE_HELP
from tlcheck.config import Config, naming, read_config
from tlcheck.errors import UsageError
from tlcheck.lower.selection import Selection, select


@dataclass(frozen=True)
class ProjectCases:
    """A record of what is selected of one project."""

    config: Config
    selections: Sequence[Selection]


def selections(cases: Sequence[str], config: Config, for_kernel_files: Sequence[str] = ()) -> list[Selection]:
    """The given cases, else the project's. for_kernel_files: the given options that mean nothing for saved snapshots.

    Raises UsageError, also where there are nothing but saved snapshots, and such an option.
    """
    with naming(None if cases else config, "paths"):
        chosen = select(cases or [os.path.relpath(path) for path in config.paths])
    if not chosen:
        raise UsageError(f"nothing to work on: give {CASE_HELP}, or set `paths` in [tool.tlcheck]")
    if for_kernel_files and all(selection.is_snapshot for selection in chosen):
        raise UsageError(f"{for_kernel_files[0]} has no meaning for a saved snapshot, which has its own")
    return chosen


def projects(cases: Sequence[str], for_kernel_files: Sequence[str] = ()) -> list[ProjectCases]:
    """Sort what is selected by its project; nothing named is what the working folder's names.

    for_kernel_files: see `selections`. Raises UsageError.
    """
    own = read_config(Path.cwd())
    found: dict[Config, list[Selection]] = {}
    folders: dict[Path, Config] = {}
    for selection in selections(cases, own, for_kernel_files):
        folder = selection.path.resolve().parent
        if folder not in folders:
            config = read_config(folder)
            folders[folder] = config if config.file is not None else own
        config = own if selection.is_snapshot else folders[folder]  # a snapshot may lie anywhere
        found.setdefault(config, []).append(selection)
    return [ProjectCases(config, chosen) for config, chosen in found.items()]


def project_above(paths: Sequence[str]) -> Config:
    """The settings of the files and folders that are named, which may be gone by now; of nothing, the working folder's.

    Raises UsageError where they are of several projects.
    """
    own = read_config(Path.cwd())
    found: dict[Config, str] = {}
    for path in paths:
        config = read_config(Path(realpath(path)))
        found.setdefault(config if config.file is not None else own, path)
    _require_one(list(found.items()))
    return next(iter(found), own)


def one_project(cases: Sequence[str], for_kernel_files: Sequence[str] = ()) -> ProjectCases:
    """The project of all that is selected. for_kernel_files: see `selections`. Raises UsageError for several."""
    found = projects(cases, for_kernel_files)
    _require_one([(each.config, str(each.selections[0].path)) for each in found])
    return found[0]


def _require_one(found: Sequence[tuple[Config, str]]) -> None:
    if len(found) > 1:
        files = " and ".join(str(config.file or "no settings") for config, _ in found[:2])
        paths = " and ".join(path for _, path in found[:2])
        raise UsageError(f"{paths} are of two projects ({files}): give the cases of one")
