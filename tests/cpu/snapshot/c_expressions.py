"""Random typed expressions, and what C makes of them: one program, compiled by gcc, for all of a batch."""

from __future__ import annotations

import math
import os
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from tlcheck.snapshot.dtypes import dtype_of, whole_numbers
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.operators import name_of, named
from tlcheck.snapshot.walk import postorder

Number = int | float
Point = Mapping[str, Number]  # the value of each variable, by name

INTEGERS = [f"{kind}{bits}" for bits in (8, 16, 32, 64) for kind in ("int", "uint")]
FLOATS = ["float32", "float64"]
VARIABLES = {
    f"{dtype}_{n}": Expr("var", dtype, (), f"{dtype}_{n}", uid=1 + 2 * place + n)
    for place, dtype in enumerate([*INTEGERS, "bool", *FLOATS])
    for n in (0, 1)
}
CALLS = named("bits", "shift", "same") | {"if_then_else"}
UNDEFINED, WIDE, OPEN = 1, 2, 4
_RING = named("ring")
_ARITHMETIC = sorted(_RING | named("division", "extremum") - {"div", "mod"})
_BITS = sorted(named("bits", "shift"))
_COMPARISONS = sorted(named("comparison"))
_BOUNDED = _RING | {"var", "int", "min", "max"}


def node(op: str, dtype: str, *args: Expr) -> Expr:
    """An operator on operands, as a call where TIR has it as one."""
    return Expr("call", dtype, args, op) if op in CALLS else Expr(op, dtype, args)


class Drawing:
    """Draws expressions of integral types, with floats among them if `floats` says so."""

    def __init__(self, random: Random, floats: bool) -> None:
        self._random = random
        self._floats = FLOATS if floats else []

    def expression(self, dtype: str, depth: int) -> Expr:
        """An expression of a type."""
        random = self._random
        if depth == 0 or random.random() < 0.1:
            return self._leaf(dtype)
        if dtype == "bool":
            return self._condition(depth)
        if random.random() < 0.2:
            source = random.choice([*INTEGERS, *self._floats, "bool"])
            return node("cast", dtype, self.expression(source, depth - 1))
        if random.random() < 0.1:
            parts = [self.expression(dtype, depth - 1) for _ in range(2)]
            name = random.choice(("select", "if_then_else"))
            return node(name, dtype, self._condition(depth), *parts)
        if dtype in FLOATS:
            op = random.choice(("add", "sub", "mul", "div", "min", "max"))
        else:
            op = random.choice(_ARITHMETIC if random.random() < 0.75 else _BITS)
        if op == "bitwise_not":
            return node(op, dtype, self.expression(dtype, depth - 1))
        left = self.expression(dtype, depth - 1)
        if op.startswith("shift") and random.random() < 0.8:
            return node(op, dtype, left, Expr("int", dtype, value=random.randrange(dtype_of(dtype).bits)))
        return node(op, dtype, left, self.expression(dtype, depth - 1))

    def _condition(self, depth: int) -> Expr:
        random = self._random
        if depth > 1 and random.random() < 0.4:
            op = random.choice(("and", "or", "not"))
            return node(op, "bool", *[self.expression("bool", depth - 1) for _ in range(1 + (op != "not"))])
        dtype = random.choice([*INTEGERS, *self._floats])
        if random.random() < 0.1:
            return node("cast", "bool", self.expression(dtype, depth - 1))
        return node(random.choice(_COMPARISONS), "bool", *[self.expression(dtype, depth - 1) for _ in range(2)])

    def _leaf(self, dtype: str) -> Expr:
        if self._random.random() < 0.75 or dtype == "bool":
            return VARIABLES[f"{dtype}_{self._random.randrange(2)}"]
        value = number(self._random, dtype)
        return Expr("float" if dtype in FLOATS else "int", dtype, value=value)

    def index(self, depth: int) -> Expr:
        """An index: sums and products, divided by positive constants."""
        random = self._random
        if depth == 0 or random.random() < 0.1:
            return random.choice(_INDICES)
        op = random.choice(("add", "sub", "mul", "floordiv", "floormod"))
        divides = op.startswith("floor")
        by = Expr("int", "int64", value=random.choice((1, 2, 3, 4, 6, 8))) if divides else self.index(depth - 1)
        return node(op, "int64", self.index(depth - 1), by)


_INDICES = [VARIABLES["int64_0"], VARIABLES["int64_1"], *[Expr("int", "int64", value=n) for n in (0, 1, 5, 8)]]


