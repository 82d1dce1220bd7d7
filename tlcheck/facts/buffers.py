"""Buffers and loops of the source, and what they have become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tlcheck.facts.kernel_facts import BufferFacts, Loop
from tlcheck.facts.memory_sizes import MERGED, buffer_bytes, space_of
from tlcheck.facts.trips import Trips
from tlcheck.program.walk import Program, expressions, subexpressions
from tlcheck.snapshot import ir
from tlcheck.snapshot.walk import statements

_STAGES = ("num_stages", "tl_pipelined_num_stages")


def buffers(programs: Sequence[Program], trips: Trips) -> tuple[BufferFacts, ...]:
    """Parameters, shared buffers and fragments of the first program, with their sizes in the last that has them."""
    source, parameters = programs[0], {b.data.uid for b in programs[0].function.buffers}
    sizes: dict[str, int] = {}
    for program in programs:
        sizes.update({root: size for root, b in program.buffers.items() if (size := buffer_bytes(b))})
    found = []
    for root, buffer in source.buffers.items():
        space = space_of(buffer.scope)
        role = (
            "parameter" if buffer.data.uid in parameters else {"shared": "shared", "local": "fragment"}.get(space, "")
        )
        if role:
            shape = tuple(trips.text(e) for e in _version(source, root, buffer))
            size = 0 if role == "parameter" else sizes.get(root, 0)
            found.append(BufferFacts(root, role, buffer.dtype, shape, size))
    return tuple(sorted(found, key=lambda b: (b.role, b.name)))


def shared_bytes(program: Program) -> int:
    """Return bytes of a block; 0 if unknown: up to 0.1.9 a snapshot has single buffers, which may share memory."""
    merged = program.buffers.get(MERGED)
    return buffer_bytes(merged) if merged is not None else 0


def _version(program: Program, root: str, buffer: ir.Buffer) -> tuple[ir.Expr, ...]:
    """The shape without the dimension that pipelining put in front: its indices are `... % versions` or constants.

    Constants alone do not tell: a pipeline that is peeled to its end has them, and so have buffers that the author
    indexes by number. Those keep their dimension, so that no change of the author's is lost.
    """
    if len(buffer.shape) < 2 or space_of(buffer.scope) != "shared":
        return buffer.shape
    firsts = list(_first_indices(program, root))
    versions = buffer.shape[0].value
    turning = [e.op == "floormod" and e.args[1].value == versions for e in firsts]
    known = all(turns or e.op == "int" for turns, e in zip(turning, firsts, strict=True))
    return buffer.shape[1:] if any(turning) and known else buffer.shape


def _first_indices(program: Program, root: str) -> Iterator[ir.Expr]:
    for placed in program.statements:
        for top in expressions(placed.stmt):
            for e in subexpressions(top):
                if e.op == "load" and e.buffer is not None and program.roots.of(e.buffer.data) == root:
                    yield e.args[0]
        stmt = placed.stmt
        if isinstance(stmt, ir.Store) and program.roots.of(stmt.buffer.data) == root:
            yield stmt.indices[0]


def loops(functions: Mapping[str, ir.Function], trips: Trips) -> tuple[Loop, ...]:
    """Loops of the source, those of one variable's name together; stages may be known only later."""
    extents: dict[str, set[str]] = {}
    stages: dict[str, int] = {}
    for number, function in enumerate(functions.values()):
        for stmt in statements(function.body):
            if isinstance(stmt, ir.For):
                name = str(stmt.var.value)
                if number == 0:
                    extents.setdefault(name, set()).add(trips.text(stmt.extent))
                notes = dict(stmt.annotations)
                stages.setdefault(name, 0)
                stages[name] = max([stages[name], *(int(notes[k]) for k in _STAGES if notes.get(k, "").isdigit())])
    return tuple(Loop(name, tuple(sorted(found)), stages[name]) for name, found in sorted(extents.items()))
