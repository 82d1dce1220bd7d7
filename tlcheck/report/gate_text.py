"""The gate's result for people: each difference once, with the kernels that have it, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from tlcheck.exits import CLEAN, FOUND
from tlcheck.gate.device_outcomes import DEVICE
from tlcheck.gate.gate import Gate
from tlcheck.gate.groups import DifferenceGroup, device_evidence, files_in_words, groups, members_in_words
from tlcheck.gate.outcome import CLASSES, LoweredPair
from tlcheck.gate.words import (
    device_in_words,
    lasting_in_words,
    seconds_in_words,
    slowest_in_words,
    unchanged_in_words,
    verdict_in_words,
)
from tlcheck.verdicts.commands import bisect_passes_of, explain_of
from tlcheck.verdicts.words import plural

_STYLES = {
    "wrong": "bold red",
    "hazard": "bold red",
    "weaker": "bold yellow",
    "broken": "bold red",
    "sync-risk": "bold yellow",
    "slower-risk": "yellow",
    "changed": "cyan",
    "fixed": "green",
    "fails-in-both": "dim",
}
_VERDICT = {CLEAN: "bold green", FOUND: "bold red"}  # by exit code
_DETAIL = 6  # lines of an error
_WIDTH = 300  # characters of a line


def write(console: Console, gate: Gate) -> None:
    """Print the whole report. Texts of kernels are no markup."""
    for line in _lines(gate):
        console.print(line, highlight=False, soft_wrap=True)


def _lines(gate: Gate) -> Iterator[Text]:
    klass = ""
    for group in groups(gate.comparisons):
        if group.klass != klass:
            klass = group.klass
            yield Text.assemble((klass, _STYLES[klass]), (f": {CLASSES[klass]}", "dim"))
        yield from _group(group)
    yield from _evidence(gate)
    for note in gate.notes:
        yield Text(f"note: {note}", style="yellow")
    if seconds := seconds_in_words(gate):
        yield Text(seconds)
        yield Text(f"  slowest: {slowest_in_words(gate)}", style="dim")
    if unchanged := unchanged_in_words(gate):
        yield Text(unchanged)
    for number, line in enumerate(lasting_in_words(gate)):
        if not number:
            yield Text("refuted with both toolchains, which is no difference:")
        yield Text(f"  {_cut(line)}", style="dim")
    yield Text(verdict_in_words(gate), style=_VERDICT.get(gate.exit_code, "bold yellow"))


def _group(group: DifferenceGroup) -> Iterator[Text]:
    number = plural(len({(compared.case, compared.target) for compared, _ in group.members}), "run")
    accepted = f" (accepted: {group.accepted})" if group.accepted else ""
    yield Text.assemble("  ", (_cut(group.words), "bold"), f"  {number}{accepted}")
    for line in members_in_words(group.members):
        yield Text(f"      {line}", style="dim")
    compared, first = group.members[0]
    if first.words != group.words and f"{first.before} -> {first.after}" not in first.words:
        yield Text(f"      such as {compared.case} {compared.target}: {_cut(first.words)}", style="dim")
    for claims, count in group.claims.items():
        of = f"  {plural(count, 'run')}" if len(group.claims) > 1 else ""
        yield Text(f"      claims: {claims}{of}")
    if first.finding is not None:
        yield Text(f"      witness: {first.finding.words}")
        yield Text(f"      found {first.finding.place}")
        yield Text(f"      {explain_of(first.finding.rule)}")
        if compared.after is not None:
            yield Text(f"      {bisect_passes_of(compared.after.result.run)}")
    elif group.klass in ("wrong", "hazard", "broken", "fails-in-both"):
        yield from (Text(f"      {_cut(line)}", style="dim") for line in first.detail.splitlines()[:_DETAIL])
    if group.kind != DEVICE:
        shown = device_evidence(compared for compared, _ in group.members)
        yield from (
            Text(f"      on the device: {_cut(words)}{_of(m, group)}", style="dim") for words, m in shown.items()
        )


def _of(comparisons: Sequence[LoweredPair], group: DifferenceGroup) -> str:
    """Say of how many, where that is not so of all."""
    return f"  {plural(len(comparisons), 'run')}" if len(comparisons) < len(group.members) else ""


def _evidence(gate: Gate) -> Iterator[Text]:
    """Every case for every target, by what the device shows of it."""
    if gate.device is None:
        return
    yield Text.assemble(("on the device", "bold"), (f": {device_in_words(gate) or 'nothing was run'}", "dim"))
    for words, comparisons in device_evidence(gate.comparisons).items():
        yield Text.assemble("  ", (_cut(words), "bold"), f"  {plural(len(comparisons), 'run')}")
        yield from (Text(f"      {line}", style="dim") for line in files_in_words((c, "") for c in comparisons))


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."
