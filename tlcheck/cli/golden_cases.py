"""The cases that a `tlcheck golden` command names, with their project."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tlcheck.cli.lowered import lowered
from tlcheck.cli.options import CASE_HELP, LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import read
from tlcheck.cli.projects import ProjectCases, one_project
from tlcheck.config import read_config
from tlcheck.golden.costs import REQUEST
from tlcheck.golden.recording import Project, Recorded, project_of, recorded, saved
from tlcheck.golden.states import GoldenScope
from tlcheck.lower.selection import parse
from tlcheck.lower.session import Settings
from tlcheck.verdicts.acceptance import Acceptances
from tlcheck.verdicts.checking import judge_by, with_inputs
from tlcheck.verdicts.judge import Judge, Policy


def add_lowering(parser: argparse.ArgumentParser) -> None:
    """CASE, and how to lower it."""
    parser.add_argument("cases", nargs="*", metavar="CASE", help=CASE_HELP)
    add_lowering_arguments(parser)


@dataclass(frozen=True)
class GoldenCases:
    """The cases that a command names, with the settings of their project.

    cases: as the user wrote them. project: where its goldens are. words: all that the user says of the kernels.
    """

    cases: tuple[str, ...]
    selected: ProjectCases
    settings: Settings
    project: Project
    words: tuple[str, ...] = ()

    def recorded(self) -> Iterator[Recorded]:
        """Every run with what it lowers to now, in the order of the selections. Raises UsageError."""
        chosen = self.selected.selections
        for selection in chosen:
            if selection.is_snapshot:
                yield saved(selection.path, self.project)
        if not all(selection.is_snapshot for selection in chosen):
            for done in lowered(chosen, self.settings):
                yield recorded(done, self.project)

    @property
    def decidable(self) -> list[str]:
        """The cases as `accept` takes them: without a toolchain; none where a saved snapshot is among them."""
        found = [parse(case) for case in self.cases]
        if any(selection.is_snapshot for selection in found):
            return []
        return [f"{each.path}::{each.name}" if each.name else str(each.path) for each in found]

    def judge(self, accepted: Acceptances) -> Judge:
        """Open a judge for them."""
        return judge_by(Policy(accepted), self.settings)

    def scope(self) -> GoldenScope:
        """Return what the cases name, else the project's paths; saved snapshots name nothing."""
        places = []
        for selection in map(parse, self.cases or [os.path.relpath(path) for path in self.selected.config.paths]):
            if not selection.is_snapshot:
                path = os.path.relpath(selection.path.resolve(), self.project.root.resolve()).replace(os.sep, "/")
                places.append(f"{path}::{selection.name}" if selection.name else path)
        return GoldenScope(tuple(places), self.settings.arch)


def golden_cases(args: argparse.Namespace) -> GoldenCases:
    """Read the options of `add_lowering`. Raises UsageError."""
    lowering = read(LoweringOptions, args)
    selected = one_project(args.cases, lowering.for_kernel_files)
    settings, project = lowering.settings(selected.config), project_of(selected.config)
    if project.cost:
        settings = with_inputs(settings, REQUEST)
    return GoldenCases(tuple(args.cases), selected, settings, project, (*args.cases, *lowering.words))


def this_project() -> Project:
    """Read the project of the working folder. Raises UsageError."""
    return project_of(read_config(Path.cwd()))
