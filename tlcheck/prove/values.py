"""What an atomic adds: the form of its value and the element that each load in it reads.

Casts that keep every value do not count as form, and neither does the order of the operands of + and *: passes move
them. Casts that lose something do, the one to the destination's type among them, written or not, and so does the type
to which sums, products and functions are rounded. A value staged in registers by a pass (`C_local_cast`) is followed
back to what was stored there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tlcheck.algebra.algebra import ADDRESSES, Algebra, Content
from tlcheck.algebra.polynomial import add, as_constant, constant
from tlcheck.program.atomics import Pointer, is_atomic, pointer
from tlcheck.program.layouts import flatten, row_major
from tlcheck.program.roles import WRITE, accesses
from tlcheck.program.walk import Axis, Placed, Program, Scope, expressions, subexpressions
from tlcheck.reasons import VALUE_UNREAD, Reason
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.dtypes import dtype_of, keeps
from tlcheck.snapshot.ir import Buffer, Expr, Store
from tlcheck.snapshot.walk import postorder, substitute

_TURNED = {"gt": "lt", "ge": "le"}  # passes write the one for the other
_COMMUTATIVE = frozenset("add mul min max and or eq ne".split())
_SHAPED = frozenset(
    "add sub mul div min max not and or eq ne lt le gt ge mod floordiv floormod truncdiv truncmod".split()
)
MAX_DEPTH = 8
_CAST = "cast:"
_MATH = re.compile(
    r"^(?:__h?|h)?(exp2|exp10|exp|log2|log10|log1p|log|rsqrt|sqrt|tanh|sinh|cosh|sin|cos|tan|erf|f?abs|pow"
    r"|floor|ceil|trunc|nearbyint|rint)f?$"
)
_OTHERWISE = {"abs": "fabs", "rint": "nearbyint"}  # another name of a function of floats
_ARITHMETIC = frozenset(("add", "sub", "mul", "div"))
_NARROW = ("float16", "bfloat16")


class UnreadableError(Exception):
    """Why a value or an address cannot be read; the message is the verdict's reason."""

    @property
    def reason(self) -> Reason:
        return Reason(VALUE_UNREAD, str(self))


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """A leaf of a value: one element of memory, or (without a root) an integer expression."""

    root: str
    buffer: Buffer | None
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """`form`: the expression with its leaves left out; `leaves` in the order of the form; `conditions` under which it
    is this.
    """

    form: str
    leaves: tuple[Load, ...]
    conditions: tuple[Expr, ...] = ()


def at_lane(expr: Expr, lane: Expr | None, scope: Scope) -> Expr:
    """One lane of a vector expression: a ramp becomes base + stride * lane, a vector that is held in a variable that
    lane of its value.
    """
    # the expression with its variables that hold vectors replaced by what they hold
    held = {uid: value for uid, value in scope.bindings if dtype_of(value.dtype).lanes > 1}
    for _ in range(MAX_DEPTH if held else 0):
        before, expr = expr, substitute([expr], held)[0]
        if expr is before:
            break
    if _is_scalar(expr):
        return expr
    made: dict[Expr, Expr] = {}
    for e in postorder([expr]):
        made[e] = e if _is_scalar(e) else _one_lane(e, tuple(made[a] for a in e.args), lane)
    return made[expr]


def _is_scalar(e: Expr) -> bool:
    return dtype_of(e.dtype).lanes == 1 and not any(dtype_of(a.dtype).lanes > 1 for a in e.args)


def _one_lane(e: Expr, args: tuple[Expr, ...], lane: Expr | None) -> Expr:
    if e.op == "ramp":
        base, stride = args
        assert lane is not None
        return Expr("add", base.dtype, (base, Expr("mul", base.dtype, (stride, lane))))
    if e.op == "broadcast":
        return args[0]
    return Expr(e.op, dtype_of(e.dtype).name, args, e.value, e.uid, e.buffer, e.annotations)


