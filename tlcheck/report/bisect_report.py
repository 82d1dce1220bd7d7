"""What bisecting found, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from tlcheck import __version__
from tlcheck.gate.bisect import FAILS, RIGHT, UNDECIDED, WRONG, BisectRow, Point
from tlcheck.gate.bisect_passes import Guilty, Passes
from tlcheck.verdicts.claim import Claim

SCHEMA = 1
_STYLES = {RIGHT: "green", WRONG: "bold red", UNDECIDED: "yellow", FAILS: "red"}
_STATE, _WIDTH = 9, 100  # characters of the longest state, and of messages


def write(console: Console, rows: Sequence[BisectRow], passes: Sequence[Passes] = ()) -> None:
    """Print the rows, and of passes those that change something, with the TIR around it."""
    for row in rows:
        _print(console, *_of_releases(row))
    for found in passes:
        _print(console, *_of_passes(found))


def _print(console: Console, *lines: Text) -> None:
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _of_releases(row: BisectRow) -> Iterator[Text]:
    yield Text(f"{row.case} {row.target}".rstrip(), style="bold")
    width = max(len(point.at) for point in row.points)
    for point in row.points:
        why = _why(point)
        space = " " * (_STATE - len(point.state)) if why else ""
        yield Text.assemble(f"  {point.at:<{width}}  ", _word(point), space, why)
    yield from _transitions(row)


def _word(point: Point) -> tuple[str, str]:
    return point.state, _STYLES.get(point.state, "dim")


def _why(point: Point) -> str:
    if point.wrong:
        return "  " + "; ".join(_finding_in_words(claim) for claim in point.wrong)
    if point.result is not None and point.result.failure is not None:
        failure = point.result.failure
        return f"  {failure.phase}: {failure.message[:_WIDTH]}"
    undecided = [a for a in point.result.claims if a.verdict == "undecided"] if point.result else []
    return f"  {undecided[0].buffer}: {undecided[0].reason[:_WIDTH]}" if undecided else ""


def _finding_in_words(claim: Claim) -> str:
    found = claim.finding
    assert found is not None
    return f"{claim.buffer}: {found.rule} {found.name}" + (f" after {found.pass_name}" if found.pass_name else "")


def _transitions(row: BisectRow) -> Iterator[Text]:
    for before, after in row.transitions:
        yield Text(f"  {before.state} in {before.at}, {after.state} in {after.at}", style="bold")
    if not row.transitions:
        yield Text(f"  {row.points[0].state} in all of them", style="bold")


def _of_passes(found: Passes) -> Iterator[Text]:
    row = found.row
    yield Text(f"{row.case} {row.target}, tilelang {row.release}", style="bold")
    first, last = row.points[0], row.points[-1]
    yield Text.assemble(f"  {len(row.points)} passes, {first.at} to {last.at}: ", _word(last))
    for before, after in row.transitions:
        yield Text(f"  {before.state} after {before.at}, {after.state} after {after.at}")
    for guilty in found.guilty:
        yield from _of_guilty(guilty)
    if not found.guilty:
        yield Text("  no pass makes it wrong", style="green")


def _of_guilty(guilty: Guilty) -> Iterator[Text]:
    claim = guilty.claim
    assert claim.finding is not None
    yield Text.assemble("  ", (f"{guilty.pass_name} (pass {guilty.number}) makes it wrong", "bold red"))
    yield Text(f"    {claim.buffer}, {claim.source.words}: {claim.finding.rule} {claim.finding.what}")
    yield Text(f"    {claim.finding.words}")
    for line in guilty.difference:
        style = {"-": "red", "+": "green"}.get(line[:1], "dim")
        yield Text(f"    {line}", style=style)


def as_json(rows: Sequence[BisectRow], passes: Sequence[Passes], exit_code: int) -> str:
    """The whole report, indented, with a newline at its end."""
    report = {
        "schema": SCHEMA,
        "tlcheck": __version__,
        "exit_code": exit_code,
        "rows": [_row(row, "release") for row in rows]
        + [{**_row(found.row, "pass"), "guilty": [_guilty(g) for g in found.guilty]} for found in passes],
    }
    return json.dumps(report, indent=2) + "\n"


def _row(row: BisectRow, kind: str) -> Mapping[str, Any]:
    return {
        "case": row.case,
        "target": row.target,
        "toolchain": row.release or None,
        "points": [{kind: point.at, "state": point.state, **_details(point)} for point in row.points],
        "transitions": [
            {"before": before.at, "after": after.at, "from": before.state, "to": after.state}
            for before, after in row.transitions
        ],
    }


def _details(point: Point) -> Mapping[str, Any]:
    failure = point.result.failure if point.result is not None else None
    return {
        "findings": [_finding(claim) for claim in point.wrong],
        "failure": {"phase": failure.phase, "message": failure.message} if failure else None,
    }


def _finding(claim: Claim) -> Mapping[str, Any]:
    found = claim.finding
    assert found is not None
    return {
        "buffer": claim.buffer,
        "file": claim.source.file,
        "line": claim.source.line,
        "rule": found.rule,
        "checkpoint": found.checkpoint,
        "pass": found.pass_name,
        "what": found.what,
        "witness": found.words,
    }


def _guilty(guilty: Guilty) -> Mapping[str, Any]:
    return {
        "pass": guilty.pass_name,
        "number": guilty.number,
        **_finding(guilty.claim),
        "tir": list(guilty.difference),
    }
