"""The commands that reports suggest, to be pasted into a shell: each keeps what the user said of the kernel."""

from __future__ import annotations

import shlex

from tlcheck.lower.runs import Run


def explain_of(rule: str) -> str:
    """The command that shows the page of a rule."""
    return shlex.join(["tlcheck", "explain", rule])


def bisect_of(run: Run) -> str:
    """The command that says since which release a kernel is wrong."""
    return _bisect(run)


def fix_of(run: Run) -> str:
    """The command that looks for a change with which a kernel is right."""
    return shlex.join(["tlcheck", "fix", run.case, "--arch", run.target, "--toolchain", run.toolchain, *run.said])


def run_of(run: Run) -> str:
    """The command that compares a case with its reference in all blocks, without a GPU."""
    said = zip(run.said, run.said[1:], strict=False)
    own = [word for pair in said if pair[0] in ("--arg", "--pythonpath") for word in pair]
    toolchain = [] if run.toolchain in ("", "pinned") else ["--toolchain", run.toolchain]
    return shlex.join(["tlcheck", "run", run.case, "--device", "cpu", *toolchain, *own])


def bisect_passes_of(run: Run) -> str:
    """The command that says which pass makes a kernel wrong."""
    return _bisect(run, "--passes", "--toolchain", run.toolchain)


def bisecting(run: Run) -> str:
    """Both commands for what is wrong as lowered."""
    return f"since when: {bisect_of(run)}; by which pass: {bisect_passes_of(run)}"


def _bisect(run: Run, *options: str) -> str:
    case = run.file if run.is_captured else run.case
    return shlex.join(["tlcheck", "bisect", case, "--arch", run.target, *options, *run.said])
