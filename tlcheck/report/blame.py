"""The report of `tlcheck run --device cpu`: a line for each case, and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from tlcheck import __version__
from tlcheck.run.blame import Blame

SCHEMA = 1


def write(console: Console, blames: Sequence[Blame]) -> None:
    """One line for each case, and one for each thing that differs."""
    for blame in blames:
        for line in lines(blame):
            console.print(Text(line, "bold red" if "DIFFERS" in line else ""), soft_wrap=True, highlight=False)


def lines(blame: Blame) -> Iterator[str]:
    """`gemm.py::g sm_90 0.1.15  as written: agrees ...  as lowered: agrees ...`; what differs in lines of its own."""
    run = blame.run
    executed, of = blame.blocks
    blocks = f"  ({executed} of {of} blocks)" if executed != of else ""
    answers = f"as written: {_written(blame)}   as lowered: {_lowered(blame)}{blocks}"
    yield f"{run.case} {run.target} {run.tilelang}   {answers}"
    for found in blame.findings:
        element = next(iter(found.elements), None)
        shown = f"{found.buffer}: {found.message} ({found.inputs})"
        if element is not None:
            index = ", ".join(map(str, element["index"]))
            shown = f"{found.buffer}[{index}] is {element['got']}, should be {element['expected']}; {shown}"
        yield f"    -> the kernel's author: {shown}"
    for claim in blame.refuted:
        found_by = claim.finding
        assert found_by is not None
        by = f", {found_by.pass_name}" if found_by.pass_name else ""
        yield f"    -> TileLang {run.release}{by}: {found_by.rule} {found_by.name}: {found_by.what}"
        yield f"        {found_by.words}"


def _written(blame: Blame) -> str:
    if blame.written == "differs":
        return "DIFFERS from the reference"
    return "agrees with the reference" if blame.written == "agrees" else _open(blame.written, blame.reasons[0])


def _lowered(blame: Blame) -> str:
    if blame.lowered == "differs":
        return "DIFFERS from what is written"
    return "agrees with what is written" if blame.lowered == "agrees" else _open(blame.lowered, blame.reasons[1])


def _open(answer: str, reason: str) -> str:
    return f"{answer} ({reason})" if reason else answer


def render(blames: Sequence[Blame], commit: str, exit_code: int) -> str:
    """The report for programs, with a newline at its end."""
    report = {
        "schema": SCHEMA,
        "tlcheck": __version__,
        "commit": commit,
        "exit_code": exit_code,
        "device": "cpu",
        "runs": [_run(blame) for blame in blames],
    }
    return json.dumps(report, indent=1) + "\n"


def _run(blame: Blame) -> Mapping[str, Any]:
    run = blame.run
    return {
        "case": run.case,
        "target": run.target,
        "versions": dict(sorted(run.versions.items())),
        "args": dict(run.args),
        "blocks": {"executed": blame.blocks[0], "of": blame.blocks[1]},
        "written": {
            "answer": blame.written,
            "reason": blame.reasons[0],
            "findings": [asdict(found) for found in blame.findings],
        },
        "lowered": {
            "answer": blame.lowered,
            "reason": blame.reasons[1],
            "refuted": [
                {
                    "kind": c.kind,
                    "buffer": c.buffer,
                    "rule": f.rule,
                    "pass": f.pass_name,
                    "what": f.what,
                    "in_words": f.words,
                }
                for c in blame.refuted
                if (f := c.finding) is not None
            ],
        },
    }
