"""The pages and the workflow say what is so: every command in them is understood, every class is explained."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from pathlib import Path

import pytest

from tlcheck.gate.outcome import CLASSES, DEFAULT_FAILING

ROOT = Path(__file__).parents[3]
FILES = ("docs/gate.md", "docs/ci.md", ".github/workflows/tilelang-gate.yml")
COMMAND = re.compile(r"^[ \t$]*(?:run: )?tlcheck (gate|check|run|toolchain) ([^#\n]*)", re.MULTILINE)


@pytest.mark.parametrize("file", FILES)
def test_every_command_is_understood(file: str) -> None:
    found = COMMAND.findall((ROOT / file).read_text(encoding="utf-8"))
    assert found
    for command, rest in found:
        parser = argparse.ArgumentParser(prog=command, exit_on_error=False)
        importlib.import_module(f"tlcheck.cli.{command}").add_arguments(parser)
        parser.parse_args(shlex.split(rest))


def test_every_class_is_explained_and_the_failing_ones_are_marked() -> None:
    page = (ROOT / "docs/gate.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| .* \| (yes)? ?\|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == list(CLASSES)
    assert tuple(name for name, fails in rows if fails) == DEFAULT_FAILING
