"""The data of facts, and their JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

BARRIER = "barrier"  # how names of barriers begin


@dataclass(frozen=True, slots=True)
class Count:
    """The number of times in one block. `number` is exact, or taken in the middle of the grid with sizes of
    `trips.SIZE`.

    text: what it is where it depends on the block or on a size, else empty.
    """

    number: int
    text: str = ""

    def __add__(self, other: Count) -> Count:
        texts = dict.fromkeys(t for t in (self.text, other.text) if t)
        return Count(self.number + other.number, " + ".join(texts))

    def same(self, other: Count) -> bool:
        """Whether both are one number, or one expression of sizes."""
        return self.number == other.number or (self.text == other.text != "")

    def __str__(self) -> str:
        return self.text or str(self.number)


@dataclass(frozen=True, slots=True)
class BufferFacts:
    """A buffer that the source has. role: `parameter`, `shared` or `fragment` (registers).

    shape: of one version, as text; a pipelined buffer has several. size: bytes of all versions in a block, of a
    fragment in a thread; 0 where unknown.
    """

    name: str
    role: str
    dtype: str
    shape: tuple[str, ...]
    size: int = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the source, by its variable. stages: of the software pipeline, 0 without one."""

    name: str
    extents: tuple[str, ...]
    stages: int = 0


@dataclass(frozen=True, slots=True)
class AccessFacts:
    """A record of what one kind of instruction does to one buffer. operation: `atomic`, `read` or `write`; space:
    `global` or `shared`.

    instruction: `AtomicAddx4`, `float16x8` (a plain load or store), `TMA`, `async copy`, `ldmatrix x4`, ... elements:
    that one of them moves in a thread, 0 for bulk copies. count: issued in a block, by all threads.
    """

    buffer: str
    space: str
    operation: str
    instruction: str
    elements: int
    count: Count


@dataclass(frozen=True, slots=True)
class Sync:
    """A synchronization. place: what comes next, such as `before read of q`; empty for those that are only counted."""

    name: str
    place: str
    count: Count


@dataclass(frozen=True, slots=True)
class InstructionFacts:
    """A tensor core instruction with shape and types, issued so often in a block."""

    name: str
    count: Count


@dataclass(frozen=True, slots=True)
class LayoutFacts:
    """A record of where a buffer's elements lie. kind: `row-major`, `swizzle 128B`, `padded`, `permuted` or `fragment`.

    digest: equal for equal index maps, however they are written; `text` is one way to write it.
    """

    buffer: str
    annotated: bool
    kind: str
    digest: str
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """A record of what a kernel asks of the machine. Entries are sorted, so that equal kernels have equal facts.

    release: of TileLang. threads: per block. shared_bytes: of a block, 0 where unknown. specialized: whether its warps
    have different work. functions: mathematical functions that it calls.
    """

    release: str
    grid: tuple[Count, ...] = ()
    threads: int = 0
    shared_bytes: int = 0
    specialized: bool = False
    buffers: tuple[BufferFacts, ...] = ()
    loops: tuple[Loop, ...] = ()
    layouts: tuple[LayoutFacts, ...] = ()
    accesses: tuple[AccessFacts, ...] = ()
    syncs: tuple[Sync, ...] = ()
    instructions: tuple[InstructionFacts, ...] = ()
    functions: tuple[str, ...] = ()


def to_json(facts: Facts) -> dict[str, Any]:
    """Plain data for `json.dumps`; `from_json` reads it."""
    return asdict(facts)


def from_json(data: Mapping[str, Any]) -> Facts:
    """Raises KeyError or TypeError for what `to_json` did not write."""
    return Facts(
        release=data["release"],
        grid=tuple(Count(**count) for count in data["grid"]),
        threads=data["threads"],
        shared_bytes=data["shared_bytes"],
        specialized=data["specialized"],
        buffers=tuple(BufferFacts(**{**b, "shape": tuple(b["shape"])}) for b in data["buffers"]),
        loops=tuple(Loop(**{**x, "extents": tuple(x["extents"])}) for x in data["loops"]),
        layouts=tuple(LayoutFacts(**layout) for layout in data["layouts"]),
        accesses=tuple(AccessFacts(**_counted(access)) for access in data["accesses"]),
        syncs=tuple(Sync(**_counted(sync)) for sync in data["syncs"]),
        instructions=tuple(InstructionFacts(**_counted(i)) for i in data["instructions"]),
        functions=tuple(data["functions"]),
    )


def _counted(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**entry, "count": Count(**entry["count"])}
