"""Values that a kernel goes by: what atomics have read, and what is in its own memory.

Only an atomic whose value the kernel goes by can tell a thread that another one has come somewhere. Where nothing
depends on what an atomic has read, the same statements run whatever it read: it orders nothing in the executions in
which it came too early.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from tlcheck.program.atomics import atomics, have_both_orders
from tlcheck.program.walk import walk
from tlcheck.signatures.atomics import ATOMICS, IDEMPOTENT, LOAD, order_of
from tlcheck.signatures.calls import arguments_of_call, name_of_call
from tlcheck.signatures.fences import THREAD_FENCES
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Alloc, Assert, Bind, Evaluate, Expr, For, Function, If, Stmt, Store, While
from tlcheck.snapshot.walk import expressions, postorder, statements


@lru_cache(maxsize=16)
def may_release(function: Function) -> bool:
    """Whether a kernel has a release or acquire pattern: an atomic with an order, or a fence of threads."""
    calls = [e for s in statements(function.body) for e in postorder(expressions(s)) if e.op == "call"]
    return any(name_of_call(e) in THREAD_FENCES or (order_of(e) or 0) > 0 for e in calls)


@lru_cache(maxsize=16)
def may_order(function: Function) -> bool:
    """Whether atomics may order blocks: of tensors, with one that releases and one that acquires, or with a fence."""
    fenced = any(name_of_call(e) in THREAD_FENCES for s in statements(function.body) for e in postorder(expressions(s)))
    return fenced or have_both_orders(atomics(walk(function)))


@lru_cache(maxsize=16)
def counters(function: Function) -> frozenset[str]:
    """The tensors of integers that tell threads how far others have come: their kernel expects zeros in them."""
    used = _used(function) if may_release(function) else _used(function, indices=False)
    addresses = [arguments_of_call(e)[0] for e in used]
    found = set(named(addresses))
    return frozenset(str(b.data.value) for b in function.buffers if b.data.uid in found and "int" in b.dtype)


@lru_cache(maxsize=16)
def deciding(function: Function) -> frozenset[Stmt]:
    """The statements with an atomic whose value decides what runs, or which element is accessed."""
    used = _used(function)
    return frozenset(s for s in statements(function.body) if not used.isdisjoint(postorder(expressions(s))))


@lru_cache(maxsize=16)
def goes_by_memory(function: Function) -> bool:
    """Whether integers in a block's own memory decide what runs, or which element is accessed."""
    every = list(statements(function.body))
    own = {s.buffer.data.uid for s in every if isinstance(s, Alloc) and "int" in s.buffer.dtype}
    if not own:
        return False
    return not own.isdisjoint(named(_followed([e for stmt in every for e in _decisive(stmt)], every)))


@lru_cache(maxsize=16)
def spinning(function: Function) -> frozenset[Stmt]:
    """The loops that wait for memory: they go on until an atomic reads something else, and change nothing meanwhile
    but registers. With them come the branches around such a loop.
    """
    loops = {s for s in statements(function.body) if isinstance(s, While) and _spins(s)}
    around = [s for s in statements(function.body) if isinstance(s, If)] if loops else []
    return frozenset((*loops, *(s for s in around if not loops.isdisjoint(statements(s)))))


def _spins(loop: While) -> bool:
    """Whether a loop's condition hangs on atomics alone that leave what they find, or leave the same each time."""
    body = list(statements(loop.body))
    roots = _followed([loop.condition], body)
    stores = (s for s in body if isinstance(s, Store) and not s.buffer.scope.startswith("local"))
    calls = [e for s in (loop, *body) for e in postorder(expressions(s)) if e.op == "call"]
    made = [e for e in calls if name_of_call(e) in ATOMICS]
    others = (signature_of(s.value) for s in body if isinstance(s, Evaluate) and s.value not in made)
    writing = any(o is not None and (o.writes or o.updates or o.waits) for o in others)
    decides = any(e.op == "call" and name_of_call(e) in ATOMICS for e in postorder(roots))
    return decides and not writing and not any(stores) and all(map(_is_idempotent, made))


def _is_idempotent(atomic: Expr) -> bool:
    """Whether an atomic that is made again changes nothing."""
    operation, args = ATOMICS[name_of_call(atomic)].operation, arguments_of_call(atomic)
    return operation in (LOAD, *IDEMPOTENT) or (operation == "add" and args[1].value == 0)


@lru_cache(maxsize=16)
def _used(function: Function, indices: bool = True) -> frozenset[Expr]:
    """The atomics whose value does. indices: also those that only decide which element is accessed."""
    every = list(statements(function.body))
    roots = _followed([e for stmt in every for e in (_decisive(stmt) if indices else _conditions(stmt))], every)
    return frozenset(e for e in postorder(roots) if e.op == "call" and name_of_call(e) in ATOMICS)


def _followed(roots: Iterable[Expr], every: Sequence[Stmt]) -> list[Expr]:
    """Return expressions with all that statements give to the variables and buffers in them."""
    found, known = list(roots), set[int]()
    while len(known) < len(known := known | set(named(found))):
        found += [value for stmt in every for uid, value in _assigned(stmt) if uid in known]
    return found


def _decisive(stmt: Stmt) -> Iterator[Expr]:
    """The expressions of a statement that decide what runs or which elements are accessed."""
    yield from _conditions(stmt)
    if isinstance(stmt, Store):
        yield from stmt.indices
        yield from () if stmt.predicate is None else (stmt.predicate,)
    for e in postorder(expressions(stmt)):
        if e.op == "load":
            yield from e.args
        elif e.op == "select" or name_of_call(e) == "if_then_else":
            yield e.args[0]


def _conditions(stmt: Stmt) -> tuple[Expr, ...]:
    """Yield the conditions that decide what runs."""
    return expressions(stmt) if isinstance(stmt, (If, While, For, Assert)) else ()


def named(roots: Iterable[Expr]) -> Iterator[int]:
    """The variables and buffers in expressions."""
    for e in postorder(roots):
        if e.op == "var":
            yield e.uid
        elif e.buffer is not None:
            yield e.buffer.data.uid


def _assigned(stmt: Stmt) -> Iterator[tuple[int, Expr]]:
    """Yield what a statement gives a value, and that."""
    if isinstance(stmt, Bind):
        yield stmt.var.uid, stmt.value
    elif isinstance(stmt, Store):
        yield stmt.buffer.data.uid, stmt.value
