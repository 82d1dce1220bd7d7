"""A kernel's cost in a few figures, which a table has room for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.cost.risen_cost import USUAL, drift_of

_UNITS = ("", "k", "M", "G", "T")
_TENSOR = {"": 0, "mma": 1, "wgmma": 2}  # by their rate


@dataclass(frozen=True, slots=True)
class CostFigures:
    """The cost of one launch.

    global_bytes: in sectors. wavefronts: of shared memory. in_flight: bytes of copies under way at once, of a block.
    resident: blocks on a multiprocessor at most. tensor: the slowest form of products, `wgmma` or `mma`, or empty.
    products: operations of tensor cores.
    """

    global_bytes: int
    wavefronts: int
    in_flight: int
    resident: int
    tensor: str
    products: int


def figures_of(cost: KernelCost) -> CostFigures:
    """The figures of a cost."""
    forms = {site.instruction.partition(" ")[0].split(".")[0] for site in cost.sites if site.space == "tensor cores"}
    slowest = min(forms, key=lambda form: _TENSOR.get(form, len(_TENSOR)), default="")
    wavefronts = sum(site.wavefronts for site in cost.sites if site.space == "shared")
    return CostFigures(cost.global_bytes, wavefronts, cost.in_flight, cost.resident, slowest, sum(cost.flops.values()))


def more_than(before: CostFigures, after: CostFigures, ratio: float = USUAL.ratio) -> Iterator[str]:
    """Yield what costs more than before, by a ratio at least: the names of the figures."""
    ratio *= drift_of(before.products, after.products)
    if after.global_bytes > ratio * before.global_bytes:
        yield "bytes of global memory"
    if after.wavefronts > ratio * before.wavefronts:
        yield "wavefronts of shared memory"
    if after.in_flight * ratio < before.in_flight:
        yield "fewer bytes of copies in flight"
    if after.resident < before.resident:
        yield "fewer blocks on a multiprocessor"
    if _TENSOR.get(after.tensor, 0) < _TENSOR.get(before.tensor, 0):
        yield f"{after.tensor or 'no tensor cores'} for {before.tensor}"


def short(number: float) -> str:
    """`1.05M`, with a blank where a unit follows."""
    value, power = float(number), 0
    while value >= 1000 and power + 1 < len(_UNITS):
        value, power = value / 1000, power + 1
    return f"{value:.3g} {_UNITS[power]}" if power else f"{value:.4g} "
