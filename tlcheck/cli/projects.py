"""Whose settings go for which kernels: those at or above the folder of their file, else the working folder's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
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


def one_project(args: argparse.Namespace, cases: Sequence[str]) -> ProjectCases:
    """The project of all that is selected. Raises UsageError where there are several."""
    one, *others = projects(args, cases)
    if others:
        files = " and ".join(str(config.file or "no settings") for config in (one.config, others[0].config))
        paths = " and ".join(str(each.selections[0].path) for each in (one, others[0]))
        raise UsageError(f"{paths} are of two projects ({files}): give the cases of one")
    return one