class Reader:
    """Reads values in one function. `known`: roots that the kernel itself declares, where a value's way back ends."""

    def __init__(self, program: Program, known: frozenset[str]) -> None:
        self.program = program
        self.known = known
        self._stores: dict[str, list[Placed]] | None = None
        self._writes: dict[str, list[Placed]] | None = None

    def read(
        self,
        value: Expr | Pointer,
        lane: Expr | None,
        placed: Placed,
        scope: Scope,
        dtype: str,
        unguarded: bool = False,
    ) -> Value:
        """The value of one lane, cast to a type. `unguarded`: `if_then_else(c, x, 0)` is read as x under the condition
        c. Raises UnreadableError.
        """
        if isinstance(value, Pointer):
            assert lane is not None
            last = value.indices[-1]
            indices = (*value.indices[:-1], Expr("add", last.dtype, (last, lane)))
            expr = Expr("load", value.dtype, indices, buffer=value.buffer)
        else:
            expr = at_lane(value, lane, scope)
        reading = _Reading(self, dict(scope.bindings), unguarded, placed)
        form, leaves = reading.form(Expr("cast", dtype_of(dtype).name, (expr,)), placed)
        return Value(form, leaves, tuple(reading.conditions))

    def staged(self, root: str, load: Expr, placed: Placed) -> tuple[Expr, Placed, tuple[Expr, ...]]:
        """What was last stored, before `placed`, where `load` reads, and the conditions under which that is so:
        registers that a pass invented have one store in reach.
        """
        for store in reversed([s for s in self._stores_to(root) if s.order < placed.order]):
            found = self._stored(store, root, load, placed)
            if found is not None:
                return found[0], store, found[1]
        raise UnreadableError(f"its value comes from {root}, which nothing stores to before")

    def _stored(self, store: Placed, root: str, load: Expr, placed: Placed) -> tuple[Expr, tuple[Expr, ...]] | None:
        """What a store puts where `load` reads, and under which conditions; None if it is to another element."""
        stmt = store.stmt
        assert isinstance(stmt, Store)
        shared = {id(a.var) for a in placed.scope.axes}
        own = [a for a in store.scope.axes if id(a.var) not in shared]
        guards = {id(g.condition) for g in placed.scope.guards}
        if stmt.predicate is not None or any(id(g.condition) not in guards for g in store.scope.guards):
            raise UnreadableError(f"its value comes from {root}, which is stored to under another condition")
        return _solve(store, own, load, root, self.program)

    def require_unchanged(self, load: Expr, read: Placed, used: Placed) -> None:
        """Raises UnreadableError where what was read before its use may have been written again in between."""
        if read is used:
            return
        around = {id(a.var) for a in read.scope.axes}
        again = {id(a.var) for a in used.scope.axes} - around  # loops that run between the two
        for root in {self.program.roots.of(e.buffer.data) for e in subexpressions(load) if e.buffer is not None}:
            for write in self.writes_to(root):
                repeated = any(id(a.var) in again for a in write.scope.axes)
                if read.order < write.order and (write.order < used.order or repeated):
                    raise UnreadableError(f"its value was read from {root} before that was written again")

    def writes_to(self, root: str) -> list[Placed]:
        """The statements that may write a root, in program order."""
        if self._writes is None:
            self._writes = {}
            for placed in self.program.statements:
                for written in writes(self.program, placed):
                    self._writes.setdefault(written, []).append(placed)
        return self._writes.get(root, [])

    def _stores_to(self, root: str) -> list[Placed]:
        if self._stores is None:
            self._stores = {}
            for placed in self.program.statements:
                if isinstance(placed.stmt, Store):
                    key = self.program.roots.of(placed.stmt.buffer.data)
                    self._stores.setdefault(key, []).append(placed)
        return self._stores.get(root, [])


def writes(program: Program, placed: Placed) -> set[str]:
    """The roots that a statement may write."""
    stored = {program.roots.of(placed.stmt.buffer.data)} if isinstance(placed.stmt, Store) else set()
    found = (access for value in expressions(placed.stmt) for access in accesses(value))
    return stored | {program.roots.of(data) for data, mode in found if mode & WRITE}


