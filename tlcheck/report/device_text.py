"""The report of `tlcheck run` for people: a line for each run, what is wrong below it, times, a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tlcheck.run.device_results import FAILED, NOT_RUN, PASSED, DeviceFinding, DeviceResult
from tlcheck.run.examination import Examination
from tlcheck.verdicts.words import element_in_words, plural

_STYLES = {PASSED: "green", FAILED: "bold red", NOT_RUN: "yellow"}
_SHOWN = 4  # wrong elements


def write(console: Console, examinations: Sequence[Examination], notes: Iterable[str]) -> None:
    """Print the whole report."""
    for examination in examinations:
        console.print(_device(examination), highlight=False, soft_wrap=True)
        for result in examination.results:
            for line in _result(result):
                console.print(line, highlight=False, soft_wrap=True)
        timed = [result for result in examination.results if result.timing is not None]
        if timed:
            console.print(_times(timed), highlight=False)
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"), highlight=False, soft_wrap=True)
    results = [result for examination in examinations for result in examination.results]
    console.print(Text(summary(results), style="bold"), highlight=False, soft_wrap=True)


def _device(examination: Examination) -> Text:
    device = examination.device
    versions = device.get("versions", {})
    return Text(
        f"{device['name']} ({device['arch']}), CUDA {device['cuda']}, torch {device['torch']}, "
        f"tilelang {versions.get('tilelang', '?')}, {examination.date}",
        style="dim",
    )


def _result(result: DeviceResult) -> Iterator[Text]:
    run = result.run
    status = f"{result.status} (expected)" if result.excused else result.status
    style = "cyan" if result.excused else _STYLES[result.status]
    yield Text.assemble(f"{run.case} {run.target} {run.tilelang}  ", (status, style), _numbers(result))
    if result.reason:
        yield _indented("reason", result.reason, "yellow")
    if result.source == "different":
        yield _indented("source", "the CUDA source differs from the one that was checked:", "yellow")
        yield from (Text(f"        {line}", style="dim") for line in result.difference)
    for found in result.findings:
        yield from _finding(found)
    if result.findings or result.refuted:
        yield from _static(result)
    if result.excused:
        yield _indented("expected", result.excused, "cyan")


def _numbers(result: DeviceResult) -> str:
    """The largest error with the tolerance of that output, the trials and the tools that were clean."""
    outputs = [
        out
        for trial in result.trials
        for out in trial["outputs"].values()
        if isinstance(out.get("error"), (int, float))
    ]
    parts = [f"  {plural(len(result.trials), 'set')} of inputs"] if result.trials else []
    loose = [out for out in outputs if out["tolerance"]]
    if loose:
        worst = max(loose, key=lambda out: float(out["error"]) / out["tolerance"])
        parts.append(f"error {float(worst['error']):.1e}, tolerance {worst['tolerance']:.1e}")
    parts += [f"{found.tool} clean" for found in result.sanitized if not found.errors]
    return ", ".join(parts)


def _indented(word: str, text: str, style: str) -> Text:
    return Text.assemble("    ", (word, style), f": {text}")


def _finding(found: DeviceFinding) -> Iterator[Text]:
    place = f"{found.buffer}: " if found.buffer else ""
    origin = f" ({found.inputs})" if found.inputs else ""
    yield _indented(found.kind, f"{place}{found.message}{origin}", "red")
    for element in found.elements[:_SHOWN]:
        yield Text(f"        {element_in_words(found.buffer, element)}", style="dim")


def _static(result: DeviceResult) -> Iterator[Text]:
    """Yield what is refuted in the same code: the explanation, or that there is none."""
    if not result.refuted:
        yield _indented("check", result.unrefuted, "dim")
    for claim in result.refuted:
        found = claim.finding
        assert found is not None
        yield _indented("check", f"{found.rule} {found.name}, {claim.source.words}: {found.what}", "magenta")
        yield Text(f"        {found.words}", style="dim")
        for trial in result.trials[:1]:
            for element in trial["outputs"].get(claim.buffer, {}).get("watched", ()):
                yield Text(f"        on the device {element_in_words(claim.buffer, element)}", style="dim")


def _times(results: Iterable[DeviceResult]) -> Table:
    table = Table("case", "what", "median ms", "quartiles", "floor", "kernel / this", box=None, header_style="bold")
    for result in results:
        timing = result.timing
        assert timing is not None
        for name, times in timing.times.items():
            ratio = timing.times[""]["median"] / times["median"]
            table.add_row(
                result.run.case if not name else "",
                name or "the kernel",
                f"{times['median']:.4f}",
                f"{times['low']:.4f} - {times['high']:.4f}",
                f"{timing.floor:.4f} ({timing.floor / times['median']:.0%})" if not name else "",
                f"{ratio:.2f}" if name else "",
            )
    return table


def summary(results: Sequence[DeviceResult]) -> str:
    """`83 runs: 81 passed, 1 failed, 1 not run`."""
    counts = {status: sum(r.status == status and not r.excused for r in results) for status in _STYLES}
    excused = sum(bool(r.excused) for r in results)
    parts = [f"{number} {status}" for status, number in counts.items() if number]
    parts += [f"{excused} as expected"] if excused else []
    return f"{plural(len(results), 'run')}: {', '.join(parts) or 'nothing'}"
