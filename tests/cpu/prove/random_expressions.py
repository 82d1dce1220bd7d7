"""Random integer expressions with their values, computed here in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from tlcheck.snapshot.ir import Expr

Values = Mapping[int, int]

PYTHON: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
    "truncdiv": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "truncmod": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    "min": min,
    "max": max,
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
}
DIVIDING = frozenset(("floordiv", "floormod", "truncdiv", "truncmod"))
ARITHMETIC = ("add", "sub", "mul", "floordiv", "floormod", "min", "max")
CONDITIONS = ("lt", "le", "gt", "ge", "eq", "ne")


def variable(uid: int) -> Expr:
    return Expr("var", "int32", value=f"x{uid}", uid=uid)


def integer(value: int) -> Expr:
    return Expr("int", "int32", value=value)


def expression(random: Random, variables: Sequence[Expr], depth: int, operators: Sequence[str] = ARITHMETIC) -> Expr:
    """A random expression; divisors are positive constants, as in addresses."""
    if depth == 0 or random.random() < 0.15:
        return random.choice(variables) if random.random() < 0.75 else integer(random.randint(-9, 40))
    op = random.choice(operators)
    left = expression(random, variables, depth - 1, operators)
    if op in DIVIDING:
        right = integer(random.choice((1, 2, 3, 4, 6, 8, 16, 32)))
    elif op == "mul" and random.random() < 0.8:
        right = integer(random.choice((-4, -1, 0, 2, 3, 4, 8, 16, 32, 64)))
    else:
        right = expression(random, variables, depth - 1, operators)
    return Expr(op, "int32", (left, right))


def condition(random: Random, variables: Sequence[Expr], depth: int) -> Expr:
    """A random condition with `and`, `or` and `not`."""
    if depth > 1 and random.random() < 0.5:
        if random.random() < 0.3:
            return Expr("not", "bool", (condition(random, variables, depth - 1),))
        parts = (condition(random, variables, depth - 1), condition(random, variables, depth - 1))
        return Expr(random.choice(("and", "or")), "bool", parts)
    sides = (expression(random, variables, depth), expression(random, variables, depth))
    return Expr(random.choice(CONDITIONS), "bool", sides)


def value(e: Expr, values: Values) -> int:
    """Return what an expression is at one point."""
    if e.op == "int":
        return int(e.value or 0)
    if e.op == "var":
        return values[e.uid]
    args = [value(a, values) for a in e.args]
    if e.op == "not":
        return int(not args[0])
    if e.op == "select":
        return args[1] if args[0] else args[2]
    return PYTHON[e.op](args[0], args[1])
