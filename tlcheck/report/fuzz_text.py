"""The end of a campaign, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from tlcheck.fuzz.campaign_folder import CampaignFolder, Found
from tlcheck.report.fuzz_index import rates
from tlcheck.verdicts.words import plural

_SHOWN = 20


def write(file: TextIO, folder: CampaignFolder) -> None:
    """Write the rates, and a line or two for each finding that is not known."""
    file.write("\n".join(_lines(folder)) + "\n")


def _lines(folder: CampaignFolder) -> Iterator[str]:
    state = folder.state
    new = state.unknown
    for found in new[:_SHOWN]:
        yield from _finding(folder, found)
    if len(new) > _SHOWN:
        yield f"and {len(new) - _SHOWN} more"
    for found in (f for f in state.found if f.sort == "failed"):
        yield f"{folder.kernel(found)}: tlcheck fails, please report it: {found.what}"
    known = sum(1 for f in state.found if f.known)
    yield f"{rates(state)}: {', '.join(f'{count:,} {sort}' for sort, count in sorted(state.sorts.items()))}"
    yield f"{plural(len(new), 'new finding')}, {known} known: {folder.path / 'index.md'}"


def _finding(folder: CampaignFolder, found: Found) -> Iterator[str]:
    yield f"{folder.kernel(found)}::{found.name} [{found.arch}]: {found.what}"
    size = f"{found.lines} lines, " if found.lines else ""
    yield f"   {size}met {found.count} times: {found.shows.words}{'; ' + found.history if found.history else ''}"
