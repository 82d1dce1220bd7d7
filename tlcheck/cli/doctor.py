"""`tlcheck doctor`: what is installed, what works, and what to do about the rest."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from rich.text import Text

from tlcheck import __version__
from tlcheck.config import read_config
from tlcheck.exits import exit_code
from tlcheck.report.console import console
from tlcheck.report.doctor_json import SCHEMA, DoctorReport
from tlcheck.report.records import as_json
from tlcheck.toolchain.health import Item, examine

_STYLES = {"ok": "green", "absent": "yellow", "problem": "bold red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the report (default: text)"
    )


def run(args: argparse.Namespace) -> int:
    items = examine(read_config(Path.cwd()))
    shown = _show_json(items) if args.format == "json" else _show_text(items)
    return exit_code(found=any(item.state == "problem" for item in shown))


def _show_json(items: Iterable[Item]) -> list[Item]:
    shown = list(items)
    print(as_json(DoctorReport(SCHEMA, __version__, tuple(shown))), end="")
    return shown


def _show_text(items: Iterable[Item]) -> list[Item]:
    """Each item as soon as it is known: one line, and one more that says what to do."""
    page = console()
    shown = []
    for item in items:
        line = Text.assemble((f"{item.state:<8}", _STYLES[item.state]), f" {item.name:<13} {item.detail}")
        page.print(line.append(f"\n{'':>23}-> {item.advice}" if item.advice else ""), highlight=False, soft_wrap=True)
        shown.append(item)
    problems = sum(item.state == "problem" for item in shown)
    page.print(f"{problems} problems" if problems != 1 else "1 problem", highlight=False)
    return shown
