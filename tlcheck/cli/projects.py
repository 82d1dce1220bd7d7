"""Whose settings go for which kernels: those at or above the folder of their file, else the working folder's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path

from tlcheck.cli.options import selections
from tlcheck.config import Config, read_config
from tlcheck.errors import UsageError
from tlcheck.lower.selection import Selection


@dataclass(frozen=True)
class ProjectCases:
    """What is selected of one project."""

    config: Config
    selections: Sequence[Selection]


def projects(args: argparse.Namespace, cases: Sequence[str]) -> list[ProjectCases]:
    """Sort what is selected by its project; nothing named is what the working folder's names. Raises UsageError."""
    own = read_config(Path.cwd())
    found: dict[Config, list[Selection]] = {}
    folders: dict[Path, Config] = {}
    for selection in selections(args, cases, own):
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


def one_project(args: argparse.Namespace, cases: Sequence[str]) -> ProjectCases:
    """The project of all that is selected. Raises UsageError where there are several."""
    found = projects(args, cases)
    _require_one([(each.config, str(each.selections[0].path)) for each in found])
    return found[0]


def _require_one(found: Sequence[tuple[Config, str]]) -> None:
    if len(found) > 1:
        files = " and ".join(str(config.file or "no settings") for config, _ in found[:2])
        paths = " and ".join(path for _, path in found[:2])
        raise UsageError(f"{paths} are of two projects ({files}): give the cases of one")
