"""Mutants of device TIR: synchronization gone, moved or weaker; addresses, guards, loops and operands changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.cpu.mutations.tools import binary, integer, rewrite, with_statement
from tlcheck.snapshot.ir import Evaluate, Expr, For, Function, If, Seq, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements, with_expressions

SYNCHRONIZATION = frozenset(
    "tvm_storage_sync sync_threads_partial sync_warp fence_proxy_async mbarrier_wait_parity ptx_arrive_barrier"
    " ptx_arrive_barrier_expect_tx mbarrier_expect_tx ptx_init_barrier_thread_count ptx_commit_group ptx_wait_group"
    " warpgroup_arrive warpgroup_commit_batch warpgroup_wait tma_store_arrive tma_store_wait ptx_cp_async_barrier"
    " ptx_cp_async_barrier_noinc ptx_fence_barrier_init".split()
)
# Call -> the argument that says how much, and by how much it changes.
_COUNTS = {
    "ptx_wait_group": (0, 1),
    "warpgroup_wait": (0, 1),
    "mbarrier_wait_parity": (1, 1),
    "ptx_init_barrier_thread_count": (1, 1),
    "mbarrier_expect_tx": (1, -16),
    "ptx_arrive_barrier_expect_tx": (1, 16),
}
_MATRICES = {"ptx_mma": (6, 8), "ptx_wgmma_ss": (6, 8)}  # where the two operands are
_INTO_SHARED = ("tma_load", "tma_load_im2col", "ptx_cp_async")


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


Mutation = tuple[str, Callable[[Stmt], Stmt]]


def _called(stmt: Stmt) -> str:
    return str(stmt.value.value) if isinstance(stmt, Evaluate) and stmt.value.op == "call" else ""


def _deleted(stmt: Stmt) -> Iterator[Mutation]:
    if _called(stmt) in SYNCHRONIZATION:
        yield _called(stmt), lambda now: Seq(())


def _moved(stmt: Stmt) -> Iterator[Mutation]:
    """A statement that synchronizes changes places with the one after it."""
    if isinstance(stmt, Seq):
        for place, part in enumerate(stmt.body[:-1]):
            if _called(part) in SYNCHRONIZATION and _called(stmt.body[place + 1]) not in SYNCHRONIZATION:
                yield _called(part), lambda now, place=place: _exchanged(now, place)  # type: ignore[misc]


def _exchanged(stmt: Stmt, place: int) -> Stmt:
    assert isinstance(stmt, Seq)
    body = list(stmt.body)
    body[place : place + 2] = reversed(body[place : place + 2])
    return replace(stmt, body=tuple(body))


def _weakened(stmt: Stmt) -> Iterator[Mutation]:
    name = _called(stmt)
    if name in _COUNTS:
        at, step = _COUNTS[name]
        yield name, lambda now: _with_argument(now, at, lambda e: binary("add", e, integer(step)))
    if name == "tvm_storage_sync" and isinstance(stmt, Evaluate) and len(stmt.value.args) == 3:
        yield "barrier id", lambda now: _with_argument(now, 1, lambda e: replace(e, value=int(e.value or 0) + 5))
        yield "barrier count", lambda now: _with_argument(now, 2, lambda e: replace(e, value=int(e.value or 0) // 2))


def _with_argument(stmt: Stmt, at: int, change: Callable[[Expr], Expr]) -> Stmt:
    assert isinstance(stmt, Evaluate)
    args = list(stmt.value.args)
    args[at] = change(args[at])
    return replace(stmt, value=replace(stmt.value, args=tuple(args)))


def _shifted(stmt: Stmt) -> Iterator[Mutation]:
    """A store one element on; a copy into shared memory 128 bytes on."""
    if isinstance(stmt, Store) and not stmt.buffer.scope.startswith("local"):
        yield "store", lambda now: _further(now)
    if _called(stmt) in _INTO_SHARED:
        first = next(e for e in postorder(expressions(stmt)) if e.op == "load" and e.buffer is not None)
        moved = replace(first, args=(*first.args[:-1], binary("add", first.args[-1], integer(1))))
        yield (
            _called(stmt),
            lambda now: with_expressions(now, [rewrite(e, {id(first): moved}) for e in expressions(now)]),
        )


def _further(stmt: Stmt) -> Stmt:
    assert isinstance(stmt, Store)
    last = stmt.indices[-1]
    if last.op == "ramp":
        last = replace(last, args=(binary("add", last.args[0], integer(1)), *last.args[1:]))
    else:
        last = binary("add", last, integer(1))
    return replace(stmt, indices=(*stmt.indices[:-1], last))


def _unguarded(stmt: Stmt) -> Iterator[Mutation]:
    if isinstance(stmt, If) and stmt.orelse is None:
        yield "guard", lambda now: now.then if isinstance(now, If) else now


def _shortened(stmt: Stmt) -> Iterator[Mutation]:
    if isinstance(stmt, For) and stmt.extent.op == "int" and int(stmt.extent.value or 0) > 1:
        yield "loop", lambda now: replace(_loop(now), extent=integer(int(stmt.extent.value or 0) - 1))


def _loop(stmt: Stmt) -> For:
    assert isinstance(stmt, For)
    return stmt


def _swapped(stmt: Stmt) -> Iterator[Mutation]:
    """The operands of a product, or of a difference or quotient in what is stored."""
    name = _called(stmt)
    if name in _MATRICES and isinstance(stmt, Evaluate):
        one, other = _MATRICES[name]
        yield (
            name,
            lambda now: _with_argument(
                _with_argument(now, one, lambda e: stmt.value.args[other]), other, lambda e: stmt.value.args[one]
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
}
