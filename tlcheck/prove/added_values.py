"""Find what an atomic adds: the form of its value and the element that each load in it reads.

Casts that keep every value do not count as form, and neither does the order of the operands of + and *: passes move
them. Casts that lose something do, the one to the destination's type among them, written or not, and so does the type
to which sums, products and functions are rounded. A value staged in registers by a pass (`C_local_cast`) is followed
back to what was stored there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tlcheck.algebra.algebra import ADDRESSES
from tlcheck.program.atomics import Pointer, atomic_name, pointer
from tlcheck.program.walk import Placed, Program, Scope
from tlcheck.prove.stores import Stores, UnreadableError
from tlcheck.prove.vectors import MAX_DEPTH, at_lane
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.dtypes import dtype_of, keeps
from tlcheck.snapshot.ir import Buffer, Expr
from tlcheck.snapshot.operators import BINARY, COMMUTING, MIRRORED

_TURNED = ("gt", "ge")  # passes write the mirrored ones for them
_SHAPED = BINARY | {"not"}
_CAST = "cast:"
_MATH = re.compile(
    r"^(?:__h?|h)?(exp2|exp10|exp|log2|log10|log1p|log|rsqrt|sqrt|tanh|sinh|cosh|sin|cos|tan|erf|f?abs|pow"
    r"|floor|ceil|trunc|nearbyint|rint)f?$"
)
_OTHERWISE = {"abs": "fabs", "rint": "nearbyint"}  # another name of a function of floats
_ARITHMETIC = frozenset(("add", "sub", "mul", "div"))
_NARROW = ("float16", "bfloat16")


Condition = tuple[Expr, bool]  # and whether it holds


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """A leaf of a value: one element of memory, or (without a root) an integer expression.

    when: conditions of the choices around it, under which it is read at all.
    """

    root: str
    buffer: Buffer | None
    indices: tuple[Expr, ...]
    when: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """`form`: the expression with its leaves left out; `leaves` in the order of the form; `conditions` under which it
    is this.
    """

    form: str
    leaves: tuple[Load, ...]
    conditions: tuple[Expr, ...] = ()


class Reader:
    """Reads values in one function. `known`: roots that the kernel itself declares, where a value's way back ends."""

    def __init__(self, program: Program, known: frozenset[str]) -> None:
        self.program = program
        self.known = known
        self.stores = Stores(program)

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


Part = tuple[str, tuple[Load, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class _Operand:
    """An expression that is read at one place. depth: of the registers that led there. when: see `Load`."""

    expr: Expr
    placed: Placed
    depth: int = 0
    when: tuple[Condition, ...] = ()

    def parts(self, name: str, args: tuple[Expr, ...]) -> tuple[_Operand, ...]:
        """The operands of the operator that it is. A choice reads only one of two."""
        sides: list[tuple[Condition, ...]] = [()] * len(args)
        if name == "select":
            sides = [(), ((args[0], True),), ((args[0], False),)]
        return tuple(replace(self, expr=a, when=self.when + side) for a, side in zip(args, sides, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Operator:
    """An operator whose operands are still to be read."""

    name: str
    operands: tuple[_Operand, ...]
    commutes: bool = False

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
        tasks: list[_Operator | _Operand] = [_Operand(e, placed)]
        while tasks:
            task = tasks.pop()
            if isinstance(task, _Operator):
                done.append(task.of([done.pop() for _ in task.operands]))
                continue
            found = self._read(task)
            if isinstance(found, _Operator):
                tasks += [found, *found.operands]
            else:
                done.append(found)
        return done.pop()

    def _read(self, operand: _Operand) -> Part | _Operator:
        """A leaf, or an operator whose operands are still to be read."""
        e, placed, depth = self._followed(operand.expr, operand.placed, operand.depth)
        operand = _Operand(e, placed, depth, operand.when)
        if e.op in ("float", "int"):
            return repr(float(e.value or 0)), ()
        if e.op == "load" and e.buffer is not None:
            self.reader.stores.require_unchanged(e, placed, self.used)
            root = self.reader.program.roots.of(e.buffer.data)
            return _stored(e.dtype), (Load(root, e.buffer, e.args, operand.when),)
        if e.op != "cast" and self._is_index(e):
            return "#", (Load("", None, (e,), operand.when),)
        if e.op not in _SHAPED and e.op not in ("call", "select", "cast"):
            what = f"{e.op} {e.value or ''}".strip()
            raise UnreadableError(f"its value has a part that is not understood ({what})")
        return self._address(operand) if e.value in ADDRESSES else self._operator(operand)

    def _operator(self, operand: _Operand) -> _Operator:
        """The operator that an expression is, by a name that says all that matters of its type."""
        e = operand.expr
        if e.op == "cast":
            name = f"{_CAST}{dtype_of(e.dtype).name}"
            return _Operator(name, operand.parts(name, e.args))
        if atomic_name(e):
            # each call of an atomic returns another number, even where two are the same expression
            if self.has_atomic:
                raise UnreadableError("its value has more than one number that atomics return")
            self.has_atomic = True
        name, args = _function(e) if e.op == "call" else (e.op, e.args)
        if _is_arithmetic(e) and e.dtype in _NARROW:  # it is that of float32, rounded: passes may say so
            return _Operator(f"{_CAST}{e.dtype}", (replace(operand, expr=replace(e, dtype="float32")),))
        if _is_arithmetic(e) and e.dtype != "float32":
            name = f"{name}:{e.dtype}"
        if name in _TURNED:
            name, args = MIRRORED[name], args[::-1]
        return _Operator(name, operand.parts(name, args), e.op in COMMUTING)

    def _address(self, operand: _Operand) -> Part:
        """An address, as an atomic within the value has it."""
        found = pointer(self.reader.program, operand.expr)
        if found is None:
            raise UnreadableError(f"an address in its value is not understood ({operand.expr.value})")
        return f"&{found.dtype}", (Load(found.root, found.buffer, found.indices, operand.when),)

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
                e, placed, conditions = self.reader.stores.last(root, e, placed)
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
