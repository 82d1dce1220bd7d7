"""Find what of a kernel's cost has risen: where, from what to what, and how much of the kernel's work that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from tlcheck.cost.kernel_cost import KernelCost, SiteCost

_SUMMED = tuple([f.name for f in fields(SiteCost) if f.type == "int" and f.name not in ("line", "tir_line", "width")])


@dataclass(frozen=True, slots=True)
class Threshold:
    """The limit above which a rise is told. share: of the kernel's work, from which on an access matters. ratio: how
    many times as much.
    """

    share: float = 0.02
    ratio: float = 1.1


USUAL = Threshold()


@dataclass(frozen=True, slots=True)
class CostChange:
    """One thing that costs more than before.

    kind: `bank conflicts`, `sectors`, `copies in flight` or `occupancy`. subject: a buffer, or empty. before,
    after: in words that are equal for equal changes of different kernels. words: the sentence. line: in the kernel's
    file, 0 where unknown. share: of the kernel's work now, 1 where it is about all of it.
    """

    kind: str
    subject: str
    before: str
    after: str
    words: str
    line: int
    share: float


def risen(before: KernelCost, after: KernelCost, threshold: Threshold = USUAL) -> Iterator[CostChange]:
    """Yield what costs more after than before. None between equal costs."""
    old, new = _grouped(before), _grouped(after)
    drift = drift_of(sum(before.flops.values()), sum(after.flops.values()))
    for key in sorted(old.keys() & new.keys()):
        one, other = old[key], new[key]
        if other.share >= threshold.share:
            yield from _conflicts(one, other, threshold.ratio)
            yield from _sectors(one, other, threshold.ratio * drift)
    known = bool(before.shared_bytes) == bool(after.shared_bytes)
    if known and after.resident < before.resident:
        words = (
            f"at most {after.resident} instead of {before.resident} blocks fit on a multiprocessor, by {after.limiter}"
            f" ({before.shared_bytes:,} -> {after.shared_bytes:,} bytes of shared memory)"
        )
        yield CostChange("occupancy", "", "", "fewer blocks", words, 0, 1.0)
    if after.in_flight * threshold.ratio < before.in_flight:
        words = f"copies in flight: {before.in_flight:,} -> {after.in_flight:,} bytes of a block at most"
        yield CostChange("copies in flight", "", "", "fewer bytes", words, _line_of_copies(after), 1.0)


def drift_of(one: int, other: int) -> float:
    """Return how far apart two sides are by the blocks that ran, which stand for others, by their operations of tensor
    cores: these are the same work.
    """
    return max(one, other) / min(one, other) if one and other else 1.0


def _grouped(cost: KernelCost) -> Mapping[tuple[str, str, str], SiteCost]:
    """One sum for each way in which a buffer is accessed; its line is that of the site with most work."""
    found: dict[tuple[str, str, str], SiteCost] = {}
    for site in cost.sites:
        if site.space in ("global", "shared"):
            key = site.space, site.operation, site.buffer
            found[key] = joined(found[key], site) if key in found else site
    return found


def joined(one: SiteCost, other: SiteCost) -> SiteCost:
    larger = one if one.share >= other.share else other
    sums = {name: getattr(one, name) + getattr(other, name) for name in _SUMMED}
    values = {f.name: getattr(larger, f.name) for f in fields(SiteCost)} | sums
    values |= {"share": round(one.share + other.share, 4), "line": larger.line or one.line or other.line}
    return SiteCost(**values)


def _conflicts(one: SiteCost, other: SiteCost, ratio: float) -> Iterator[CostChange]:
    if other.conflict > ratio * one.conflict and other.wavefronts > ratio * one.wavefronts:
        before, after = (_ways(site) for site in (one, other))
        words = f"`{other.buffer}` is {_done(other)} with {after} instead of {before}, {_share(other)}"
        yield CostChange("bank conflicts", other.buffer, before, after, words, other.line, other.share)


def _sectors(one: SiteCost, other: SiteCost, ratio: float) -> Iterator[CostChange]:
    if one.sectors and other.sectors > ratio * one.sectors:
        each = other.moved // other.sectors  # 64 bytes on AMD
        count = f"{other.sectors:,} instead of {one.sectors:,} sectors of {each} bytes"
        words = f"`{other.buffer}` is {_done(other)} in {count}, {_share(other)}"
        yield CostChange("sectors", other.buffer, "", "more sectors", words, other.line, other.share)


def _ways(site: SiteCost) -> str:
    return f"{site.conflict:.3g}-way bank conflicts" if site.conflict > 1 else "no bank conflicts"


def _done(site: SiteCost) -> str:
    return {"read": "read", "write": "written", "atomic": "updated"}[site.operation]


def _share(site: SiteCost) -> str:
    return f"{site.share:.0%} of the kernel's work"


def _line_of_copies(cost: KernelCost) -> int:
    """Return the line of the copies with most work."""
    copies = [s for s in cost.sites if s.instruction in ("bulk copy", "cp.async") and s.line]
    return max(copies, key=lambda site: site.share).line if copies else 0


def line_of_access(cost: KernelCost, operation: str, buffer: str) -> int:
    """The line of the accesses of a kind to a buffer, or of products where it is empty; 0 where unknown."""
    space = ("global", "shared") if buffer else ("tensor cores",)
    found = [s for s in cost.sites if s.space in space and s.line and (not buffer or s.buffer == buffer)]
    found = [s for s in found if not buffer or s.operation == operation] or found
    return max(found, key=lambda site: site.share).line if found else 0
