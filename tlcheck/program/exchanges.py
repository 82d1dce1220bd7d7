"""Lanes of a warp give one another values by shuffles of whole warps: see what surely depends on these.

A shuffle gives no order to memory (CUDA C++ programming guide, "Warp Shuffle Functions"), but each lane waits until all
have executed it (PTX ISA 9.7.9.6, shfl.sync), with their operands. So a read whose value is in an operand has been
performed before a store that is made of the result, by whichever lane: the value cannot have come out of thin air
(PTX ISA 8.10.4). Nothing of this holds for what lanes have written before.

Surely: on all ways through the function. Where a loop is left early, nothing is sure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import prod

from tlcheck.signatures.calls import arguments_of_call, library_name, name_of_call
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Bind, Buffer, Evaluate, Expr, For, Function, If, Seq, Stmt, Store, Unknown, While
from tlcheck.snapshot.walk import children, expressions, postorder, statements

SCANS = tuple(f"tl::{name}{axes}D" for name in ("CumSum", "CumMax", "InclusiveScan") for axes in (1, 2))
SHUFFLES = tuple(f"{prefix}shfl_{way}sync" for prefix in ("", "__", "tl::") for way in ("", "up_", "down_", "xor_"))
LANES = 0xFFFFFFFF  # all that a mask can name
_MOST = 4096  # pairs of an access and a shuffle
_CHOICES = ("select", "and", "or")  # of which only the first part is evaluated in any case
_OPAQUE = ("let", "predicated", "shuffle", "unknown")

_Carrier = tuple[int, str]  # a variable, or an element of a register buffer, by its indices
_State = frozenset[_Carrier] | None  # what surely depends on a value; None where no way leads
_Visit = Callable[[Stmt, frozenset[_Carrier], bool], bool]  # whether the ways end here; with what surely decides


@lru_cache(maxsize=16)
def shuffles(function: Function) -> Mapping[Expr, Stmt]:
    """The shuffles of whole warps whose result a statement keeps, each in one statement."""
    found: dict[Expr, Stmt] = {}
    twice = set()
    for stmt in statements(function.body):
        for e in postorder(expressions(stmt)):
            if is_of_warp(e):
                twice |= {e} if e in found else set()
                found[e] = stmt
    return {e: stmt for e, stmt in found.items() if e not in twice and isinstance(stmt, (Store, Bind))}


def is_of_warp(e: Expr) -> bool:
    """Whether an expression is a shuffle of all lanes that its mask can name."""
    if e.op != "call" or name_of_call(e) not in SHUFFLES:
        return False
    return names_all_lanes(arguments_of_call(e)[0])


def names_all_lanes(lanes: Expr) -> bool:
    """Whether a mask is a number that names all lanes of a warp."""
    while lanes.op == "cast":
        lanes = lanes.args[0]
    return lanes.op == "int" and int(lanes.value or 0) & LANES == LANES


@lru_cache(maxsize=16)
def fed(function: Function) -> Mapping[Stmt, frozenset[Expr]]:
    """The statements that read shared memory, with the shuffles whose operand surely depends on all that they read.

    A branch reads what its condition asks: whoever comes to a scan in it has read that.
    """
    found, flow = _asked(function), _Consequences(function)
    reads = [s for s in statements(function.body) if isinstance(s, (Store, Bind)) and _reads(s)]
    if not flow.is_followed or len(reads) * len(shuffles(function)) > _MOST:
        return found
    for read in reads:
        into = {e for e, stmt in shuffles(function).items() if _surely_reaches(flow, read, e, stmt)}
        if into:
            found[read] = frozenset(into)
    return found


@lru_cache(maxsize=16)
def led(function: Function) -> Mapping[Stmt, frozenset[Expr]]:
    """The stores to memory, with the shuffles on whose last result they surely depend."""
    found = {stmt: frozenset((e,)) for e, stmt in _scans(function)}
    flow = _Consequences(function)
    if not flow.is_followed or not shuffles(function):
        return found
    for e, stmt in shuffles(function).items():
        for store in _surely_led(flow, stmt):
            found[store] = found.get(store, frozenset()) | {e}
    return found


def _scans(function: Function) -> list[tuple[Expr, Stmt]]:
    """The scans of the device library (scan.h): a warp shuffles what it has read, and stores the results."""
    calls = ((stmt.value, stmt) for stmt in statements(function.body) if isinstance(stmt, Evaluate))
    return [(e, stmt) for e, stmt in calls if library_name(name_of_call(e)) in SCANS]


def _asked(function: Function) -> dict[Stmt, frozenset[Expr]]:
    """The branches that ask shared memory, with the scans in them."""
    found: dict[Stmt, frozenset[Expr]] = {}
    scans = frozenset(e for e, _ in _scans(function))
    for branch in (s for s in statements(function.body) if scans and isinstance(s, If)):
        within = scans.intersection(s.value for s in statements(branch) if isinstance(s, Evaluate))
        if within and _loads_shared((branch.condition,)):
            found[branch] = within
    return found


def _surely_led(flow: _Consequences, shuffle: Stmt) -> list[Stmt]:
    depends: dict[Stmt, bool] = {}

    def visit(at: Stmt, carriers: frozenset[_Carrier], decided: bool) -> bool:
        if isinstance(at, Store) and not _is_register(at.buffer):
            depends[at] = depends.get(at, True) and (decided or _carries(expressions(at), carriers))
        return at is shuffle

    flow.follow(shuffle, visit)
    return [store for store, surely in depends.items() if surely]


def _surely_reaches(flow: _Consequences, read: Stmt, shuffle: Expr, stmt: Stmt) -> bool:
    met: list[bool] = []

    def visit(at: Stmt, carriers: frozenset[_Carrier], decided: bool) -> bool:
        if at is stmt:
            met.append(_carries([arguments_of_call(shuffle)[1]], carriers))
        return at is stmt

    flow.follow(read, visit)
    return bool(met) and all(met)


class _Consequences:
    """Follows what surely depends on a value, on the ways that lead on from a statement.

    is_followed: whether all ways through the function are known.
    """

    def __init__(self, function: Function) -> None:
        self._around: dict[Stmt, Stmt] = {c: s for s in statements(function.body) for c in children(s)}
        calls = [signature_of(e) for s in statements(function.body) for e in postorder(expressions(s))]
        self.is_followed = not any(call is not None and call.leaves is not None for call in calls)
        self.is_followed &= not any(isinstance(s, Unknown) for s in statements(function.body))
        self._visit: _Visit = lambda at, carriers, decided: False

    def follow(self, start: Stmt, visit: _Visit) -> None:
        """Tell each statement on the ways from behind `start`, which keeps a value, to the function's end."""
        self._visit = visit
        target = _target(start)
        state: _State = None if target is None else frozenset([target])
        inner = start
        while state is not None and inner in self._around:
            outer = self._around[inner]
            if isinstance(outer, Seq):
                for stmt in outer.body[[s is inner for s in outer.body].index(True) + 1 :]:
                    state = self._after(stmt, state, False)
            elif isinstance(outer, (For, While)):
                state = _joined(state, self._again(outer, state, False))
            inner = outer

    def _after(self, stmt: Stmt, state: _State, decided: bool) -> _State:
        """The state behind a statement. decided: whether the value surely decides that it runs."""
        if state is None or self._visit(stmt, state, decided):
            return None
        if isinstance(stmt, (For, While)):
            found = self._again(stmt, state, decided)
            always = isinstance(stmt, For) and stmt.extent.op == "int" and int(stmt.extent.value or 0) > 0
            return found if always else _joined(state, found)
        if isinstance(stmt, If):
            decides = decided or _carries([stmt.condition], state)
            arms = [self._after(arm, state, decides) for arm in children(stmt)]
            found = _joined(arms[0], arms[1] if len(arms) > 1 else state)
            return found if found is None or not decides else found | _kept_in(stmt)
        if children(stmt):
            for child in children(stmt):
                state = self._after(child, state, decided)
            return state
        return _stored(stmt, state, decided)

    def _again(self, loop: For | While, state: _State, decided: bool) -> _State:
        """The state behind the last of one or more iterations of a loop that begins with a state."""
        out: _State = None
        while state is not None:
            begin = _without(state, loop.var.uid) if isinstance(loop, For) else state
            out = self._after(loop.body, begin, decided)
            if (before := _joined(begin, out)) == state:
                break
            state = before
        return out


