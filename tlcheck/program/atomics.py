"""The atomics of a function, in every spelling that TileLang's releases have for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tlcheck.program.tma import bulk, is_reduction
from tlcheck.program.walk import Axis, Placed, Program, Scope, expressions
from tlcheck.signatures.atomics import ACQUIRING, ATOMICS, IDEMPOTENT, LOAD, RELEASING, Atomic, order_of
from tlcheck.signatures.bulk_copies import TensorMap
from tlcheck.signatures.calls import arguments_of_call, name_of_call
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Buffer, Expr, Stmt
from tlcheck.snapshot.walk import postorder

_EQUAL_LANE = Expr("var", "int32", value="lane", uid=-300)  # of lanes that are printed one by one
_TILE = {"atomicadd": "add", "atomicmax": "max", "atomicmin": "min"}
_PREFIX = "atomic"  # of calls, in any case, that may be atomics although no signature knows them


@dataclass(frozen=True, slots=True, eq=False)
class Pointer:
    """Elements in memory, from one on. `indices` are those of `buffer`; a flat address has one index, and a buffer
    without a shape.
    `extents` only for a tile's region."""

    root: str
    buffer: Buffer
    dtype: str
    indices: tuple[Expr, ...]
    extents: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One atomic in the IR.

    operation: add, max, min, ... `instruction` is its spelling. width: lanes of the instruction. tile: a tile
    operator, once a block, not once a thread. value: an expression (of `width` lanes), or a pointer to the lanes.
    order: memory order, 0 is relaxed; None where the call does not name one. returns: gives back the previous value.
    aligned: alignment that the addresses of destination and values need on the device, in elements. start: innermost
    coordinate of the box that a bulk reduction adds to.
    """

    operation: str
    instruction: str
    width: int
    tile: bool
    target: Pointer
    value: Expr | Pointer
    order: int | None
    returns: bool
    scope: Scope
    placed: Placed
    call: Expr
    tma: bool = False
    aligned: tuple[int, int] = (1, 1)
    start: Expr | None = None

    @property
    def is_idempotent(self) -> bool:
        """Whether it changes nothing where it is made again with the same value."""
        return self.operation in IDEMPOTENT and not self.returns


@dataclass(frozen=True, slots=True, eq=False)
class PlainAtomic:
    """An atomic that adds nothing: a `load` or a `store`, called `instruction`.

    target: the element; None where it was not understood. value: type of what is loaded or stored. order: memory order.
    """

    operation: str
    instruction: str
    target: Pointer | None
    value: str
    order: int
    stmt: Stmt

    @property
    def root(self) -> str:
        """The memory; empty where it was not understood."""
        return "" if self.target is None else self.target.root


@dataclass(frozen=True, slots=True, eq=False)
class FoundAtomics:
    """The atomics of a function in program order. unread: calls recognized by name of which something was not
    understood: the arguments, or which atomic it is. plain: loads and stores.
    """

    sites: tuple[Site, ...]
    unread: tuple[Expr, ...]
    plain: tuple[PlainAtomic, ...] = ()


def atomics(
    program: Program,
    without: set[Expr] | None = None,
    descriptors: Mapping[str, TensorMap] | None = None,
    printed: bool = False,
) -> FoundAtomics:
    """All atomics of a function. `without` collects the expressions that hold none: snapshots share expressions among
    their checkpoints, so one set serves them all. descriptors: root -> the call that makes its TMA descriptor. printed:
    no pass comes after it, the CUDA is printed from it.
    """
    without = set() if without is None else without
    sites: list[Site] = []
    unread: list[Expr] = []
    plain: list[PlainAtomic] = []
    for placed in program.statements:
        for expr in expressions(placed.stmt):
            for call, scope in _atomic_calls(expr, placed.scope, without):
                atomic = ATOMICS.get(name_of_call(call))
                if atomic is not None and not atomic.combines:
                    plain.append(_plain(program, call, atomic, placed))
                    continue
                site = _site(program, call, scope, placed, descriptors or {})
                if site is None:
                    unread.append(call)
                else:
                    sites.append(_copied(site) if printed and _is_conditional(arguments_of_call(call)[0]) else site)
    return FoundAtomics(tuple(sites), tuple(unread), tuple(plain))


def have_both_orders(found: FoundAtomics) -> bool:
    """Whether some atomics of tensors release what their thread has written and some acquire that, or the same do."""
    every: list[Site | PlainAtomic] = [*found.sites, *found.plain]
    named = [a.order or 0 for a in every if a.target is not None and a.target.buffer.scope == "global"]
    return any(order in RELEASING for order in named) and any(order in ACQUIRING for order in named)


def atomic_name(call: Expr) -> str:
    """The name under which a call is a read-modify-write, or may be an unknown atomic; empty if it is neither."""
    if call.op != "call":
        return ""
    name = name_of_call(call)
    unknown = name.lower().startswith(_PREFIX) and name not in ATOMICS
    return name if is_atomic(name) or unknown or is_reduction(call) else ""


def is_atomic(name: str) -> bool:
    """Whether a call of this name is an atomic read-modify-write."""
    atomic = ATOMICS.get(name)
    return name in _TILE or (atomic is not None and atomic.combines)


def is_tile_atomic(call: Expr) -> bool:
    """Whether a call is an atomic of a whole tile."""
    return call.op == "call" and call.value in _TILE


def unread_because(call: Expr) -> str:
    """Return why an atomic could not be read."""
    name = atomic_name(call)
    known = is_atomic(name) or is_reduction(call)
    return f"the arguments of {name} are not understood" if known else f"{name} is not a known atomic"


def _is_found(e: Expr) -> bool:
    """Whether a call is an atomic of any kind. Snapshots that no compiler made have loads without arguments."""
    return bool(atomic_name(e)) or (e.op == "call" and name_of_call(e) in ATOMICS and bool(arguments_of_call(e)))


def _atomic_calls(expr: Expr, scope: Scope, without: set[Expr]) -> Iterator[tuple[Expr, Scope]]:
    """Atomic calls in expr; the branches of an if_then_else are guarded, and those of a select, which is `?:` in CUDA.
    Equal lanes of a vector call it each for itself. `without`: expressions known to hold none.
    """
    # add to `without` what holds no atomics in expr
    holding: set[Expr] = set()
    for e in postorder([expr], without):
        if _is_found(e) or (holding and any(arg in holding for arg in e.args)):
            holding.add(e)
        else:
            without.add(e)
    stack = [(expr, scope)]
    while stack:
        e, around = stack.pop()
        if e in without:
            continue
        if _is_found(e):
            yield e, around
        guarded = e.op == "select" or _is_conditional(e)
        for position in range(len(e.args) - 1, -1, -1):
            inside = around.under(e.args[0], holds=position == 1) if guarded and position else around
            if e.op == "broadcast":
                lanes = Expr("int", "int32", value=dtype_of(e.dtype).lanes)
                inside = around.within(Axis(_EQUAL_LANE, Expr("int", "int32", value=0), lanes, "vectorized"))
            stack.append((e.args[position], inside))


def _plain(program: Program, call: Expr, atomic: Atomic, placed: Placed) -> PlainAtomic:
    args = arguments_of_call(call)
    value = call if atomic.operation == LOAD or len(args) < 2 else args[1]
    target = pointer(program, args[0])
    order = order_of(call) or 0
    return PlainAtomic(atomic.operation, name_of_call(call), target, value.dtype, order, placed.stmt)


def _site(
    program: Program, call: Expr, scope: Scope, placed: Placed, descriptors: Mapping[str, TensorMap]
) -> Site | None:
    name, args = name_of_call(call), arguments_of_call(call)
    if is_reduction(call):
        return _bulk_site(program, call, scope, placed, descriptors)
    if name in _TILE:
        return _tile_site(program, call, scope, placed)
    atomic = ATOMICS.get(name)
    if atomic is None or len(args) < 2:
        return None
    operation, width, returns = atomic.operation, atomic.width, atomic.returns
    target_expr = args[0]
    if _is_conditional(target_expr):  # 0.1.7 puts a tail's predicate into the destination, for a later pass to move
        scope, target_expr = scope.under(target_expr.args[0]), target_expr.args[1]
    target = pointer(program, target_expr)
    if target is None:
        return None
    value: Expr | Pointer = args[1]
    if width > 1 and args[1].op == "call":
        value = pointer(program, args[1]) or args[1]
    order, aligned = order_of(call), (width, width)
    return Site(operation, name, width, False, target, value, order, returns, scope, placed, call, False, aligned)


def _tile_site(program: Program, call: Expr, scope: Scope, placed: Placed) -> Site | None:
    if len(call.args) < 2:
        return None
    target = pointer(program, call.args[1])
    source = call.args[0]
    value: Expr | Pointer | None = pointer(program, source) if source.value == "region" else source
    if target is None or value is None or not target.extents:
        return None
    notes = dict(call.annotations)
    order = notes.get("memory_order")
    if order is None and len(call.args) > 3:  # up to 0.1.7: use_tma and the order are arguments
        order = str(call.args[3].value)
    tma = notes.get("use_tma", "0") not in ("0", "False", "false")
    tma = tma or (len(call.args) > 2 and call.args[2].op == "int" and bool(call.args[2].value))
    number = int(order) if order is not None and order.isdigit() else None
    name = str(call.value)
    return Site(_TILE[name], name, 1, True, target, value, number, False, scope, placed, call, tma)


def _bulk_site(
    program: Program, call: Expr, scope: Scope, placed: Placed, descriptors: Mapping[str, TensorMap]
) -> Site | None:
    found = bulk(program, call, descriptors)
    if found is None:
        return None
    data = program.buffers[found.root].data if found.root in program.buffers else call.args[0]
    flat = Buffer(found.root, found.dtype, (), "global", data)
    target = Pointer(found.root, flat, found.dtype, (found.offset,))
    scope = replace(scope, guards=(*scope.guards, *found.guards))
    start, load = found.start, found.load
    return Site(
        "add", str(call.value), found.elements, False, target, load, None, False, scope, placed, call, True, start=start
    )


def _copied(site: Site) -> Site:
    """The site as CUDA has it whose destination a condition selects: an `if_then_else` is a variable with a copy of the
    element, and what is done to that is lost.
    """
    root = f"{site.target.root}'s copy"
    buffer = Buffer(root, site.target.dtype, (), "local", site.target.buffer.data)
    return replace(site, target=replace(site.target, root=root, buffer=buffer))


def _is_conditional(e: Expr) -> bool:
    return e.op == "call" and e.value == "if_then_else" and len(e.args) == 3


def pointer(program: Program, e: Expr) -> Pointer | None:
    """The memory that an argument of an atomic points to; None where it is not understood."""
    if e.op == "load" and e.buffer is not None:
        return Pointer(program.roots.of(e.buffer.data), e.buffer, e.buffer.dtype, e.args)
    if e.op != "call" or not e.args:
        return None
    if e.value in ("address_of", "access_ptr"):
        return pointer(program, e.args[0])
    if e.value == "region":
        base = pointer(program, e.args[0])
        if base is None:
            return None
        return Pointer(base.root, base.buffer, base.dtype, base.indices, e.args[2:])
    if e.value == "tvm_access_ptr" and len(e.args) >= 3 and e.args[1].op == "var":
        root = program.roots.of(e.args[1])
        known = program.buffers.get(root)
        flat = Buffer(root, e.args[0].dtype, (), known.scope if known is not None else "", e.args[1])
        return Pointer(root, flat, e.args[0].dtype, (e.args[2],))
    return None