def number(random: Random, dtype: str) -> Number:
    """A value of a type: small, of any size, or at its ends."""
    if dtype == "bool":
        return random.randrange(2)
    if dtype in FLOATS:
        value = random.choice((float(random.randint(-9, 9)), random.uniform(-300, 300), 2.0 ** random.randint(-40, 70)))
        return struct.unpack("f", struct.pack("f", value))[0] if dtype == "float32" else value
    least, most = whole_numbers(dtype)
    bits = random.randrange(dtype_of(dtype).bits)
    size = random.getrandbits(bits + 1)
    value = random.choice((random.randint(-9, 40), size, -size, least, most))
    return min(max(value, least), most)


def points(random: Random, count: int) -> list[Point]:
    """Values of all variables."""
    return [{name: number(random, v.dtype) for name, v in VARIABLES.items()} for _ in range(count)]


@dataclass(frozen=True)
class Result:
    """A record of what C says of an expression at a point.

    undefined: C gives it no value. wide: something in it is an uint64 of 2^63 and more. unbounded: something wraps in
    it that the algebra, which does not know its bounds, takes to fit.
    """

    value: Number
    undefined: bool
    wide: bool
    unbounded: bool


def in_c(batch: Sequence[Expr], at: Sequence[Point], folder: Path) -> list[list[Result]]:
    """The results of each expression at each point."""
    if shutil.which("gcc") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("gcc is not installed: apt install gcc libc6-dev")
    program = folder / "expressions.c"
    functions = "".join(_function(number, e) for number, e in enumerate(batch))
    calls = "".join(f"    f{number}(&points[i]);\n" for number in range(len(batch)))
    fields = "".join(f"  {_type(v.dtype)} {name};\n" for name, v in VARIABLES.items())
    table = ",\n".join("{" + ", ".join(_literal(p[n], v.dtype) for n, v in VARIABLES.items()) + "}" for p in at)
    program.write_text(
        f"{_HEAD}struct point {{\n{fields}}};\nstatic const struct point points[] = {{\n{table}}};\n{functions}"
        f"int main(void) {{\n  for (int i = 0; i < {len(at)}; i++) {{\n{calls}  }}\n  return 0;\n}}\n"
    )
    binary = folder / "expressions"
    options = ["-std=gnu11", "-O0", "-w", "-ffp-contract=off"]
    subprocess.run(["gcc", *options, "-o", binary, program, "-lm"], check=True)
    lines = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == len(at) * len(batch)
    return [[_result(line, e.dtype) for line in lines[n :: len(batch)]] for n, e in enumerate(batch)]


def _result(line: str, dtype: str) -> Result:
    flags, text = line.split()
    value = float.fromhex(text) if dtype in FLOATS else int(text)
    return Result(value, *(bool(int(flags) & flag) for flag in (UNDEFINED, WIDE, OPEN)))


_HEAD = """#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
"""


def _type(dtype: str) -> str:
    return {"bool": "bool", "float32": "float", "float64": "double"}.get(dtype, f"{dtype}_t")


def _literal(value: Number, dtype: str) -> str:
    if dtype in FLOATS:
        return f"({_type(dtype)}){float(value).hex()}"
    return f"({_type(dtype)}){int(value) & (2**64 - 1):#x}ULL"


def _function(number: int, e: Expr) -> str:
    """A function that prints what is undefined or wraps in an expression, and its value."""
    lines: list[str] = []
    names: dict[Expr, str] = {}
    unbounded = _unbounded(e)
    for each in postorder([e]):
        if each.op == "var":
            names[each] = f"p->{each.value}"
            lines += [f"bad |= {WIDE} * ({names[each]} >> 63);"] if each.dtype == "uint64" else []
        elif each.op in ("int", "float"):
            names[each] = f"({_literal(each.value, each.dtype)})"  # type: ignore[arg-type]
            lines += [f"bad |= {WIDE};"] if each.dtype == "uint64" and int(each.value or 0) >> 63 else []
        else:
            names[each] = f"t{len(names)}"
            lines.append(f"{_type(each.dtype)} {names[each]};")
            lines += _statement(each, names[each], [names[a] for a in each.args], each in unbounded)
    shown = "%a" if e.dtype in FLOATS else "%llu" if e.dtype == "uint64" else "%lld"
    value = f"(double){names[e]}" if e.dtype in FLOATS else f"(long long){names[e]}"
    body = "\n  ".join(["int bad = 0;", *lines, f'printf("%d {shown}\\n", bad, {value});'])
    return f"static void f{number}(const struct point *p) {{\n  {body}\n}}\n"


def _unbounded(e: Expr) -> set[Expr]:
    """The operations of operands whose bounds the algebra may not know; sums of sums are one there."""
    order = list(postorder([e]))
    open_: set[Expr] = set()
    for each in order:
        if name_of(each) not in _BOUNDED or any(a in open_ for a in each.args):
            open_.add(each)
    found = {each for each in order if any(a in open_ for a in each.args)}
    for each in reversed(order):
        if each in found and each.op in _RING:
            found.update(a for a in each.args if a.op in _RING)
    return found


