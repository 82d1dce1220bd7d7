"""Find what differs between the facts of two kernels, in words, the most telling first.

What the author wrote comes first (types, shapes, annotated layouts, stages), then what the compiler made of it: so the
first change names the cause where the kernel was edited, and the worst effect where the compiler was.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tlcheck.facts.change import Change, counted
from tlcheck.facts.instruction_changes import access_changes, tensor_core_changes
from tlcheck.facts.kernel_facts import BufferFacts, Facts, LayoutFacts
from tlcheck.facts.waits import barrier_changes, wait_changes
from tlcheck.snapshot.dtypes import dtype_of

__all__ = ["Change", "changes"]


def changes(before: Facts, after: Facts) -> tuple[Change, ...]:
    """None between equal facts. What only one side knows is no change."""
    found = [
        *_buffer_changes(before, after),
        *_layout_changes(before, after, annotated=True),
        *_stage_changes(before, after),
        *_launch_changes(before, after),
        *_loop_changes(before, after),
        *access_changes(before, after, "atomic"),
        *barrier_changes(before, after),
        *_specialization_changes(before, after),
        *tensor_core_changes(before, after),
        *access_changes(before, after, "read", "write"),
        *_size_changes(before, after),
        *_layout_changes(before, after, annotated=False),
        *wait_changes(before, after),
        *_function_changes(before, after),
    ]
    # the same change of several buffers is one
    groups: dict[tuple[object, ...], list[Change]] = {}
    for change in found:
        groups.setdefault((change.kind, change.before, change.after, change.detail), []).append(change)
    return tuple(same[0].of(dict.fromkeys(change.subject for change in same)) for same in groups.values())


def _buffer_changes(before: Facts, after: Facts) -> Iterator[Change]:
    old, new = ({b.name: b for b in facts.buffers} for facts in (before, after))
    for name in sorted(old.keys() & new.keys()):
        if old[name].dtype != new[name].dtype:
            yield Change("dtype", name, old[name].dtype, new[name].dtype)
    for name in sorted(old.keys() & new.keys()):
        if not _same_shape(old[name].shape, new[name].shape, before.release == after.release):
            yield Change("shape", name, _shape(old[name]), _shape(new[name]))
    for name in sorted(old.keys() ^ new.keys()):
        yield Change("buffer", name, _buffer(old.get(name)), _buffer(new.get(name)))


def _same_shape(old: tuple[str, ...], new: tuple[str, ...], one_release: bool) -> bool:
    """Compare shapes up to a dimension in front: some releases make the versions of a pipelined buffer earlier."""
    longer, shorter = sorted((old, new), key=len, reverse=True)
    return old == new or (not one_release and len(longer) == len(shorter) + 1 and longer[1:] == shorter)


def _buffer(buffer: BufferFacts | None) -> str:
    return "none" if buffer is None else f"{buffer.role} {buffer.dtype} {_shape(buffer)}"


def _shape(buffer: BufferFacts) -> str:
    return " x ".join(buffer.shape)


def _layout_changes(before: Facts, after: Facts, *, annotated: bool) -> Iterator[Change]:
    """Annotated where either side annotates it; an inferred layout that only one side has is no change."""
    old, new = ({layout.buffer: layout for layout in facts.layouts} for facts in (before, after))
    for name in sorted(old.keys() | new.keys()):
        one, other = old.get(name), new.get(name)
        authored = any(layout is not None and layout.annotated for layout in (one, other))
        if authored != annotated or (not authored and (one is None or other is None)):
            continue
        if one is None or other is None or one.digest != other.digest:
            yield _relaid(name, one, other)


def _relaid(name: str, one: LayoutFacts | None, other: LayoutFacts | None) -> Change:
    """Their kinds, and where these are equal the index maps."""
    first, second = ("no layout" if layout is None else layout.kind for layout in (one, other))
    if one is None or other is None or first != second:
        return Change("layout", name, first, second)
    return Change("layout", name, first, f"another {second}", f"{first} {one.text} -> {other.text}")


def _stage_changes(before: Facts, after: Facts) -> Iterator[Change]:
    old, new = ({loop.name: loop.stages for loop in facts.loops} for facts in (before, after))
    for name in sorted(old.keys() & new.keys()):
        either = before.release == after.release  # some releases drop the note once they have made the pipeline
        if old[name] != new[name] and (either or (old[name] and new[name])):
            yield Change(
                "stages", f"loop {name}", *counted(old[name], new[name], "stage"), slower=new[name] < old[name]
            )


def _launch_changes(before: Facts, after: Facts) -> Iterator[Change]:
    if before.threads != after.threads:
        yield Change("threads", "block", *counted(before.threads, after.threads, "thread"))
    pairs = zip(before.grid, after.grid, strict=False)
    if len(before.grid) != len(after.grid) or not all(one.same(other) for one, other in pairs):
        yield Change("grid", "grid", " x ".join(map(str, before.grid)), " x ".join(map(str, after.grid)))


def _loop_changes(before: Facts, after: Facts) -> Iterator[Change]:
    """Yield changes of loops within one release: newer ones peel loops before the first checkpoint."""
    if before.release != after.release:
        return
    old, new = ({loop.name: loop.extents for loop in facts.loops} for facts in (before, after))
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield Change("loop", f"loop {name}", _extents(old, name), _extents(new, name))


def _extents(loops: dict[str, tuple[str, ...]], name: str) -> str:
    return " and ".join(loops.get(name, ("none",)))


def _specialization_changes(before: Facts, after: Facts) -> Iterator[Change]:
    if before.specialized != after.specialized:
        words = {True: "warp-specialized", False: "not warp-specialized"}
        yield Change(
            "specialization", "kernel", words[before.specialized], words[after.specialized], slower=before.specialized
        )


def _size_changes(before: Facts, after: Facts) -> Iterator[Change]:
    if before.shared_bytes and after.shared_bytes and before.shared_bytes != after.shared_bytes:
        yield Change("memory of a block", "shared memory", *counted(before.shared_bytes, after.shared_bytes, "byte"))
    old, new = ({b.name: b for b in facts.buffers if b.size} for facts in (before, after))
    for name in sorted(old.keys() & new.keys()):
        one, other = old[name], new[name]
        if one.role == other.role == "shared" and one.size != other.size:
            yield _resized(one, other)
    one_sum, other_sum = (sum(b.size for b in x.values() if b.role == "fragment") // 4 for x in (old, new))
    if one_sum != other_sum:
        yield Change("registers", "fragments", *counted(one_sum, other_sum, "register"))


def _resized(one: BufferFacts, other: BufferFacts) -> Change:
    """Another size of shared memory; of a buffer whose versions are what it was, by how many stages it has."""
    in_bytes = counted(one.size, other.size, "byte")
    old, new = _versions(one), _versions(other)
    if not (old and new) or (one.shape, one.dtype) != (other.shape, other.dtype):
        return Change("shared memory", one.name, *in_bytes)
    before, after = counted(old, new, "stage")
    return Change("shared memory", one.name, before, after, f"{before} -> {after} ({' -> '.join(in_bytes)})")


def _versions(buffer: BufferFacts) -> int:
    """Return how many versions of a buffer there is room for; 0 where that is not known."""
    if not all(dim.isdecimal() for dim in buffer.shape):
        return 0
    bits = prod(map(int, buffer.shape)) * dtype_of(buffer.dtype).bits
    return buffer.size * 8 // bits if bits and buffer.size * 8 % bits == 0 else 0


def _function_changes(before: Facts, after: Facts) -> Iterator[Change]:
    if before.functions != after.functions:
        old, new = set(before.functions), set(after.functions)
        yield Change("functions", "kernel", _names(old - new), _names(new - old))


def _names(functions: set[str]) -> str:
    return ", ".join(sorted(functions)) or "none"
