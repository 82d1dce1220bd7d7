"""Tells what a kernel does with its parameters: which it writes, and which of these it reads or adds to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tlcheck.signatures.calls import arguments_of_call, name_of_call
from tlcheck.signatures.signature import Signature
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Buffer, Expr, Function, If, Snapshot, Stmt, Store
from tlcheck.snapshot.walk import children, expressions, postorder, statements

READ, WRITE = 1, 2
_MODES = {"region": 1, "access_ptr": 2, "tvm_access_ptr": 4}  # call -> place of the argument that says how
_RETURNING = ("_ret_elem_op", "Ret")


@dataclass(frozen=True, slots=True)
class Roles:
    """A record of what happens to parameters, in order.

    outputs: those that are written. updated: those of them that are read too, or that atomics add to.
    returning: whether an atomic returns what was there before, so that results may depend on the order of threads.
    float_atomics: whether floating-point numbers are added by atomics, in an order that may differ.
    """

    outputs: tuple[Buffer, ...] = ()
    updated: tuple[Buffer, ...] = ()
    returning: bool = False
    float_atomics: bool = False

    @property
    def unread(self) -> tuple[Buffer, ...]:
        """The outputs that are never read: what they hold before does not matter, and they may begin as poison."""
        return tuple(b for b in self.outputs if b not in self.updated)


def source_roles(snapshot: Snapshot) -> Roles:
    """The roles in the source; at `intent` in old snapshots; none where that was not reached."""
    function = snapshot.checkpoints.get(Checkpoint.SOURCE) or snapshot.checkpoints.get(Checkpoint.INTENT)
    return roles(function) if function is not None else Roles()


@lru_cache(maxsize=16)
def roles(function: Function) -> Roles:
    """The roles of the parameters of a function. A branch that a constant keeps from running does nothing to them."""
    modes: dict[int, int] = {}
    atomics: list[Expr] = []
    for stmt in _reached(function.body):
        if isinstance(stmt, Store):
            modes[stmt.buffer.data.uid] = modes.get(stmt.buffer.data.uid, 0) | WRITE
        for root in expressions(stmt):
            atomics += filter(_is_atomic, postorder([root]))
            for data, mode in accesses(root):
                modes[data.uid] = modes.get(data.uid, 0) | mode
    parameters = {b.data.uid: b for b in reversed(function.buffers)}
    outputs = tuple([b for uid, b in reversed(parameters.items()) if modes.get(uid, 0) & WRITE])
    updated = tuple([b for b in outputs if modes[b.data.uid] & READ])
    return Roles(outputs, updated, any(map(returns, atomics)), any(map(_adds_floats, atomics)))


def _reached(root: Stmt) -> Iterator[Stmt]:
    """Yield the statements that may run, as `statements` does."""
    stack = [root]
    while stack:
        stmt = stack.pop()
        yield stmt
        inner = children(stmt)
        holds = _truth(stmt.condition) if isinstance(stmt, If) else None
        stack.extend(reversed(inner if holds is None else inner[:1] if holds else inner[1:]))


def _truth(condition: Expr) -> bool | None:
    """Whether a condition holds, by its constants; None if it depends on anything else."""
    known: dict[Expr, bool | None] = {}
    for e in postorder([condition]):
        sides = [known[a] for a in e.args]
        if e.op == "int":
            known[e] = bool(e.value)
        elif e.op == "not" and sides[0] is not None:
            known[e] = not sides[0]
        elif e.op in ("and", "or"):
            decides = e.op == "or"
            known[e] = decides if decides in sides else None if None in sides else not decides
        else:
            known[e] = None
    return known[condition]


@lru_cache(maxsize=16)
def accessed(function: Function) -> frozenset[int]:
    """The pointers that the function reads or writes through."""
    found: set[int] = set()
    for stmt in statements(function.body):
        found |= {stmt.buffer.data.uid} if isinstance(stmt, Store) else set()
        found |= {data.uid for root in expressions(stmt) for data, _ in accesses(root)}
        found |= {e.uid for root in expressions(stmt) for e in postorder([root]) if e.op == "var"}
    return frozenset(found)


@lru_cache(maxsize=16)
def independent(function: Function) -> frozenset[int]:
    """The pointers of parameters on which nothing depends but themselves: not read, or to be stored there again."""
    read: set[int] = set()
    for stmt in statements(function.body):
        found = [(data.uid, mode) for e in expressions(stmt) for data, mode in accesses(e)]
        adds = any(mode & WRITE for _, mode in found)
        own = stmt.buffer.data.uid if isinstance(stmt, Store) and not adds else None
        read |= {uid for uid, mode in found if mode & READ and uid != own}
    return frozenset(b.data.uid for b in function.buffers) - read


@lru_cache(maxsize=16)
def only_added_to(function: Function) -> frozenset[str]:
    """The names of pointers that nothing uses but atomics that add floats and return nothing."""
    added: set[str] = set()
    others = {str(e.value) for e in postorder([call for _, call in function.descriptors]) if e.op == "var"}
    for stmt in statements(function.body):
        others |= {str(stmt.buffer.data.value)} if isinstance(stmt, Store) else set()
        left = list(expressions(stmt))
        while left:
            e = left.pop()
            target = _destination(e) if _is_atomic(e) and _adds_floats(e) and not returns(e) else None
            if target is not None:
                added.add(str(_addressed(target).value))
                inner = target if target.op == "load" else target.args[0]
                left += [
                    *(a for a in e.args if a is not target),
                    *(inner.args if inner.op == "load" else target.args[1:]),
                ]
            elif is_address(e) or (e.op == "load" and e.buffer is not None):
                others.add(str(_addressed(e).value))
                left += e.args
            else:
                others |= {str(e.value)} if e.op == "var" else set()
                left += e.args
    return frozenset(added - others)


def accesses(root: Expr) -> Iterator[tuple[Expr, int]]:
    """Yield pointers to what an expression accesses, and how. An atomic adds to its destination, its first address."""
    stack = [(root, READ | WRITE)]
    while stack:
        e, unsaid = stack.pop()
        if e.op != "call":
            if e.op == "load" and e.buffer is not None:
                yield e.buffer.data, READ
            stack.extend((a, unsaid) for a in e.args)
        elif is_address(e):
            yield _addressed(e), _mode(e, unsaid)
            inner = e.args[0]
            stack.extend((a, READ | WRITE) for a in (inner.args if inner.op == "load" else e.args))
        elif _is_atomic(e):
            target = _destination(e)
            if target is not None:
                yield _addressed(target), READ | WRITE
            stack.extend((a, READ) for a in e.args)
        elif (signature := signature_of(e)) is not None:
            stack.extend(_modes(e, signature))
        elif name_of_call(e) == "reducer_update" and e.args[0].buffer is not None:
            yield e.args[0].buffer.data, READ | WRITE
            stack.extend((a, READ) for a in (*e.args[0].args, *e.args[1:]))
        else:
            stack.extend((a, unsaid) for a in e.args)


def _modes(e: Expr, signature: Signature) -> Iterator[tuple[Expr, int]]:
    """The arguments of an instruction, and how it accesses what they name; an mbarrier is none of its data."""
    modes = dict.fromkeys((a.at for a in signature.reads), READ)
    modes |= dict.fromkeys((a.at for a in signature.writes), WRITE)
    modes |= dict.fromkeys((a.at for a in signature.updates), READ | WRITE)
    yield from ((a, modes.get(at, READ)) for at, a in enumerate(arguments_of_call(e)))


def is_address(e: Expr) -> bool:
    """Whether an expression is an address, or the region that begins at one."""
    return e.op == "call" and e.value in (*_MODES, "address_of") and len(e.args) > (e.value == "tvm_access_ptr")


def _addressed(e: Expr) -> Expr:
    """The pointer of an element or an address."""
    target = e if e.op == "load" else e.args[1] if e.value == "tvm_access_ptr" else e.args[0]
    return target.buffer.data if target.buffer is not None else target


def _mode(e: Expr, unsaid: int) -> int:
    """Return how what an address names is accessed; `unsaid` where it does not say."""
    place = _MODES.get(str(e.value))
    value = e.args[place].value if place is not None and place < len(e.args) else None
    return value if isinstance(value, int) and value else unsaid


def _is_atomic(e: Expr) -> bool:
    if e.op != "call":
        return False
    name = name_of_call(e).lower()
    return name.startswith("atomic") and not name.startswith(("atomic_load", "atomicload"))


def _destination(e: Expr) -> Expr | None:
    """Return what an atomic adds to: the address that says it is written, else the first address or element."""
    # 0.1.7 puts a tail's predicate into the destination.
    places = [a.args[1] if a.value == "if_then_else" and len(a.args) == 3 else a for a in e.args]
    said = (a for a in places if is_address(a) and _mode(a, 0) & WRITE)
    return next(said, next((a for a in places if a.op == "load" or is_address(a)), None))


def returns(e: Expr) -> bool:
    """Whether an atomic gives back what was there before."""
    return name_of_call(e).endswith(_RETURNING) or dict(e.annotations).get("return_prev", "0") not in ("0", "False")


def _adds_floats(e: Expr) -> bool:
    target = _destination(e)
    if target is None or not name_of_call(e).lower().replace("_", "").startswith("atomicadd"):
        return False
    element = target if target.op == "load" else target.args[0]  # of tvm_access_ptr: its type
    return "float" in element.dtype
