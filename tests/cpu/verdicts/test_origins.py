"""Races of shared memory in words: the buffer that each access names."""

from __future__ import annotations

from dataclasses import replace

from tests.cpu.execute.ops.tile.building import Kernel, add, load, number
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.observe.races import Access, Race
from tlcheck.snapshot.ir import Alloc, Snapshot, Store
from tlcheck.snapshot.walk import statements
from tlcheck.verdicts.origins import race_in_words

THREADS = 128


def _race(buffer: str, read: Store, write: Store) -> Race:
    accesses = {"read": read, "write": write}
    first, second = (Access(kind, "generic", (0, 0, 0), 0, Origin(stmt)) for kind, stmt in accesses.items())
    return Race(buffer, "", (0,), first, second, "a barrier")


def _placed(snapshot: Snapshot, **places: int) -> Snapshot:
    """The snapshot with its shared buffers in one memory."""
    lowered = snapshot.checkpoints["device-tir"]
    tiles = (stmt.buffer for stmt in statements(lowered.body) if isinstance(stmt, Alloc))
    placed = replace(lowered, places=tuple((tile.data, places[tile.name]) for tile in tiles))
    return replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": placed})


def test_of_two_buffers_that_a_statement_reads_the_one_in_the_same_memory_is_named() -> None:
    kernel = Kernel(threads=THREADS)
    c = kernel.tensor("C", "int32", (THREADS,))
    s, w, z = (kernel.tile(name, "int32", (THREADS,)) for name in "swz")
    total = add(load(s, kernel.tx), load(w, kernel.tx))
    body = [Store(c, (kernel.tx,), total, line=7), Store(z, (kernel.tx,), number(1), line=8)]
    made = kernel.snapshot(body, body)
    race = _race("z", body[0], body[1])
    merged = ", which lie in the same memory since tl.MergeSharedMemoryAllocations"
    for name, places in {"s": {"s": 0, "w": 512, "z": 0}, "w": {"s": 512, "w": 0, "z": 0}}.items():
        words = race_in_words(_placed(made, **places), race, "z").words
        assert words.startswith(f"a barrier is missing between the read of {name} at line 7 (thread 0, TIR line ")
        assert words.endswith(merged)


def test_a_view_of_the_source_is_no_buffer_that_a_pass_merged() -> None:
    kernel = Kernel(threads=THREADS)
    c, s = kernel.tensor("C", "int32", (THREADS,)), kernel.tile("s", "int32", (THREADS,))
    v = replace(s, name="v", shape=(number(2), number(THREADS // 2)))
    body = [
        Store(c, (kernel.tx,), load(s, kernel.tx), line=7),
        Store(v, (number(0), number(1)), number(1), line=8),
    ]
    words = race_in_words(kernel.snapshot(body, body), _race("s", body[0], body[1]), "s").words
    assert "the read of s at line 7" in words
    assert "the write of v at line 8" in words
    assert words.endswith(", which are views of one buffer")
