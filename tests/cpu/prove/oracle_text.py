"""Expressions of a snapshot as Python source, for the oracle. Shares nothing with tlcheck.prove."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.walk import postorder

Values = dict[Any, Any]  # uid -> value; `lane` -> the lane of a vector

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "floormod": "%",
    "div": "/",
    "and": "and",
    "or": "or",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}
FORMS = {
    **{name: f"({{}} {symbol} {{}})" for name, symbol in INFIX.items()},
    **{name: f"{name}({{}}, {{}})" for name in ("min", "max", "truncdiv", "truncmod")},
    "not": "(not {})",
    "cast": "{}",
    "broadcast": "{}",
    "ramp": "({} + {} * v['lane'])",
    "select": "({1} if {0} else {2})",
    "if_then_else": "({1} if {0} else {2})",
}
COMMUTATIVE = frozenset("add mul min max and or eq ne".split())
ATOMIC = re.compile(r"atomic_?(add|max|min)(x2|x4)?", re.IGNORECASE)
MAX_TEXT = 200_000


class UnsupportedError(Exception):
    """Something that the oracle does not interpret."""


def lanes_of(dtype: str) -> int:
    """4 for `float32x4`."""
    found = re.search(r"\dx(\d+)$", dtype)
    return int(found[1]) if found else 1


def atomic_name(e: Expr) -> str:
    """`add` or `addx2` and so on with its suffixes, in lower case; empty for what is no atomic."""
    if e.op != "call":
        return ""
    name = str(e.args[0].value) if e.value == "call_extern" else str(e.value)
    return name if ATOMIC.match(name) else ""


class Source:
    """Writes expressions of one function. Loads become calls of `at(number, indices)`, numbered in `loads`."""

    def __init__(self, bindings: Mapping[int, Expr]) -> None:
        self.bindings = bindings
        self.loads: list[Expr] = []

    def number(self, e: Expr) -> str:
        """An integer or a condition, evaluated: what memory holds is made up by `content`."""
        return self._short(self._number(e))

    def value(self, e: Expr) -> str:
        """Return what is added: a tree of operations over the elements that are read, without casts."""
        return self._short(self._value(e))

    def _short(self, text: str) -> str:
        if len(text) > MAX_TEXT:
            raise UnsupportedError("an expression is too long")
        return text

    def _number(self, e: Expr) -> str:
        if e.op in ("int", "float"):
            return f"({e.value})"
        if e.op == "var":
            return self.number(self.bindings[e.uid]) if e.uid in self.bindings else f"v[{e.uid}]"
        if e.op == "load":
            return f"content({self._load(e)})"
        if atomic_name(e):
            return "content(('found',))"
        name = str(e.value) if e.op == "call" else e.op
        if name not in FORMS:
            raise UnsupportedError(f"the number {e.op} {e.value or ''}")
        return FORMS[name].format(*(self.number(a) for a in e.args))

    def _value(self, e: Expr) -> str:
        op, args = e.op, e.args
        if op in ("int", "float"):
            return f"float({e.value})"
        if op == "var" and e.uid in self.bindings:
            return self.value(self.bindings[e.uid])
        if op in ("cast", "broadcast"):
            return self.value(args[0])
        if op == "load":
            return self._load(e)
        if op == "select" or (op == "call" and e.value == "if_then_else"):
            return f"({self.value(args[1])} if {self.number(args[0])} else {self.value(args[2])})"
        if e.dtype.startswith(("int", "uint", "bool")) and not self._reads(e):
            return f"float({self.number(e)})"
        if op in INFIX or op in ("min", "max", "call", "not"):
            name = op if op != "call" else f"call {e.value}"
            return f"tree({name!r}, [{', '.join(self.value(a) for a in args)}])"
        raise UnsupportedError(f"the value {op} {e.value or ''}")

    def _load(self, e: Expr) -> str:
        self.loads.append(e)
        number = len(self.loads) - 1
        return f"at({number}, ({''.join(self.number(a) + ',' for a in e.args)}), v)"

    def _reads(self, e: Expr) -> bool:
        if e.op in ("load", "call"):
            return True
        if e.op == "var" and e.uid in self.bindings:
            return self._reads(self.bindings[e.uid])
        return any(self._reads(a) for a in e.args)


def tree(name: str, parts: list[object]) -> object:
    """One operation of a value; + and * do not tell their operands apart."""
    return (name, *sorted(parts, key=repr)) if name in COMMUTATIVE else (name, *parts)


def truncdiv(a: int, b: int) -> int:
    """C's a / b."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def truncmod(a: int, b: int) -> int:
    """C's a % b."""
    return a - b * truncdiv(a, b)


def compiled(text: str, names: Mapping[str, object]) -> Callable[[Values], Any]:
    """A function of the values of variables, by uid, from what `Source` wrote."""
    known = {"tree": tree, "truncdiv": truncdiv, "truncmod": truncmod, **names}
    made: Callable[[Values], Any] = eval(f"lambda v: {text}", known)
    return made


def evaluate(e: Expr, sizes: Mapping[str, int]) -> int:
    """An extent."""
    variables = {x.uid: sizes.get(str(x.value)) for x in postorder([e]) if x.op == "var"}
    if None in variables.values():
        raise UnsupportedError("an extent is not known")
    return int(compiled(Source({}).number(e), {})(variables))
