"""Find who follows the order of accesses: a clock, with the worlds and the memory that it is asked about.

Watched are shared memory and the tensors that the kernel writes. `Glance` suspects races, quickly; `Watch` finds them;
`Author` says which of them the kernel has in the source.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import Value
from tlcheck.execute.observe.accesses import AccessedCells, AccessedElements, Disagreement
from tlcheck.execute.observe.clock import BARRIERS, VectorClock
from tlcheck.execute.observe.races import Race
from tlcheck.execute.observe.release_order import Releases
from tlcheck.execute.schedule.clusters import acts_across, cluster_of, made
from tlcheck.program.idle import using
from tlcheck.program.unused import unused
from tlcheck.signatures.signature import Completion
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Alloc, Function
from tlcheck.snapshot.walk import expressions, postorder, statements

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.memory.places import Place


class HappensBefore(VectorClock):
    """The clocks of a machine's blocks, and which accesses of these matter.

    tensors: those that are watched, by the number of their allocation. buffers: those that were accessed, each with the
    name of its parameter, empty for shared memory. races: see `Watch`. ordering: whether atomics on tensors may order
    blocks. releases: what atomics and fences order, where the kernel has such; None where it has not, or nobody looks.
    unused: statements whose result nothing uses: what they read does not matter. using: the threads that use the
    result of others, where not all do.
    """

    def __init__(self, machine: Machine, written: frozenset[str]) -> None:
        """written: the parameters whose tensors the kernel writes."""
        clusters = made(machine.worlds, cluster_of(machine.function)) if acts_across(machine.function) else None
        products, barriers = _has_products(machine.function), _mbarriers(machine.function)
        super().__init__(
            machine.state.threads, machine.options.target.warp, len(machine.worlds), clusters, products, barriers
        )
        self.machine = machine
        self.tensors = {uid: name for uid, name in machine.pointers.free if name in written}
        self.buffers: dict[str, str] = {}
        self.races: dict[tuple[object, ...], Race] = {}
        self.ordering = False
        self.releases: Releases | None = None
        self.unused = unused(machine.function)
        self.using = using(machine.function, machine.state.threads)

    def covers(self, place: Place) -> bool:
        """Whether accesses to a place are watched. Raises NotModelled for elements that are not the tensor's own."""
        memory = place.memory
        if isinstance(memory, Cells):
            return memory.shared
        covered = place.root in self.tensors
        if covered:
            memory.require_width(place.kind)
        return covered

    def grid_barrier(self) -> None:
        """All blocks have met: what they did to tensors is over for all of them."""
        for root in self.tensors:
            self.reallocated(root)

    def note(self, place: Place) -> None:
        """A buffer is accessed."""
        self.buffers[place.name] = self.tensors.get(place.root, "")

    def cells(self, elements: AccessedElements, by: Any = None) -> AccessedCells:
        """The cells of some elements. by: the thread of each element, where that is not its lane."""
        found = elements.cells(self.worlds, self.warps, self.width, by)
        if self.rows == self.warps:
            return found
        return replace(found, warp=found.warp + self.first_row[found.world], leaders=self.leaders)

    def disagreement(self, place: Place, position: Position, mask: Mask, value: Value) -> Disagreement | None:
        """See `AccessedElements.disagreement`."""
        if not isinstance(value, np.ndarray) or not mask.any():
            return None
        return AccessedElements(place, position, mask).disagreement(self.worlds, value)


@lru_cache(maxsize=64)
def _mbarriers(function: Function) -> int:
    """The mbarriers that have a time of their own: all that the function declares, if these are many."""
    buffers = [
        s.buffer for s in statements(function.body) if isinstance(s, Alloc) and s.buffer.scope.endswith("barrier")
    ]
    sizes = [prod(n.value for n in b.shape if isinstance(n.value, int)) for b in buffers]
    return max(BARRIERS, sum(sizes))


@lru_cache(maxsize=64)
def _has_products(function: Function) -> bool:
    """Whether tensor cores have work under way that a tcgen05.commit completes."""
    calls = (e for stmt in statements(function.body) for e in postorder(expressions(stmt)) if e.op == "call")
    found = map(signature_of, calls)
    return any(each is not None and each.asynchronous is Completion.TENSOR_COMMIT for each in found)