Part = tuple[str, tuple[Load, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class _Operator:
    """An operator whose operands are read at one place. depth: of the registers that led there."""

    name: str
    args: tuple[Expr, ...]
    commutes: bool
    placed: Placed
    depth: int

    def of(self, parts: list[Part]) -> Part:
        """The operator's form from those of its operands."""
        if self.name.startswith(_CAST) and _is_idle(self.name, *parts[0]):
            return parts[0]
        if self.commutes:
            parts.sort(key=lambda part: (part[0], [leaf.root for leaf in part[1]]))
        return f"{self.name}({','.join(form for form, _ in parts)})", tuple(leaf for _, own in parts for leaf in own)


class _Reading:
    """One value being read."""

    def __init__(self, reader: Reader, bound: Mapping[int, Expr], unguarded: bool, used: Placed) -> None:
        self.reader = reader
        self.bound = bound
        self.unguarded = unguarded
        self.used = used
        self.conditions: list[Expr] = []
        self.has_atomic = False

    def form(self, e: Expr, placed: Placed) -> Part:
        """The form and the leaves of an expression, operands before operators: some sums have thousands of terms."""
        done: list[Part] = []
        tasks: list[_Operator | tuple[Expr, Placed, int]] = [(e, placed, 0)]
        while tasks:
            task = tasks.pop()
            if isinstance(task, _Operator):
                done.append(task.of([done.pop() for _ in task.args]))
                continue
            found = self._read(*task)
            if isinstance(found, _Operator):
                tasks += [found, *((arg, found.placed, found.depth) for arg in found.args)]
            else:
                done.append(found)
        return done.pop()

    def _read(self, e: Expr, placed: Placed, depth: int) -> Part | _Operator:
        """A leaf, or an operator whose operands are still to be read."""
        e, placed, depth = self._followed(e, placed, depth)
        if e.op in ("float", "int"):
            return repr(float(e.value or 0)), ()
        if e.op == "load" and e.buffer is not None:
            self.reader.require_unchanged(e, placed, self.used)
            return _stored(e.dtype), (Load(self.reader.program.roots.of(e.buffer.data), e.buffer, e.args),)
        if e.op != "cast" and self._is_index(e):
            return "#", (Load("", None, (e,)),)
        if e.op not in _SHAPED and e.op not in ("call", "select", "cast"):
            what = f"{e.op} {e.value or ''}".strip()
            raise UnreadableError(f"its value has a part that is not understood ({what})")
        return self._address(e) if e.value in ADDRESSES else self._operator(e, placed, depth)

    def _operator(self, e: Expr, placed: Placed, depth: int) -> _Operator:
        """The operator that an expression is, by a name that says all that matters of its type."""
        if e.op == "cast":
            return _Operator(f"{_CAST}{dtype_of(e.dtype).name}", e.args, False, placed, depth)
        if e.op == "call" and is_atomic(name_of_call(e)):
            # each call of an atomic returns another number, even where two are the same expression
            if self.has_atomic:
                raise UnreadableError("its value has more than one number that atomics return")
            self.has_atomic = True
        name, args = _function(e) if e.op == "call" else (e.op, e.args)
        if _is_arithmetic(e) and e.dtype in _NARROW:  # it is that of float32, rounded: passes may say so
            return _Operator(f"{_CAST}{e.dtype}", (replace(e, dtype="float32"),), False, placed, depth)
        if _is_arithmetic(e) and e.dtype != "float32":
            name = f"{name}:{e.dtype}"
        if name in _TURNED:
            name, args = _TURNED[name], args[::-1]
        return _Operator(name, args, e.op in _COMMUTATIVE, placed, depth)

    def _address(self, e: Expr) -> Part:
        """An address, as an atomic within the value has it."""
        found = pointer(self.reader.program, e)
        if found is None:
            raise UnreadableError(f"an address in its value is not understood ({e.value})")
        return f"&{found.dtype}", (Load(found.root, found.buffer, found.indices),)

    def _followed(self, e: Expr, placed: Placed, depth: int) -> tuple[Expr, Placed, int]:
        """The expression that a variable, a cast, a guard or a register of a pass's own stands for."""
        while depth <= MAX_DEPTH:
            if e.op == "cast" and keeps(e.args[0].dtype, e.dtype):
                e = e.args[0]
            elif e.op == "var" and e.uid in self.bound:
                e, depth = self.bound[e.uid], depth + 1
            elif e.op == "call" and e.value == "sigmoid":
                # the sigmoid of a float as TVM writes it out: 1 / (1 + exp(0 - x))
                x = e.args[0]
                zero, one = (Expr("float", x.dtype, value=value) for value in (0.0, 1.0))
                power = Expr("call", x.dtype, (Expr("sub", x.dtype, (zero, x)),), "exp")
                e = Expr("div", x.dtype, (one, Expr("add", x.dtype, (one, power))))
            elif e.op in ("floordiv", "floormod") and _is_written_out(e):
                e = _by_c_division(e)
            elif e.op == "let":
                self.bound = {**self.bound, e.args[0].uid: e.args[1]}
                e, depth = e.args[2], depth + 1
            elif e.op == "call" and e.value == "if_then_else" and self.unguarded and not self._is_index(e):
                self.conditions.append(e.args[0])
                e = e.args[1]
            elif e.op == "load" and e.buffer is not None and self._is_staged(e.buffer):
                root = self.reader.program.roots.of(e.buffer.data)
                e, placed, conditions = self.reader.staged(root, e, placed)
                self.conditions += conditions
                depth += 1
            else:
                return e, placed, depth
        raise UnreadableError("its value is staged through too many registers")

    def _is_index(self, e: Expr) -> bool:
        return dtype_of(e.dtype).is_integral and not _loads(e, self.bound)

    def _is_staged(self, buffer: Buffer) -> bool:
        root = self.reader.program.roots.of(buffer.data)
        return root not in self.reader.known and buffer.scope.startswith("local")


def _is_arithmetic(e: Expr) -> bool:
    """Whether the type of an operation says how it rounds, or where its numbers end."""
    return e.op in _ARITHMETIC or e.value == "shift_left" or bool(_mathematical(e))


def _is_idle(cast: str, form: str, leaves: tuple[Load, ...]) -> bool:
    """Whether a cast changes nothing: of a number in the code, of an element of a type that it keeps, or once more."""
    dtype = cast.removeprefix(_CAST)
    if not leaves or form.startswith(f"{cast}("):
        return True
    return form.startswith("@") and keeps(form[1:], dtype)


def _stored(dtype: str) -> str:
    """The form of an element of memory: its type. Bytes are what memory holds of booleans."""
    name = dtype_of(dtype).name
    return f"{_CAST}bool(@int8)" if name == "bool" else f"@{name}"


def _function(call: Expr) -> tuple[str, tuple[Expr, ...]]:
    """Name and arguments of a call; the device's name of a mathematical function (`__expf`) is the function's."""
    name, args = str(call.value), call.args
    if name == "if_then_else":
        return "select", args
    if name in ("call_extern", "call_pure_extern") and args and args[0].op == "str":
        name, args = _mathematical(call) or str(args[0].value), args[1:]
    return f"call:{name}", args


def _mathematical(call: Expr) -> str:
    """The function of floats that a call is, whatever the device's name of it; empty for others."""
    match = _MATH.match(name_of_call(call)) if call.op == "call" else None
    return _OTHERWISE.get(match[1], match[1]) if match else ""


def _is_written_out(e: Expr) -> bool:
    """Whether a division is one that C does not have, and no shift."""
    divisor = e.args[1].value if e.args[1].op == "int" else None
    signed = dtype_of(e.dtype).kind == "int"
    return signed and isinstance(divisor, int) and divisor > 0 and divisor & (divisor - 1) != 0


def _by_c_division(e: Expr) -> Expr:
    """A quotient or remainder by a constant as TVM writes it out: C's, corrected where C's remainder is negative."""
    dtype, bits, divisor = e.dtype, dtype_of(e.dtype).bits, int(e.args[1].value or 0)
    rest = Expr("truncmod", dtype, e.args)
    if bits == 64:
        sign = Expr("call", dtype, (rest, Expr("int", dtype, value=63)), "shift_right")
    else:
        sign = Expr("floordiv", dtype, (rest, Expr("int", dtype, value=1 << (bits - 1))))
    if e.op == "floordiv":
        return Expr("add", dtype, (Expr("truncdiv", dtype, e.args), sign))
    if divisor & (divisor + 1) == 0:
        more = Expr("floormod", dtype, (sign, Expr("int", dtype, value=divisor + 1)))
    else:
        more = Expr("call", dtype, (e.args[1], sign), "bitwise_and")
    return Expr("add", dtype, (rest, more))


def _solve(
    placed: Placed, own: list[Axis], load: Expr, root: str, program: Program
) -> tuple[Expr, tuple[Expr, ...]] | None:
    """The stored value for the index that `load` reads; the store's own loop variable (or lane) takes the value that
    hits it, which has to be one that it takes at all. None where another element is stored to.
    """
    store = placed.stmt
    assert isinstance(store, Store)
    if len(store.indices) != 1 or len(load.args) != 1:
        raise UnreadableError(f"its value comes from {root}, which has several dimensions")
    width = dtype_of(store.indices[0].dtype).lanes
    lane = Expr("var", "int32", value="lane", uid=-1000)
    ranges = {a.var.uid: (a.start, a.extent) for a in own}
    ranges[lane.uid] = (Expr("int", "int32", value=0), Expr("int", "int32", value=width))
    free = [*(a.var for a in own), lane]
    index = at_lane(store.indices[0], lane, placed.scope)
    value = at_lane(store.value, lane, placed.scope)
    algebra = Algebra(lambda e: _content(algebra, program, e))
    poly = algebra.poly(index)
    hit = [v for v in free if algebra.variables(poly) & {v.uid}]
    if not hit:
        apart = add(poly, algebra.poly(load.args[0]), -1)
        if not apart:
            return value, ()
        return None if as_constant(apart) else (value, (Expr("eq", "bool", (index, load.args[0])),))
    if len(hit) > 1:
        raise UnreadableError(f"its value comes from {root}, whose stores are not understood")
    var = hit[0]
    term = next(iter(algebra.variable(var.uid)))
    if poly.get(term) != 1 or sum(1 for m in poly if algebra.variables({m: 1}) & {var.uid}) != 1:
        raise UnreadableError(f"its value comes from {root}, whose stores are not understood")
    zero = Expr("int", var.dtype, value=0)
    rest = substitute([index], {var.uid: zero})[0]
    solution = Expr("sub", index.dtype, (load.args[0], rest))
    start, extent = ranges[var.uid]
    last = Expr("add", index.dtype, (start, extent))
    taken = (Expr("ge", "bool", (solution, start)), Expr("lt", "bool", (solution, last)))
    return substitute([value], {var.uid: solution})[0], taken


def _content(algebra: Algebra, program: Program, e: Expr) -> Content:
    found = pointer(program, e)
    if found is None:
        raise UnreadableError(f"an address is not understood ({e.value})")
    indices = [algebra.poly(i) for i in found.indices]
    shape = [algebra.poly(s) for s in found.buffer.shape]
    return Content(found.root, flatten(indices, row_major(shape, algebra) if shape else [constant(1)], algebra))


def _loads(expr: Expr, bound: Mapping[int, Expr]) -> bool:
    seen: set[Expr] = set()
    stack = [expr]
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if e.op == "load" or (e.op == "call" and e.value != "if_then_else"):
            return True
        stack += e.args if e.op != "var" or e.uid not in bound else (bound[e.uid],)
    return False
