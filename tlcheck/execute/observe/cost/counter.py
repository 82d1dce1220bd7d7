"""Counts what a run costs: requests, sectors, wavefronts, products and barriers, at each access site.

Each access of a warp is looked at with the addresses that it has, once for each object that holds them: what a pipeline
does again at the same addresses is only added. Compilers may do less than is counted: a value that stays in a register
is not read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.events import Observer, TensorCoreForm
from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.observe.cost import geometry
from tlcheck.execute.observe.cost.flight import Flights
from tlcheck.execute.observe.cost.flops import operations
from tlcheck.execute.observe.cost.rules import rules_of
from tlcheck.execute.observe.cost.sites import COLUMNS, CountedSite, CountedSites, Operation, Space, Tally
from tlcheck.signatures import cp_async, matrices
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.signature import Completion
from tlcheck.signatures.table import family_of, signature_of
from tlcheck.snapshot.ir import Evaluate, Stmt

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.memory.places import Place

_MOST = 1 << 12  # accesses that are remembered
_WIDEST = 16  # bytes of one lane in one instruction
_BYPASS = 16  # bytes of a cp.async that goes by the L1 cache


class Counter(Observer):
    """Counts in all worlds of a machine. sites: what was counted. flights: bytes of copies that are under way."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.sites = machine, CountedSites(len(machine.worlds))
        self._rules = rules_of(machine.options.target)
        self.flights = Flights(len(machine.worlds))
        self._known: dict[tuple[int, ...], tuple[list[object], list[tuple[CountedSite, Array]]]] = {}
        self._arithmetic: dict[int, tuple[Stmt, Mapping[str, int]]] = {}  # by the statement's id
        self._source: tuple[Stmt | None, Array] | None = None  # what a copy reads

    # ---- accesses by threads

    def covers(self, place: Place) -> bool:
        """Whether it is told of accesses to a place: all but registers."""
        memory = place.memory
        return isinstance(memory, Pages) or memory.shared

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Threads, or a bulk copy of the thread `by`, read elements."""
        if by is not None:
            self._bulk(place, position, mask, "read", "bulk copy")
        elif proxy == "generic":
            self._count("read", place, position, mask)

    def write(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Threads write elements."""
        self._count("write", place, position, mask)

    def atomic(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Threads access elements with atomics; what a bulk copy does to its mbarrier is none."""
        if not _is_bulk(place.state.at):
            self._count("atomic", place, position, mask)

    def copy_issued(self, place: Place, position: Position, mask: Mask, origin: Origin, coming: Array) -> None:
        """Threads begin copies into shared memory (cp.async)."""
        access = _CountedAccess(place, position, mask, self._rules.lanes)
        width, stmt = place.aligned, place.state.at
        rows, active = access.rows(access.starts(unfold=width // place.kind.octets)[0])
        found, ideal = self._rules.wavefronts(rows, width, loads=False)
        sources = self._source
        if width == _BYPASS and sources is not None and sources[0] is stmt and sources[1].shape == rows.shape:
            found, ideal = self._rules.copied(rows, sources[1], width)
        tally = Tally(
            requests=active,
            lanes=(rows >= 0).sum(axis=-1),
            moved=found * self._rules.line(width, loads=False),
            useful=geometry.distinct(rows) * width,
            wavefronts=found,
            ideal=ideal,
        )
        site = CountedSite(stmt, "shared", "write", place.name, "cp.async", width)
        self.sites.add(site, self._columns(tally, self._warps))
        self.flights.begin(None, self._each((rows >= 0).sum(axis=-1), self._warps) * width)

    def copy_landed(self, place: Place, position: Position, mask: Mask, by: Any = None) -> None:
        """Copies of threads have landed."""
        if by is None:
            elements = np.broadcast_shapes((1, 1, 1), place.memory.flat_position(position).shape)[0]
            lanes = np.asarray(mask.sum(axis=-1)).reshape(-1, self.sites.worlds).sum(axis=0)
            self.flights.end(None, lanes * elements * place.kind.octets)

    def _count(self, operation: Operation, place: Place, position: Position, mask: Mask) -> None:
        stmt = place.state.at
        if _is_of_barrier(stmt) or f"mbarrier {place.name}" in place.state.shared:  # no access of the data path
            return
        key = id(place), id(position), id(mask), id(stmt), hash(operation)
        known = self._known.get(key)
        if known is None:
            found = list(self._counted(operation, place, position, mask, stmt))
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[key] = [place, position, mask, stmt], found
        for site, counts in known[1]:
            self.sites.add(site, counts)

    def _counted(
        self, operation: Operation, place: Place, position: Position, mask: Mask, stmt: Stmt | None
    ) -> Iterator[tuple[CountedSite, Array]]:
        """The sites of an access, and their counts."""
        access, shared = _CountedAccess(place, position, mask, self._rules.lanes), isinstance(place.memory, Cells)
        if place.arranged:
            yield self._loaded_matrices(access, stmt)
            return
        form = _form(operation, stmt)
        space: Space = "shared" if shared else "global"
        for starts, width in self._instructions(operation, access, form):
            rows, active = access.rows(starts)
            if form == "cp.async":
                self._source = stmt, rows
            tally = self._tally(operation, rows, active, width, shared=shared)
            if operation == "atomic" and self._is_swapped(place, stmt, width, shared=shared):
                before, tally = self._swapped(tally, rows, shared=shared)
                site = CountedSite(stmt, space, "read", place.name, "load before a swap", width)
                yield site, self._columns(before, self._warps)
            yield CountedSite(stmt, space, operation, place.name, form, width), self._columns(tally, self._warps)

    def _tally(self, operation: Operation, rows: Array, active: Array, width: int, *, shared: bool) -> Tally:
        """Return what instructions of one width move; rows: addresses of warps."""
        lanes = (rows >= 0).sum(axis=-1)
        different = geometry.distinct(rows)
        tally = Tally(requests=active, lanes=lanes, useful=different * width)
        if operation == "atomic":
            tally += Tally(collisions=lanes - different)
        if shared:
            loads = operation == "read"
            found, ideal = self._rules.wavefronts(rows, width, loads=loads)
            return tally + Tally(wavefronts=found, ideal=ideal, moved=found * self._rules.line(width, loads=loads))
        sector = self._rules.sector
        found = geometry.sectors(rows, width, sector)
        return tally + Tally(sectors=found, least=-(-different * width // sector), moved=found * sector)

    def _is_swapped(self, place: Place, stmt: Stmt | None, width: int, *, shared: bool) -> bool:
        """Whether an atomic is a loop of a load and a compare-and-swap: as compilers write what no instruction does."""
        if not place.kind.is_float or not isinstance(stmt, Evaluate):
            return False
        return self._rules.swapped(name_of_call(stmt.value).lower(), width, shared=shared)

    def _swapped(self, tally: Tally, rows: Array, *, shared: bool) -> tuple[Tally, Tally]:
        """The loads and the swaps of a loop that does what no instruction does.

        In shared memory a round serves the lanes without bank conflicts, and loads for all that are left. In global
        memory a round serves one lane of each word; only the first one loads.
        """
        plain = replace(tally, collisions=0)
        if shared:
            rounds = np.asarray(tally.wavefronts)
            wavefronts = rounds * (rounds + 1) // 2
            moved = wavefronts * geometry.LINE
            loads = replace(plain, requests=rounds, ideal=rounds, wavefronts=wavefronts, moved=moved)
            return loads, replace(tally, requests=rounds)
        sector = self._rules.sector
        requests, sectors = geometry.rounds(rows, sector)
        return plain, replace(tally, requests=requests, sectors=sectors, moved=sectors * sector)

    def _instructions(self, operation: Operation, access: _CountedAccess, form: str) -> list[tuple[Array, int]]:
        """The instructions that an access takes, (instructions * worlds, lanes), and their widths."""
        kind, (worlds, lanes), shared = access.place.kind, access.shape, access.place.shared
        if operation == "atomic":
            vectors = kind.bits == 16 or (self._rules.vectors and kind.name == "float32" and not shared)
            return access.instructions() if vectors else access.elements()
        found = access.instructions()  # of global memory a compiler knows no alignment but that of elements
        each = self.sites.worlds
        if form != "load" or worlds == each:
            return found
        return [
            (starts.reshape(-1, lanes), wide)
            for narrow, width in found
            for starts, wide in geometry.joined(narrow.reshape(-1, each * lanes), width, _WIDEST if shared else width)
        ]

    def _loaded_matrices(self, access: _CountedAccess, stmt: Stmt | None) -> tuple[CountedSite, Array]:
        """ldmatrix: each matrix is 8 rows of 16 bytes, of which all lanes together name the words."""
        call = stmt.value if isinstance(stmt, Evaluate) else None
        number = int(call.args[1].value or 0) if call is not None else 1
        starts = access.starts()[0]
        worlds, warps = access.shape[0], access.shape[1] // geometry.LANES
        words = np.where(starts < 0, -1, starts // geometry.WORD).reshape(number, -1, worlds, warps, geometry.LANES)
        each = geometry.conflicts(np.moveaxis(words, 1, -1).reshape(number * worlds * warps, -1))
        each = each.reshape(number, -1)
        active = np.asarray((each > 0).any(axis=0))
        tally = Tally(
            requests=active,
            lanes=active * geometry.LANES,
            moved=each.sum(axis=0) * geometry.LINE,
            useful=(each > 0).sum(axis=0) * geometry.LINE,
            wavefronts=each.sum(axis=0),
            ideal=(each > 0).sum(axis=0),
        )
        site = CountedSite(stmt, "shared", "read", access.place.name, f"ldmatrix x{number}", _WIDEST)
        return site, self._columns(tally, self._warps)

    # ---- bulk copies

    def bulk_load_issued(
        self,
        place: Place,
        position: Position,
        mask: Mask,
        lane: Mask,
        origin: Origin,
        key: object,
        coming: Array | None,
        later: Mask | None = None,
        at: Array | None = None,
    ) -> None:
        """A bulk copy into shared memory begins."""
        octets = len(position) * place.kind.bits // 8  # type: ignore[arg-type]
        worlds = np.asarray(mask).reshape(-1, self.sites.worlds).sum(axis=0)
        self._bulk_shared(place, "write", octets, worlds)
        self.flights.begin(key, worlds * octets)

    def bulk_store_begun(
        self, tensor: Place, position: Array, mask: Mask, shared: Place, octets: int, issuer: Mask, adds: bool
    ) -> None:
        """A bulk copy out of shared memory begins."""
        self._bulk(tensor, position, mask, "atomic" if adds else "write", "bulk reduction" if adds else "bulk copy")
        worlds = issuer.any(axis=-1).reshape(-1, self.sites.worlds).sum(axis=0)
        self._bulk_shared(shared, "read", octets, worlds)

    def phase_ended(self, key: object, world: int) -> None:
        """The data has landed that a barrier waits for."""
        self.flights.landed(key, world)

    def _bulk(self, place: Place, position: Position, mask: Mask, operation: Operation, form: str) -> None:
        """The tensor's side: the sectors of a box, by one thread of each world."""
        access = _CountedAccess(place, position, mask, self._rules.lanes)
        starts = access.starts()[0].max(axis=-1)  # (elements, worlds)
        rows = starts.T
        moved = geometry.distinct(np.where(rows < 0, -1, rows // geometry.SECTOR))
        useful = -(-geometry.distinct(rows) * place.kind.bits // 8)
        active = np.asarray((rows >= 0).any(axis=-1))
        tally = Tally(
            requests=active,
            lanes=active,
            moved=moved * geometry.SECTOR,
            useful=useful,
            sectors=moved,
            least=-(-useful // geometry.SECTOR),
        )
        self._add(CountedSite(place.state.at, "global", operation, place.name, form), tally)

    def _bulk_shared(self, place: Place, operation: Operation, octets: int, worlds: Array) -> None:
        """Shared memory's side. Its swizzle makes 128 bytes at a time of it."""
        tally = Tally(requests=worlds, lanes=worlds, moved=worlds * octets, useful=worlds * octets)
        self._add(CountedSite(place.state.at, "shared", operation, place.name, "bulk copy"), tally)

    # ---- arithmetic, tensor cores and barriers

    def computed(self, stmt: Stmt, frame: Frame) -> None:
        """A statement computes what it stores."""
        known = self._arithmetic.get(id(stmt))
        if known is None:
            known = self._arithmetic[id(stmt)] = stmt, operations(stmt)
        if not known[1]:
            return
        warps = _padded(frame.mask().astype(np.int64), 0, self._rules.lanes)
        warps = warps.reshape(frame.worlds, -1, self._rules.lanes).sum(axis=-1)
        lanes = warps.sum(axis=-1).reshape(-1, self.sites.worlds).sum(axis=0)
        requests = (warps > 0).sum(axis=-1).reshape(-1, self.sites.worlds).sum(axis=0)
        for dtype, count in known[1].items():
            tally = Tally(requests=requests * count, lanes=lanes * count, flops=lanes * count)
            self._add(CountedSite(stmt, "arithmetic", "compute", "", dtype), tally)

    def product_issued(self, form: TensorCoreForm, stmt: Stmt | None, mask: Mask, times: int = 1) -> None:
        """Warps or warpgroups of active threads begin products."""
        groups = mask.reshape(*mask.shape[:-1], -1, form.threads).any(axis=-1).sum(axis=-1)
        issued = groups.reshape(-1, self.sites.worlds).sum(axis=0) * times
        tally = Tally(
            requests=issued,
            lanes=issued * form.threads,
            moved=issued * form.shared,
            useful=issued * form.shared,
            flops=issued * 2 * form.m * form.n * form.k,
        )
        what = f"{form.instruction} {form.shape} {form.dtype}"
        self._add(CountedSite(stmt, "tensor cores", "multiply", form.buffer, what), tally)

    def barrier(self, mask: Mask) -> None:
        """All warps with active threads have met."""
        self._waited("barrier", mask)

    def warp_barrier(self, mask: Mask) -> None:
        """__syncwarp."""
        self._waited("warp barrier", mask)

    def arrived(self, key: object, mask: Mask, at: Array | None = None) -> None:
        """Active threads have arrived at a barrier."""
        if _is_of_barrier(self.machine.state.at):
            self._waited("mbarrier arrival", mask)

    def phase_waited(self, key: object, mask: Mask, place: int = 0) -> None:
        """Threads have waited for a phase of an mbarrier."""
        self._waited("mbarrier wait", mask)

    def operations_awaited(self, kind: str, newest: int, mask: Mask, reads: bool = False) -> None:
        """Threads wait for copies or products of their own."""
        self._waited(f"wait for {kind}", mask)

    def _waited(self, form: str, mask: Mask) -> None:
        warps = _padded(mask.astype(np.int64), 0, self._rules.lanes)
        warps = warps.reshape(*mask.shape[:-1], -1, self._rules.lanes).sum(axis=-1)
        tally = Tally(requests=(warps > 0).sum(axis=-1), lanes=warps.sum(axis=-1))
        self._add(CountedSite(self.machine.state.at, "barrier", "wait", "", form), tally)

    # ---- inside

    def _add(self, site: CountedSite, tally: Tally) -> None:
        """Add what whole blocks do: (.., worlds)."""
        self.sites.add(site, self._columns(tally, 1))

    def _columns(self, tally: Tally, warps: int) -> Array:
        """(columns, worlds) of numbers for (.., worlds, warps)."""
        found = np.zeros((len(COLUMNS), self.sites.worlds), np.int64)
        for row, name in enumerate(COLUMNS):
            value = getattr(tally, name)
            if isinstance(value, np.ndarray):
                found[row] = self._each(value, warps)
        return found

    def _each(self, values: Array, warps: int) -> Array:
        """The sums of each world."""
        found: Array = values.reshape(-1, self.sites.worlds, warps).sum(axis=(0, 2))
        return found

    @property
    def _warps(self) -> int:
        """Return the number in a block."""
        return -(-self.machine.state.threads // self._rules.lanes)


@dataclass(frozen=True, eq=False)
class _CountedAccess:
    """One access in all lanes: addresses in bytes, negative where a lane takes no part."""

    place: Place
    position: Position
    mask: Mask
    warp: int  # lanes of one
    shape: tuple[int, int] = field(init=False)  # worlds, lanes

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", self.mask.shape[-2:])

    def starts(self, unfold: int = 0) -> tuple[Array, int]:
        """Addresses of the elements (elements, worlds, lanes), and the bits of one.

        unfold: elements of one access, where the iterations of a loop follow one another along the first axis. Then
        the first element of each: (1, iterations * worlds, lanes).
        """
        memory, kind = self.place.memory, self.place.kind
        flat = memory.flat_position(self.position)
        octets = flat * min(kind.bits, memory.kind.bits) // 8 if isinstance(memory, Pages) else memory.octet(flat)
        elements = octets.shape[0] if octets.ndim == 3 else 1
        whole = np.broadcast_to(octets, (elements, *self.shape))
        found = np.where(self.mask, whole, -1) if not self.mask.all() else whole
        if unfold:
            found = found.reshape(unfold, -1, *self.shape)[0].reshape(1, -1, self.shape[1])
        return found, kind.bits

    def instructions(self) -> list[tuple[Array, int]]:
        """The instructions that it takes: addresses (worlds, lanes) or (instructions * worlds, lanes), and width.

        Neighbouring elements are one instruction of at most 16 bytes; others are accessed one by one.
        """
        starts, bits = self.starts()
        count = len(starts)
        octets = count * bits // 8
        if count == 1:
            return [(starts[0], max(1, bits // 8))]
        whole = self.mask.ndim == 2 and octets & (octets - 1) == 0 and octets > 0
        if not whole or not self._follow(starts, bits):
            return self.elements()
        width = min(octets, _WIDEST)
        if (np.where(starts[0] < 0, 0, starts[0]) % width).any():
            return self.elements()
        return [(starts[:: count * width // octets].reshape(-1, self.shape[1]), width)]

    def elements(self) -> list[tuple[Array, int]]:
        """Each element as an instruction of its own."""
        starts, bits = self.starts()
        return [(starts.reshape(-1, self.shape[1]), max(1, bits // 8))]

    def _follow(self, starts: Array, bits: int) -> bool:
        """Whether elements of active lanes lie side by side."""
        if bits < 8:
            return bool((starts[-1] - starts[0] <= len(starts) * bits // 8).all())
        return bool(((starts[1:] - starts[:-1] == bits // 8) | (starts[1:] < 0)).all())

    def rows(self, starts: Array) -> tuple[Array, Array]:
        """Addresses by warps, (rows, lanes of one), and whether any lane of each takes part."""
        found = _padded(starts, -1, self.warp).reshape(-1, self.warp)
        return found, np.asarray((found >= 0).any(axis=-1))


def _padded(lanes: Array, filler: int, warp: int) -> Array:
    """Fill lanes up to a whole warp."""
    missing = -lanes.shape[-1] % warp
    if not missing:
        return lanes
    return np.concatenate([lanes, np.full((*lanes.shape[:-1], missing), filler, lanes.dtype)], axis=-1)


def _is_of_barrier(stmt: Stmt | None) -> bool:
    """Whether a statement does something to an mbarrier, which is no access of shared memory's data path."""
    return "barrier" in _called(stmt)


def _is_bulk(stmt: Stmt | None) -> bool:
    """Whether a statement is a bulk copy."""
    signature = signature_of(stmt.value) if isinstance(stmt, Evaluate) else None
    return signature is not None and signature.asynchronous in (Completion.MBARRIER, Completion.BULK_GROUP)


def _called(stmt: Stmt | None) -> str:
    """The name of the call that a statement is; empty for another one."""
    return name_of_call(stmt.value) if isinstance(stmt, Evaluate) and stmt.value.op == "call" else ""


def _form(operation: str, stmt: Stmt | None) -> str:
    """The instruction of an access, as far as its statement names one."""
    family = family_of(stmt.value) if isinstance(stmt, Evaluate) else None
    if family is not None and family in (cp_async.FAMILY, matrices.STMATRIX):
        return family.name
    return {"read": "load", "write": "store", "atomic": "atomic"}[operation]