def _stored(stmt: Stmt, state: frozenset[_Carrier], decided: bool) -> _State:
    """The state behind a statement that encloses none."""
    if isinstance(stmt, Evaluate):  # a call may write the registers that it names
        touched = {e.buffer.data.uid if e.buffer else e.uid for e in postorder([stmt.value])}
        return frozenset(c for c in state if c[0] not in touched)
    target = _target(stmt)
    if target is None:
        return frozenset(c for c in state if not isinstance(stmt, Store) or c[0] != stmt.buffer.data.uid)
    depends = decided or _carries(expressions(stmt), state)
    left = {c for c in state if c[0] != target[0]} | ({target} if depends else set())
    if isinstance(stmt, Bind):
        return frozenset(c for c in left if f"#{stmt.var.uid}." not in c[1])
    return frozenset(left | {c for c in state if c[0] == target[0] and _are_apart(c[1], target[1])})


def _kept_in(branch: If) -> frozenset[_Carrier]:
    """Return what statements of a branch give a value, where that is all of a buffer."""
    return frozenset(t for s in statements(branch) for t in (_target(s),) if t is not None and not t[1])


def _target(stmt: Stmt) -> _Carrier | None:
    """The variable or register to which a statement gives a value; None where it gives none."""
    if isinstance(stmt, Bind):
        return None if stmt.var.dtype == "handle" else (stmt.var.uid, "")
    if isinstance(stmt, Store) and _is_register(stmt.buffer) and stmt.predicate is None:
        return _element(stmt.buffer, stmt.indices)
    return None


