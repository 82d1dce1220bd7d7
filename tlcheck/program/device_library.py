"""Describe what TileLang's device library does with a call of an atomic, as measured: `tlcheck.probes` compiles each
call against the headers of a release and executes the PTX. A call that was not measured is not known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from packaging.version import InvalidVersion, Version

from tlcheck.files import cache_root

OK, WRONG, STOPS, LOST, REFUSED = "ok", "wrong value", "stops", "order lost", "does not compile"
ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
BULK = ("bulk", "box")
FILE = Path(__file__).with_name("device_library.json")
UNKNOWN = -1


@dataclass(frozen=True, slots=True, order=True)
class LibraryCall:
    """A call of the library, as generated CUDA spells it.

    operation: add, max, min, or, and, xor, load, store, and two reductions by TMA that add: `bulk`, of a run of bytes,
    and `box`, of a descriptor's box. destination, value: TVM scalar types; a load has its own type twice. width: 1, 2
    or 4 elements. pointer: the values are given by their address. order: number of the memory order, 0 is relaxed.
    returns: gives back the previous value. shared: the destination is in shared memory.
    """

    operation: str
    destination: str
    value: str
    width: int = 1
    pointer: bool = False
    order: int = 0
    returns: bool = False
    shared: bool = False

    def __str__(self) -> str:
        passed = f"{self.width} {self.value} by {'pointer' if self.pointer else 'value'}"
        where = "shared" if self.shared else "global"
        how = ORDERS[self.order] + ", returned" * self.returns
        return f"{self.operation} of {passed} to {self.destination}, {where}, {how}"

    @property
    def form(self) -> str:
        """Return what there is beside operation, types and order: `x2 by pointer returned shared`."""
        passed = f"x{self.width} by {'pointer' if self.pointer else 'value'}"
        return passed + " returned" * self.returns + (" shared" if self.shared else " global")

    @property
    def key(self) -> str:
        """The line of the table that it is in; its order is the place in that line."""
        return f"{self.operation} {self.destination} {self.value} {self.form}"


@dataclass(frozen=True, slots=True, order=True)
class Behaviour:
    """A record of what the library does with a call.

    verdict: `ok`, `wrong value`, `stops` (a trap, or an address of another memory), `order lost` or `does not compile`.
    detail: one sentence that shows it, for all but `ok`. instructions: PTX opcodes of its atomics, fences and casts of
    floats. aligned: what the addresses of destination and values have to be multiples of, in bytes; 1 where that is
    not known.
    """

    verdict: str
    detail: str = ""
    instructions: tuple[str, ...] = ()
    aligned: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class DeviceLibrary:
    """The table, as its file has it (`tlcheck/probes/library_table.py` writes it); what is asked for is looked up.

    date, compiler: when and with which nvcc. wheels: release -> hash of its wheel's files (`Identity.content`).
    headers: release -> hash of the headers that were compiled.
    archs: compute capabilities. rows: what each release does, archs after one another, as counts and numbers of
    `behaviours`. calls: key -> its row for each memory order. -1 stands for what was not measured.
    """

    date: str
    compiler: str
    wheels: Mapping[str, str]
    archs: Sequence[int]
    behaviours: Sequence[Behaviour]
    rows: Sequence[Sequence[int]]
    calls: Mapping[str, Sequence[int]]
    headers: Mapping[str, str] = field(default_factory=dict)

    def has(self, release: str, headers: str) -> bool:
        """Whether these headers were measured, as those of this release. Unknown ones are taken to be."""
        return not headers or self.headers.get(_public(release), "") == headers

    def behaviour(self, release: str, arch: int, call: LibraryCall) -> Behaviour | None:
        """Return what a release does with a call on an arch; None if that was not measured."""
        releases = list(self.wheels)
        version = _public(release)
        rows = self.calls.get(call.key, [UNKNOWN] * len(ORDERS))
        row = rows[call.order] if 0 <= call.order < len(rows) else UNKNOWN
        if version not in releases or arch not in self.archs or row == UNKNOWN:
            return None
        number = _at(self.rows[row], self.archs.index(arch) * len(releases) + releases.index(version))
        return None if number == UNKNOWN else self.behaviours[number]


@cache
def device_library() -> DeviceLibrary:
    """The table that comes with tlcheck."""
    return read(FILE.read_text(encoding="utf-8"))


def library_of(release: str, headers: str) -> DeviceLibrary:
    """The table for a release with these headers: ours, or one that was made where they are; an empty one for none."""
    if device_library().has(release, headers):
        return device_library()
    made = made_for(headers)
    return read(made.read_text(encoding="utf-8")) if made.is_file() else _EMPTY


def made_for(headers: str) -> Path:
    """The file of the table that was made for headers of a toolchain that somebody named by its path."""
    return cache_root() / "device-library" / f"{headers}.json"


def known_headers() -> list[str]:
    """Hashes of the headers that such tables were made for."""
    return sorted(file.stem for file in made_for("").parent.glob("*.json"))


def read(text: str) -> DeviceLibrary:
    """A table from its JSON."""
    data = json.loads(text)
    behaviours = [Behaviour(verdict, detail, tuple(ptx), (a, b)) for verdict, detail, ptx, (a, b) in data["behaviours"]]
    return DeviceLibrary(
        data["measured"],
        data["compiler"],
        data["wheels"],
        data["archs"],
        behaviours,
        data["rows"],
        data["calls"],
        data["headers"],
    )


_EMPTY = DeviceLibrary("", "", {}, (), (), (), {})


def _at(runs: Sequence[int], place: int) -> int:
    """The number at a place of a row."""
    for count, number in zip(runs[::2], runs[1::2], strict=True):
        if place < count:
            return number
        place -= count
    return UNKNOWN


def _public(release: str) -> str:
    """A release without what a local build adds to its version."""
    try:
        return Version(release).public
    except InvalidVersion:
        return release
