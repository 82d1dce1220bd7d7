"""The cost of kernels as a page: each beside its source, with a bar for what each line costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tlcheck.cost.kernel_cost import KernelCost, SiteCost
from tlcheck.gate.compiled_cost import Costed
from tlcheck.page.html import document
from tlcheck.page.pack import embedded
from tlcheck.page.shown import BAD, GOOD
from tlcheck.report.cost_text import (
    compiled_in_words,
    counts_in_words,
    scope_in_words,
    summary_in_words,
)
from tlcheck.verdicts.words import plural

_STYLES = ("page.css", "cost.css")
_SCRIPTS = ("dom.js", "frame.js", "cost.js")
_AROUND = 2  # lines before the first line that costs, and behind the last one


def cost_page(found: Sequence[Costed], sources: Mapping[str, Sequence[str]]) -> str:
    """The page as one HTML file. sources: the lines of each file that runs name."""
    costly = sum(any(site.limit for site in one.cost.sites) for one in found)
    verdict = f"{plural(len(found), 'kernel')}, {costly} with something to gain"
    tone = BAD if any(not one.cost.resident for one in found) else GOOD
    data = {"kernels": [_kernel(one, sources.get(one.run.file, ())) for one in found]}
    return document("tlcheck cost", verdict, tone, _BODY, embedded(data), _STYLES, _SCRIPTS)


def _kernel(one: Costed, lines: Sequence[str]) -> dict[str, Any]:
    run, cost = one.run, one.cost
    return {
        "title": f"{run.case} {run.target} {run.tilelang}",
        "summary": [
            f"{scope_in_words(cost)}, {one.inputs} inputs",
            *summary_in_words(cost),
            *compiled_in_words(one.compiled),
        ],
        "rows": list(_rows(cost, lines)),
    }


def _rows(cost: KernelCost, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Lines of the source from the first to the last that costs, each with its sites; then what has no line."""
    sites: dict[int, list[SiteCost]] = defaultdict(list)
    for site in cost.sites:
        if site.space != "barrier":
            sites[site.line if site.line <= len(lines) else 0].append(site)
    numbers = [number for number in sites if number]
    if numbers:
        for number in range(max(1, min(numbers) - _AROUND), min(len(lines), max(numbers) + _AROUND) + 1):
            yield _row(number, lines[number - 1], sites[number])
    if sites[0]:
        yield _row(0, "(no line known)", sites[0])


def _row(number: int, text: str, sites: Sequence[SiteCost]) -> dict[str, Any]:
    return {
        "number": number,
        "text": text,
        "share": round(sum(site.share for site in sites), 4),
        "sites": [
            {
                "access": site.access,
                "counts": counts_in_words(site),
                "share": site.share,
                "limit": site.limit,
                "advice": site.advice,
            }
            for site in sites
        ],
    }


_BODY = """\
<main id="cost"><div id="main" tabindex="-1"></div>
<noscript>This page needs JavaScript, which it runs without any network.</noscript></main>
<dialog id="sheet"></dialog>"""
