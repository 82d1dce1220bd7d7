"""Find what keeps an access site from being cheaper, and what to do about it."""

from __future__ import annotations

from dataclasses import replace

from tlcheck.cost.kernel_cost import SiteCost
from tlcheck.targets.target import Target

_CONFLICT = 1.25  # times the wavefronts without conflicts
_SCATTERED = 1.5  # times the sectors that would do
_NARROW = 4  # bytes: from here on a warp fills whole sectors
_MANY = 512  # lanes of a site, below which nothing is worth a sentence
_DIVERGED = 0.75  # of the lanes
_WORD, _WIDEST = 4, 16


def advised(site: SiteCost, target: Target) -> SiteCost:
    """The site with its limit and a sentence of advice, if there is something to gain."""
    limit, advice = _limit(site, target)
    return replace(site, limit=limit, advice=advice)


def _limit(site: SiteCost, target: Target) -> tuple[str, str]:
    if site.space == "shared" and site.conflict >= _CONFLICT:
        return _conflicting(site)
    if site.operation == "atomic" and site.collisions * 4 >= site.lanes > 0:
        each = site.lanes / max(1, site.lanes - site.collisions)
        return "collisions", (
            f"{each:.0f} threads of a warp add to one address: reduce in registers first (T.reduce, warp shuffles)"
        )
    if site.space == "global" and site.least and site.sectors >= _SCATTERED * site.least:
        return _scattered(site)
    if site.space == "tensor cores":
        return _slow_form(site, target)
    if site.space == "global" and site.instruction in ("load", "store", "cp.async"):
        return _narrow(site, target.warp)
    return "", ""


def _conflicting(site: SiteCost) -> tuple[str, str]:
    done = {"read": "read", "write": "written", "atomic": "updated"}[site.operation]
    pad = _WIDEST if site.instruction.startswith(("ldmatrix", "stmatrix")) else max(_WORD, site.width)
    return "bank conflicts", (
        f"`{site.buffer}` is {done} with {site.conflict:.3g}-way bank conflicts: annotate a swizzled layout"
        f" (tilelang.layout.make_swizzled_layout), or pad its rows by {pad} bytes"
    )


def _scattered(site: SiteCost) -> tuple[str, str]:
    few = site.least / site.requests
    return "sectors", (
        f"{site.sectors_per_request:.3g} sectors a request where {max(1.0, few):.3g} would do: let neighbouring threads"
        f" access neighbouring elements of `{site.buffer}`"
    )


def _narrow(site: SiteCost, warp: int) -> tuple[str, str]:
    if not 0 < site.width < _NARROW or site.lanes < _MANY or site.useful < site.lanes * site.width:
        return _diverged(site, warp)
    return "width", (
        f"{site.width} bytes a thread and instruction: rows of `{site.buffer}` that begin at multiples of 16 bytes, and"
        f" 16 contiguous bytes for each thread, make vectors of it"
    )


def _diverged(site: SiteCost, warp: int) -> tuple[str, str]:
    active = site.lanes / (warp * site.requests) if site.requests else 1.0
    if active >= _DIVERGED or site.lanes < _MANY:
        return "", ""
    return "divergence", f"{active:.0%} of a warp's threads take part: let whole warps take a branch"


def _slow_form(site: SiteCost, target: Target) -> tuple[str, str]:
    if site.instruction.startswith("mma") and "wgmma" in target.instructions:
        return "tensor core form", (
            "mma.sync, where this arch has wgmma at about twice its rate: give T.gemm at least 64 rows of M to 128"
            " threads, with B in shared memory"
        )
    return "", ""