def _element(buffer: Buffer, indices: tuple[Expr, ...]) -> _Carrier:
    one = all(e.op == "int" for e in buffer.shape) and prod(int(e.value or 0) for e in buffer.shape) == 1
    return buffer.data.uid, "" if one else ",".join(map(_spelled, indices))


def _spelled(e: Expr) -> str:
    """An index as text, with the number of each variable; a number that is read is none that is known."""
    if e.op == "load" or e.op == "call":
        return f"?{id(e)}"
    if e.op == "var":
        return f"#{e.uid}."
    return f"{e.op}:{e.value}({','.join(map(_spelled, e.args))})" if e.args else f"{e.value}"


def _are_apart(one: str, other: str) -> bool:
    """Whether two indices are different constants."""
    return one != other and all(c.isdigit() or c == "," for c in one + other)


def _carries(roots: list[Expr] | tuple[Expr, ...], carriers: frozenset[_Carrier]) -> bool:
    """Whether expressions surely depend on a carrier: one is an argument of what is always evaluated."""
    left = list(roots)
    while left:
        e = left.pop()
        if e.op == "var" and (e.uid, "") in carriers:
            return True
        if e.op == "load" and e.buffer is not None and _element(e.buffer, e.args) in carriers:
            return True
        chooses = e.op in _CHOICES or name_of_call(e) == "if_then_else"
        left += () if e.op in _OPAQUE else e.args[:1] if chooses else e.args
    return False


def _reads(stmt: Store | Bind) -> bool:
    """Whether a statement keeps in registers what it makes of shared memory."""
    return _target(stmt) is not None and _loads_shared(expressions(stmt))


def _loads_shared(roots: Iterable[Expr]) -> bool:
    loads = (e.buffer for e in postorder(roots) if e.op == "load" and e.buffer is not None)
    return any(buffer.scope.startswith("shared") for buffer in loads)


def _is_register(buffer: Buffer) -> bool:
    return buffer.scope.startswith("local")


def _without(state: frozenset[_Carrier], uid: int) -> frozenset[_Carrier]:
    """A state without what depends on the value that a loop's variable had."""
    return frozenset(c for c in state if c[0] != uid and f"#{uid}." not in c[1])


def _joined(one: _State, other: _State) -> _State:
    return other if one is None else one if other is None else one & other
