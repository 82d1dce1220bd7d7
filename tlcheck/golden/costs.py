"""A kernel's cost as a golden keeps it: a line for each way of access to a buffer, without places in the source."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from tlcheck.cost.kernel_cost import KernelCost, SiteCost
from tlcheck.cost.measure import BLOCKS, cost_of
from tlcheck.cost.risen_cost import joined, risen
from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.execute.stops import Stopped
from tlcheck.facts import Change
from tlcheck.golden.entry import COST, json_part
from tlcheck.lower.runs import Lowered
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.own_inputs import on_own_inputs

REQUEST = Request(blocks=BLOCKS, seeds=(0,))
_KIND = "cost"
_COUNTS = ("requests", "sectors", "wavefronts", "flops")
_WHY = "not counted"  # the key of the reason


def cost_text(lowered: Lowered, snapshot: Snapshot) -> str:
    """The cost of a lowered kernel on its own inputs, else on drawn ones; why where it cannot be counted."""
    try:
        cost = _without_places(cost_of(snapshot, on_own_inputs(lowered, snapshot, REQUEST)))
    except (Stopped, UsageError) as error:
        return json.dumps({_WHY: str(error)}) + "\n"
    return json_part(msgspec.to_builtins(cost))


def _without_places(cost: KernelCost) -> KernelCost:
    """One site for each way in which a buffer is accessed: lines move when the source is edited. Nothing that follows
    from the rest.
    """
    found: dict[tuple[object, ...], SiteCost] = {}
    for site in cost.sites:
        bare = replace(site, line=0, tir_line=0, limit="", advice="")
        key = (site.space, site.operation, site.buffer, site.instruction, site.width)
        found[key] = joined(found[key], bare) if key in found else bare
    return replace(cost, part="", floors=(), sites=tuple([found[key] for key in sorted(found)]))


def read_cost(text: str, renamed: Mapping[str, str]) -> KernelCost | str:
    """The cost that a golden keeps, with other names of buffers; else why it was not counted. Raises ValueError."""
    try:
        data: dict[str, Any] = json.loads(text)
        if _WHY in data:
            return str(data[_WHY])
        cost = msgspec.convert(data, KernelCost)
    except (ValueError, msgspec.ValidationError) as error:
        raise ValueError(f"{COST} cannot be read: {error}") from error
    sites = [replace(site, buffer=renamed.get(site.buffer, site.buffer)) for site in cost.sites]
    return replace(cost, sites=tuple(sites))


def cost_changes(before: KernelCost | str, after: KernelCost | str) -> Iterator[Change]:
    """Yield what costs more, as a risk; then all other counts that differ. None between equal costs."""
    if isinstance(before, str) or isinstance(after, str):
        if before != after:
            yield _change(_scope(before), _scope(after))
        return
    told = set()
    for rise in risen(before, after):
        told.add(rise.subject)
        yield _change(rise.before, rise.after, rise.words, slower=True)
    yield from _differences(before, after, told)


def _scope(cost: KernelCost | str) -> str:
    return f"{_WHY} ({cost})" if isinstance(cost, str) else "counted"


def _differences(before: KernelCost, after: KernelCost, told: set[str]) -> Iterator[Change]:
    """The counts that differ, but for those of buffers that are told already."""
    old, new = ({site.access: site for site in cost.sites} for cost in (before, after))
    for access in dict.fromkeys([*old, *new]):
        one, other = old.get(access), new.get(access)
        if (one or other).buffer in told:  # type: ignore[union-attr]  # one of them is there
            continue
        counts = [(name, _count(one, name), _count(other, name)) for name in _COUNTS]
        changed = [f"{was:,} -> {now:,} {name}" for name, was, now in counts if was != now]
        if changed:
            yield _change("", access, f"{access}: {', '.join(changed)}")
    for name in ("in_flight", "resident", "shared_bytes"):
        was, now = getattr(before, name), getattr(after, name)
        if was != now and "" not in told:
            yield _change("", name, f"{_NAMES[name]}: {was:,} -> {now:,}")


_NAMES = {
    "in_flight": "bytes of copies in flight",
    "resident": "blocks on a multiprocessor at most",
    "shared_bytes": "bytes of shared memory",
}


def _count(site: SiteCost | None, name: str) -> int:
    return getattr(site, name) if site is not None else 0


def _change(before: str, after: str, detail: str = "", *, slower: bool = False) -> Change:
    return Change(_KIND, _KIND, before, after, detail, slower)
