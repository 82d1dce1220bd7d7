"""The commands that reports suggest."""

from __future__ import annotations

import argparse
import importlib
import shlex
from dataclasses import replace

import pytest

from tests.cpu.checking import make_run
from tlcheck.cli.main import main
from tlcheck.cli.options import LoweringOptions
from tlcheck.cli.parser import Parser
from tlcheck.config import Config
from tlcheck.lower.runs import Run
from tlcheck.lower.scripts import Scripts
from tlcheck.verdicts.commands import bisect_of, bisect_passes_of, bisecting, explain_of

SAID = ("--arg", "B=1", "--arg", "name=a b", "--pythonpath", "my lib")


def parsed(command: str) -> argparse.Namespace:
    """A printed command as its own parser reads it."""
    program, name, *words = shlex.split(command)
    assert program == "tlcheck"
    parser = Parser(prog=f"tlcheck {name}")
    importlib.import_module(f"tlcheck.cli.{name}").add_arguments(parser)
    return parser.command_line(words)


def test_commands_can_be_pasted() -> None:
    run = Run("my kernels/a.py", "f", "sm_80", "builds/my tl", {"tilelang": "0.1.15"})
    words = ["tlcheck", "bisect", "my kernels/a.py::f", "--arch", "sm_80"]
    assert shlex.split(bisect_of(run)) == words
    assert shlex.split(bisect_passes_of(run)) == [*words, "--passes", "--toolchain", "builds/my tl"]


def test_a_kernel_of_a_script_is_found_by_its_file() -> None:
    run = Run("my train.py", "f", "sm_80", "0.1.15", {}, is_captured=True)
    assert shlex.split(bisect_of(run)) == ["tlcheck", "bisect", "my train.py", "--arch", "sm_80"]


def test_what_the_user_said_is_kept_and_parsed_again() -> None:
    run = replace(make_run("0.1.9"), said=(*SAID, "--", "--epochs", "1"))
    both = [bisect_of(run), bisect_passes_of(run), *(part.partition(": ")[2] for part in bisecting(run).split("; "))]
    for command, passes in zip(both, [False, True] * 2, strict=True):
        found = parsed(command)
        assert (found.cases, found.arch, found.args) == ([run.case], "sm_90", ["B=1", "name=a b"])
        assert (found.pythonpath, found.script_args) == (["my lib"], ("--epochs", "1"))
        assert (found.passes, found.toolchain) == (passes, "0.1.9" if passes else None)


def test_options_say_what_other_commands_need() -> None:
    options = LoweringOptions(args=("B=1", "name=a b"), pythonpath=("my lib",), jobs=1)
    assert options.settings(Config()).said == SAID
    script = options.settings(Config(), Scripts(("--epochs", "1"), max_configs=3)).said
    assert script == (*SAID, "--max-configs", "3", "--", "--epochs", "1")


def test_the_page_of_a_rule_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(explain_of("TLO001"))[1:]) == 0
    assert "TLO001" in capsys.readouterr().out
