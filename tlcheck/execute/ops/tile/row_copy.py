"""T.tma_gather4 and T.tma_scatter4: four rows of a tensor that are named, from one column on (language/copy_op.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.ops.thread.mbarrier import barrier
from tlcheck.execute.ops.tile.regions import ONE, Lattice, Region, Tile, region_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr

ROWS = 4
_ROWS_NOTE, _COLUMN_NOTE = "gather4_rows", "gather4_col"


def of_rows(e: Expr, gathers: bool, program: KernelProgram) -> Computation:
    """Copy the named rows of the tensor to, or from, the rows of a tile. The author announces their bytes himself."""
    tensor, tile = (region_of(a, program) for a in (e.args[:2] if gathers else e.args[1::-1]))
    rows, columns = _named(e, _ROWS_NOTE), _named(e, _COLUMN_NOTE)
    if (
        len(rows) != ROWS
        or len(columns) != 1
        or len(tensor.sizes) != 2
        or len(tile.sizes) != 2
        or program.options.midway
    ):
        raise NotModelled(f"{e.value} of rows whose numbers are not known")
    pairs = []
    for number, row in enumerate(rows):
        one = Region(tensor.buffer, (row, columns[0]), (ONE, tile.sizes[1]))
        first = Expr("add", "int32", (tile.starts[0], Expr("int", "int32", (), number)))
        other = replace(tile, starts=(first, tile.starts[1]), sizes=(ONE, tile.sizes[1]))
        lattice = Lattice([tile.sizes[1]], program)
        made = Tile(one, program, lattice, (1,)), Tile(other, program, lattice, (1,))
        pairs.append(made if gathers else made[::-1])

    awaited = dict(e.computed).get("barrier") if gathers else None
    done = None if awaited is None else barrier(awaited, program)

    def run(frame: Frame) -> int:
        octets = 0
        for source, target in pairs:
            inner = source.frame(frame, target)
            values = source.read(inner)
            target.write(inner, values)
            octets += len(values) * source.kind.bits // 8
        if done is not None:
            for world, number in done.of_blocks(frame):
                done.barriers.expect(world, number, -octets)
        return 0

    return run


def _named(e: Expr, note: str) -> list[Expr]:
    """The expressions of an annotation: of an array each has its number."""
    return list(_numbers(dict(e.annotations).get(note, ""))) + [
        value for key, value in e.computed if key.partition("[")[0] == note
    ]


def _numbers(text: str) -> Iterator[Expr]:
    yield from (Expr("int", "int32", (), int(number)) for number in re.findall(r"-?\d+", text))
