"""Mutants of device TIR: synchronization gone, moved or weaker; addresses, guards, loops and operands changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.cpu.mutations import compiler_bugs
from tests.cpu.mutations.tools import (
    SYNCHRONIZATION,
    Mutation,
    binary,
    called,
    integer,
    rewrite,
    with_argument,
    with_statement,
)
from tlcheck.execute.memory.values import kind_of
from tlcheck.snapshot.ir import Alloc, Bind, Evaluate, Expr, For, Function, If, Seq, Stmt, Store
from tlcheck.snapshot.walk import children, expressions, postorder, statements, with_expressions

# Call -> the argument that says how much, and by how much it changes.
_COUNTS = {
    "ptx_wait_group": (0, 1),
    "warpgroup_wait": (0, 1),
    "mbarrier_wait_parity": (1, 1),
    "ptx_init_barrier_thread_count": (1, 1),
    "mbarrier_expect_tx": (1, -16),
    "ptx_arrive_barrier_expect_tx": (1, 16),
}
# where the two operands are
_MATRICES = {"ptx_mma": (6, 8), "ptx_wgmma_ss": (6, 8), "ptx_tcgen05_mma_ss": (1, 3)}
# Call -> the argument that is a number of columns of tensor memory.
_COLUMNS = {"tcgen05_ld": 4, "tcgen05_st": 4, "ptx_tcgen05_mma_ss": 6, "ptx_tcgen05_mma_ts": 6}
_FURTHER = 16  # columns
# Call -> bytes by which its address in shared memory moves, so that it stays aligned.
_INTO_SHARED = {
    "tma_load": 128,
    "tma_load_im2col": 128,
    "tma_store": 128,
    "ptx_cp_async": 16,
    "ptx_ldmatrix": 16,
    "ptx_stmatrix": 16,
    "initialize_wgmma_descriptor": 128,
    "initialize_tcgen05_descriptor": 128,
}
_IDLE = (
    "warpgroup_fence_operand",
    "prefetch_tma_descriptor",
    "set_max_nreg",
    "initialize_wgmma_descriptor",
    "initialize_tcgen05_descriptor",
    "increase_descriptor_offset",
    "tcgen05_before_thread_sync",
    "tcgen05_after_thread_sync",
)


@dataclass(frozen=True, slots=True)
class LoweredMutant:
    """A kernel as lowered with one thing changed. number: of the statement among those of its kind."""

    kind: str
    what: str
    number: int
    function: Function

    @property
    def name(self) -> str:
        """`delete warpgroup_wait 0`."""
        return f"{self.kind} {self.what} {self.number}"


def lowered_mutants(function: Function) -> Iterator[LoweredMutant]:
    """All mutants, in the order of the kinds."""
    for kind, mutate in _KINDS.items():
        counts: dict[str, int] = {}
        for stmt in statements(function.body):
            for what, change in mutate(stmt):
                number = counts[what] = counts.get(what, -1) + 1
                yield LoweredMutant(kind, what, number, with_statement(function, stmt, change))


def _deleted(stmt: Stmt) -> Iterator[Mutation]:
    if called(stmt) in SYNCHRONIZATION:
        yield called(stmt), lambda now: Seq(())


def _moved(stmt: Stmt) -> Iterator[Mutation]:
    """A statement that synchronizes changes places with the next one that does something else."""
    if isinstance(stmt, Seq):
        for place, part in enumerate(stmt.body):
            after = next((n for n in range(place + 1, len(stmt.body)) if not _is_idle(stmt.body[n])), None)
            if called(part) in SYNCHRONIZATION and after and called(stmt.body[after]) not in SYNCHRONIZATION:
                yield called(part), lambda now, place=place, after=after: _put(now, place, after)  # type: ignore[misc]


def _is_idle(stmt: Stmt) -> bool:
    """Whether a statement touches no memory, whatever it stands beside."""
    return isinstance(stmt, (Alloc, Bind)) or called(stmt) in _IDLE


def _put(stmt: Stmt, place: int, after: int) -> Stmt:
    """A sequence whose statement at `place` stands after the one at `after`."""
    assert isinstance(stmt, Seq)
    body = list(stmt.body)
    body.insert(after, body.pop(place))
    return replace(stmt, body=tuple(body))


def _weakened(stmt: Stmt) -> Iterator[Mutation]:
    name = called(stmt)
    if name in _COUNTS:
        at, step = _COUNTS[name]
        yield name, lambda now: with_argument(now, at, lambda e: binary("add", e, integer(step)))
    if name == "tvm_storage_sync" and isinstance(stmt, Evaluate) and len(stmt.value.args) == 3:
        yield "barrier id", lambda now: with_argument(now, 1, lambda e: replace(e, value=int(e.value or 0) + 5))
        yield "barrier count", lambda now: with_argument(now, 2, lambda e: replace(e, value=int(e.value or 0) // 2))


def _shifted(stmt: Stmt) -> Iterator[Mutation]:
    """A store one element on; what copies to or from shared memory some bytes on."""
    if isinstance(stmt, Store) and not stmt.buffer.scope.startswith("local"):
        yield "store", lambda now: _further(now)
    if called(stmt) in _INTO_SHARED:
        first = next(e for e in postorder(expressions(stmt)) if e.op == "load" and _is_shared(e))
        step = _INTO_SHARED[called(stmt)] * 8 // kind_of(first.dtype).bits
        moved = replace(first, args=(*first.args[:-1], binary("add", first.args[-1], integer(step))))
        yield (
            called(stmt),
            lambda now: with_expressions(now, [rewrite(e, {id(first): moved}) for e in expressions(now)]),
        )


def _in_other_columns(stmt: Stmt) -> Iterator[Mutation]:
    """Tensor memory is accessed some columns further on."""
    if called(stmt) in _COLUMNS:
        at = _COLUMNS[called(stmt)]
        yield called(stmt), lambda now: with_argument(now, at, lambda e: binary("add", e, integer(_FURTHER)))


def _is_shared(e: Expr) -> bool:
    return e.buffer is not None and e.buffer.scope.startswith("shared") and e.buffer.scope != "shared.barrier"


def _further(stmt: Stmt) -> Stmt:
    assert isinstance(stmt, Store)
    last = stmt.indices[-1]
    if last.op == "ramp":
        last = replace(last, args=(binary("add", last.args[0], integer(1)), *last.args[1:]))
    else:
        last = binary("add", last, integer(1))
    return replace(stmt, indices=(*stmt.indices[:-1], last))


def _unguarded(stmt: Stmt) -> Iterator[Mutation]:
    if isinstance(stmt, If) and stmt.orelse is None and not all(_is_idle(s) for s in _leaves(stmt.then)):
        yield "guard", lambda now: now.then if isinstance(now, If) else now


def _leaves(stmt: Stmt) -> Iterator[Stmt]:
    return (s for s in statements(stmt) if not children(s) and not isinstance(s, Seq))


def _shortened(stmt: Stmt) -> Iterator[Mutation]:
    if isinstance(stmt, For) and stmt.extent.op == "int" and int(stmt.extent.value or 0) > 1:
        yield "loop", lambda now: replace(_loop(now), extent=integer(int(stmt.extent.value or 0) - 1))


def _loop(stmt: Stmt) -> For:
    assert isinstance(stmt, For)
    return stmt


def _swapped(stmt: Stmt) -> Iterator[Mutation]:
    """The operands of a product, or of a difference or quotient in what is stored."""
    name = called(stmt)
    if name in _MATRICES and isinstance(stmt, Evaluate):
        one, other = _MATRICES[name]
        yield (
            name,
            lambda now: with_argument(
                with_argument(now, one, lambda e: stmt.value.args[other]), other, lambda e: stmt.value.args[one]
            ),
        )
    if isinstance(stmt, Store):
        found = next((e for e in postorder([stmt.value]) if e.op in ("sub", "div", "lt", "max")), None)
        if found is not None and found.op != "max":
            swapped = replace(found, args=found.args[::-1])
            yield (
                found.op,
                lambda now: with_expressions(now, [rewrite(e, {id(found): swapped}) for e in expressions(now)]),
            )


_KINDS: dict[str, Callable[[Stmt], Iterator[Mutation]]] = {
    "delete": _deleted,
    "move": _moved,
    "weaken": _weakened,
    "shift": _shifted,
    "drop": _unguarded,
    "shorten": _shortened,
    "swap": _swapped,
    "columns": _in_other_columns,
    **compiler_bugs.KINDS,
}
