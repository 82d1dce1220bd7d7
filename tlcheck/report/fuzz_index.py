"""A campaign as two pages, Markdown and HTML: what was found, what was reached, what does not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from tlcheck.files import put
from tlcheck.fuzz.campaign_folder import CampaignFolder, CampaignState, Found, Met
from tlcheck.fuzz.outcome import SORTS
from tlcheck.report.markdown import inert

_REASONS, _LONGEST = 25, 140
Rows = Sequence[Sequence[str]]


def write(folder: CampaignFolder) -> None:
    """Write index.md and index.html into a campaign's folder."""
    put(folder.path / "index.md", "\n".join(_markdown(folder)) + "\n")
    put(folder.path / "index.html", _html(folder))


def rates(state: CampaignState) -> str:
    """`1,200 kernels in 35.0 minutes of one bench (34.3 a minute), 61 % lowering`."""
    count, minutes = sum(state.sorts.values()), state.seconds / 60
    if not minutes:
        return "no kernel"
    share = 100 * state.lowering / state.seconds
    rate = f"{count / minutes:.1f} a minute"
    return f"{count:,} kernels in {minutes:.1f} minutes of one bench ({rate}), {share:.0f} % lowering"


def _tables(folder: CampaignFolder) -> Iterator[tuple[str, Sequence[str], Rows]]:
    """Title, heads and rows of each table."""
    state = folder.state
    yield "Kernels", ("outcome", "kernels", "meaning"), [[s, f"{state.sorts[s]:,}", SORTS[s]] for s in SORTS]
    sorts = (
        ("Findings that are not known", state.unknown),
        ("Findings that are known", [f for f in state.found if f.sort == "refuted" and f.known]),
        ("The compiler dies", [f for f in state.found if f.sort == "crashed"]),
        ("tlcheck fails", [f for f in state.found if f.sort == "failed"]),
    )
    heads = ("kernel", "shows", "arch", "lines", "met", "known as", "releases", "other release")
    for title, found in sorts:
        if found:
            yield title, heads, [_row(f) for f in found]
    if state.met:
        facts = ("finding", "first kernel", "after kernels", "after minutes of one bench", "kernels with it")
        yield "Known findings, when they were met", facts, [_met(*each) for each in state.met.items()]
    for title, counted in (("Constructs reached", state.reached), ("Device library reached", state.calls)):
        yield title, ("what", "kernels"), [[name, f"{count:,}"] for name, count in counted.most_common()]
    common = Counter(state.reasons).most_common(_REASONS)
    yield "Why kernels do not count", ("reason", "kernels"), [[reason, f"{count:,}"] for reason, count in common]


def _met(name: str, met: Met) -> list[str]:
    return [name, str(met.number), f"{met.kernels:,}", f"{met.seconds / 60:.1f}", f"{met.count:,}"]


def _row(f: Found) -> list[str]:
    name = "reduced.py" if f.lines else "kernel.py"
    link = f"findings/{f.place}/{name}"
    return [link, f.shows.words[:_LONGEST], f.arch, str(f.lines or ""), f"{f.count:,}", f.known, f.history, f.against]


def _markdown(folder: CampaignFolder) -> Iterator[str]:
    yield f"# Fuzzing TileLang {folder.toolchain}"
    yield ""
    yield rates(folder.state) + "."
    for title, heads, rows in _tables(folder):
        yield from ("", f"## {title}", "", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}")
        for first, *rest in rows:
            shown = f"[{first.split('/')[1]}]({first})" if first.startswith("findings/") else inert(first)
            yield f"| {' | '.join([shown, *map(inert, rest)])} |"


def _html(folder: CampaignFolder) -> str:
    parts = [f"<h1>Fuzzing TileLang {escape(folder.toolchain)}</h1>", f"<p>{escape(rates(folder.state))}.</p>"]
    for title, heads, rows in _tables(folder):
        parts.append(f"<h2>{escape(title)}</h2><table><tr>{''.join(f'<th>{escape(h)}</th>' for h in heads)}</tr>")
        for first, *rest in rows:
            is_link = first.startswith("findings/")
            shown = f'<a href="{escape(first)}">{escape(first.split("/")[1])}</a>' if is_link else escape(first)
            parts.append(f"<tr><td>{shown}</td>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>")
        parts.append("</table>")
    return _PAGE.format(title=escape(folder.toolchain), body="\n".join(parts))


_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Fuzzing TileLang {title}</title>
<style>body {{ font: 14px system-ui; margin: 2em }} td, th {{ padding: 2px 8px; text-align: left; vertical-align: top }}
tr:nth-child(even) {{ background: #8881 }}</style></head>
<body>
{body}
</body>
</html>
"""
