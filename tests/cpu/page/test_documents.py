"""docs/pages.md says what is so: its commands are understood, its keys are those of the page."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from importlib.resources import files
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "pages.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"^(?:\$ )?tlcheck (\w+) ([^#\n]*)", re.MULTILINE)


def test_every_command_is_understood() -> None:
    found = COMMAND.findall(PAGE)
    assert {command for command, _ in found} == {"report", "gate", "check", "layout"}
    for command, rest in found:
        parser = argparse.ArgumentParser(prog=command, exit_on_error=False)
        importlib.import_module(f"tlcheck.cli.{command}").add_arguments(parser)
        parser.parse_args(shlex.split(re.sub(r"\[([^\]]*?)\.{0,3}\]", r"\1", rest)))


def test_its_keys_are_those_of_the_page() -> None:
    script = (files("tlcheck.page") / "assets" / "page.js").read_text(encoding="utf-8")
    handled = set(re.findall(r'(?:[{,]|^)\s*"?([a-z/?])"?: (?:\(\)|help|flip)', script, re.MULTILINE))
    table = PAGE.partition("| key |")[2].partition("\n\n")[0]
    told = {key for key in re.findall(r"`(.)`", table) if not key.isdigit()}
    assert told == handled