def _statement(e: Expr, t: str, args: Sequence[str], unbounded: bool) -> list[str]:
    """Statements that give a variable the value of an operator, in the type of the expression."""
    name, dtype, kind = name_of(e), e.dtype, dtype_of(e.dtype)
    least = _literal(whole_numbers(dtype)[0], dtype) if kind.is_integral else ""
    if name == "cast":
        return _cast(e, t, args[0], unbounded)
    if name == "bitwise_not":
        return [f"{t} = ({_type(dtype)})~{args[0]};", *([f"bad |= {WIDE};"] if dtype == "uint64" else [])]
    if name in ("select", "if_then_else"):
        return [f"{t} = {args[0]} ? {args[1]} : {args[2]};"]
    if name == "not":
        return [f"{t} = !{args[0]};"]
    a, b = args
    if kind.kind == "float" and name in ("min", "max"):
        return [f"{t} = {'f' + name}{'f' if dtype == 'float32' else ''}({a}, {b});"]
    if kind.kind == "float" and name in _IN_C:
        zero = [f"bad |= {UNDEFINED} * ({b} == 0);"] if name == "div" else []
        return [*zero, f"{t} = {a} {_IN_C[name]} {b};"]
    if name in _RING:
        signed_is_undefined = UNDEFINED if kind.kind == "int" and kind.bits >= 32 else 0
        flag = signed_is_undefined | (WIDE if dtype == "uint64" else 0) | (OPEN if unbounded else 0)
        return [f"bad |= __builtin_{name}_overflow({a}, {b}, &{t}) * {flag};", *_too_wide(dtype, t)]
    if name in named("division"):
        wraps = f" || ({b} == ({_type(dtype)})-1 && {a} == {least})" if kind.kind == "int" else ""
        return [f"if ({b} == 0{wraps}) bad |= {UNDEFINED}, {t} = 0; else {{ {_division(name, t, a, b)} }}"]
    if name in ("min", "max"):
        return [f"{t} = {a} {'<' if name == 'min' else '>'} {b} ? {a} : {b};"]
    if name.startswith("shift"):
        beyond = f"if ({b} < 0 || {b} >= {kind.bits}) bad |= {UNDEFINED}, {t} = 0;"
        if name == "shift_right":
            return [f"{beyond} else {t} = {a} >> {b};"]
        lost = f" bad |= (({t} >> {b}) != {a}) * {(WIDE if dtype == 'uint64' else 0) | (OPEN if unbounded else 0)};"
        return [f"{beyond} else {{ {t} = ({_type(dtype)})((uint64_t){a} << {b});{lost} }}", *_too_wide(dtype, t)]
    return [f"{t} = {a} {_IN_C[name]} {b};"]


_IN_C = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "&&",
    "or": "||",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}


def _too_wide(dtype: str, t: str) -> list[str]:
    return [f"bad |= {WIDE} * ({t} >> 63);"] if dtype == "uint64" else []


def _division(name: str, t: str, a: str, b: str) -> str:
    if name == "truncdiv":
        return f"{t} = {a} / {b};"
    if name == "truncmod":
        return f"{t} = {a} % {b};"
    if name == "floordiv":
        return f"{t} = {a} / {b}; if ({a} % {b} != 0 && ({a} < 0) != ({b} < 0)) {t} -= 1;"
    return f"{t} = {a} % {b}; if ({t} != 0 && ({t} < 0) != ({b} < 0)) {t} += {b};"


def _cast(e: Expr, t: str, a: str, unbounded: bool) -> list[str]:
    source, target = dtype_of(e.args[0].dtype), dtype_of(e.dtype)
    lines = [f"{t} = ({_type(e.dtype)}){a};"]
    if source.kind == "float" and target.kind in ("int", "uint"):
        least, most = whole_numbers(target.name)
        low, high = float(least).hex(), math.ldexp(1.0, most.bit_length()).hex()
        return [f"if (!(trunc({a}) >= {low} && trunc({a}) < {high})) bad |= {UNDEFINED}, {t} = 0; else {lines[0]}"]
    if target.name == "uint64" and source.kind == "int":
        lines.append(f"bad |= {WIDE} * ({a} < 0);")
    if target.bits == 32 and source.is_integral and unbounded:
        signs = {"int": {"uint": f"{a} < 0"}, "uint": {"int": f"{t} < 0"}}.get(source.kind, {}).get(target.kind, "0")
        lines.append(f"bad |= {OPEN} * ({t} != {a} || {signs});")
    return lines
