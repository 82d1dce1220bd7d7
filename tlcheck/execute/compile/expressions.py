"""Expressions compiled to functions of a frame.

What depends on the launch and on loop variables only (`steady`) is computed once for each value of these variables.
Conditions, select and if_then_else are lazy: a branch that reads memory sees only the lanes that take it as active.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tlcheck.execute import field
from tlcheck.execute.compile import formulas, registry
from tlcheck.execute.compile.arithmetic import applied
from tlcheck.execute.compile.functions import FUNCTIONS, round_nearly_away
from tlcheck.execute.compile.packed_lanes import packed
from tlcheck.execute.compile.program import EXPRESSIONS, KernelProgram
from tlcheck.execute.memory.codes import Code, remembered
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.growth import grown
from tlcheck.execute.memory.values import (
    Array,
    Kind,
    Value,
    converted,
    is_narrow,
    kind_of,
    lanes_of,
    reinterpreted,
    rounded,
    rounding,
    wrapped,
)
from tlcheck.execute.stops import NotModelled
from tlcheck.program.generated import as_printed, is_never_false, is_repeated
from tlcheck.program.packing import packing
from tlcheck.program.promotion import is_promoted
from tlcheck.program.release import Release
from tlcheck.program.wraps import leaves_type
from tlcheck.signatures.calls import arguments_of_call, is_external, library_name, name_of_call
from tlcheck.snapshot.arrays import ArrayNumbers, array_like
from tlcheck.snapshot.dtypes import DType
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.operators import BINARY, Apply, meaning

_WIDEST = 1 << 12  # lanes of a vector
_FLOAT_DIVISIONS = ("div", "truncdiv", "floordiv", "floormod")
_OF_BITS = frozenset(("reinterpret", "__ldg"))  # functions for which numbers are bits
_INT32_ENDS, _FAR = 2.0**31, 2.0**40
_ROUND_IS_EVEN = Release.of("0.1.11")  # the first release whose CUDA rounds as its folding of constants does


def _constant(e: Expr, program: KernelProgram) -> Code:
    value: Any = e.value
    if e.op == "int" and e.dtype == "bool":
        value = bool(value)
    if e.op == "float" and (own := formatted(kind_of(e.dtype), program)) != kind_of(e.dtype):
        value = reinterpreted(rounded(float(value), own), own, kind_of(e.dtype), program.options.exact)
    elif e.op == "float" and not program.options.exact:
        value = rounded(float(value), kind_of(e.dtype))
    if program.options.field is not None and e.op != "str" and kind_of(e.dtype).is_float:
        own = kind_of(e.dtype)
        value = field.constant(float(np.asarray(rounded(float(value), own))) if is_narrow(own) else float(value))
    return Code(lambda frame: value, frozenset(), True, True)


def _in_type(e: Expr) -> Expr:
    """A product with a constant that its type has: `x << 31` of an int32 is recorded as x times 2^31."""
    kind = kind_of(e.dtype)
    if e.op != "mul" or kind.is_float:
        return e
    args = [replace(a, value=wrapped(int(a.value or 0), kind)) if a.op == "int" else a for a in e.args]
    return replace(e, args=tuple(args)) if [a.value for a in args] != [a.value for a in e.args] else e


def _variable(e: Expr, program: KernelProgram) -> Code:
    uid = e.uid
    known = program.variables.get(uid)
    if known is None:
        if uid in program.ahead:
            return program.code(program.ahead[uid])
        if uid not in program.parameters:
            raise NotModelled(f"variable {e.value} without a value")
        value = program.parameters[uid]
        if program.options.field is not None and kind_of(e.dtype).is_float:
            value = program.options.field.function(f"the number {e.value}")
            return Code(lambda frame: value, frozenset(), True)
        return Code(lambda frame: value, frozenset(), True, True)
    return replace(known, run=lambda frame: frame.variables[uid])


def _load(e: Expr, program: KernelProgram) -> Code:
    assert e.buffer is not None
    return Code(program.place(e.buffer, e.args).load)


def _elementwise(e: Expr, apply: Callable[..., Any], program: KernelProgram) -> Code:
    """An operation on the values of its arguments, lane by lane."""
    args = [program.code(a) for a in e.args]
    steady = all(a.steady for a in args)
    needs: frozenset[int] = frozenset().union(*(a.needs for a in args))
    uniform = all(a.uniform for a in args) and e.op != "ramp" and e.op != "broadcast"
    runs = [remembered(a).run if not (steady and a.needs == needs) else a.run for a in args]
    numbers = [a.value if a.op == "int" and isinstance(a.value, int) else None for a in e.args]
    growths = grown(e.op, e.dtype, [a.growths for a in args], [a.needs for a in args], numbers)
    if len(runs) == 1:
        (one,) = runs
        return Code(lambda frame: apply(one(frame)), needs, steady, uniform, growths)
    if len(runs) == 2:
        a, b = runs
        return Code(lambda frame: apply(a(frame), b(frame)), needs, steady, uniform, growths)
    return Code(lambda frame: apply(*[r(frame) for r in runs]), needs, steady, uniform, growths)


def _is_wide_load(e: Expr) -> bool:
    """Whether it reads memory as words: T.ldg32 to T.lds128."""
    return e.op == "call" and not is_external(e) and str(e.value).startswith(("ldg", "lds"))


def _call(e: Expr, program: KernelProgram) -> Code:
    name, external = str(e.value), is_external(e)
    if name == "if_then_else":
        return _select(e, program)
    if name == "reinterpret" and _is_wide_load(e.args[0]):  # as words, exact floats would be rounded to their type
        return program.code(replace(e.args[0], dtype=e.dtype))
    if external:
        name = library_name(name_of_call(e))
        name = "roundf" if name == "round" else name  # C's round, which is not TIR's
        e = replace(e, value=name_of_call(e), args=arguments_of_call(e))
    if program.options.printed and is_never_false(e, program.release, program.options.target):
        return program.code(as_printed(e, e.dtype))
    if program.options.printed and is_promoted(e):
        return _elementwise(e, _promoted(e), program)
    if name in FUNCTIONS:
        code = _elementwise(e, _function(name, e, program), program)
        return code if program.options.field is None else replace(code, uniform=False)
    handler = registry.handler_of(name, external, program.options.target)
    if program.options.field is not None:
        formulas.require_handler(handler, name)
    found = handler(e, program)
    return found if isinstance(found, Code) else Code(found)


def _function(name: str, e: Expr, program: KernelProgram) -> Callable[..., Any]:
    """A function of values alone, as TIR and the CUDA Math API have it.

    Before 0.1.11 T.round means two things: constants are folded to the even number of two, and of floats of 32 bits and
    more CUDA's round goes away from zero, as the docstring of T.nearbyint says it should. So what hangs on it is a tie:
    where numbers are changed a little it goes away from zero as well, to a number that is whole.
    """
    unclear = name == "round" and program.release < _ROUND_IS_EVEN and kind_of(e.dtype).bits >= 32
    if program.options.field is not None:
        if unclear:
            raise NotModelled("round, which may go to the even number or away from zero")
        formula = formulas.function(name, e, program.options.field)
        if formula is not None:
            return formula
    if name not in _OF_BITS:
        _require_format(e, program)
    if unclear and program.options.jitter:
        return round_nearly_away(e)
    return _settled(FUNCTIONS[name](e), e, program)


def _settled(apply: Callable[..., Any], e: Expr, program: KernelProgram) -> Callable[..., Any]:
    """An operation whose floating result is rounded to its dtype, unless floats are exact."""
    kind = kind_of(e.dtype)
    settle = rounding(kind, program.options.exact)
    if program.options.jitter and kind.is_float:
        args = [program.code(a) for a in e.args]
        known = all(a.steady and not a.needs for a in args)  # before the kernel runs: a compiler may compute it
        settle = program.state.folded if known and kind.bits >= 32 else program.state.shaken
    return apply if settle is None else lambda *args: settle(apply(*args))


def _narrowed(code: Code, frame: Frame, condition: Any) -> Value:
    """The value where the condition holds; elsewhere it is arbitrary."""
    saved, frame.active = frame.active, condition if frame.active is None else frame.active & condition
    value = code.run(frame)
    frame.active = saved
    return value


def _select(e: Expr, program: KernelProgram) -> Code:
    condition, then, other = (remembered(program.code(a)) for a in e.args)
    lazy = not (then.steady and other.steady)
    dtype = np.dtype(np.int32) if program.options.printed and is_promoted(e) else kind_of(e.dtype).array

    def run(frame: Frame) -> Value:
        chosen = condition.run(frame)
        if not isinstance(chosen, np.ndarray):
            return then.run(frame) if chosen else other.run(frame)
        if lazy and chosen.ndim <= 2:
            first, second = _narrowed(then, frame, chosen), _narrowed(other, frame, ~chosen)
        elif lazy:
            first, second = _narrowed(then, frame, chosen.any(0)), _narrowed(other, frame, (~chosen).any(0))
        else:
            first, second = then.run(frame), other.run(frame)
        selected: Array = np.where(chosen, array_like(first), array_like(second))
        return selected.astype(dtype, copy=False)

    parts = (condition, then, other)
    needs, uniform = frozenset().union(*(p.needs for p in parts)), all(p.uniform for p in parts)
    return Code(run, needs, not lazy and condition.steady, uniform)


def _shortcut(e: Expr, program: KernelProgram) -> Code:
    """`and` and `or`: whether the second operand matters is known from the first."""
    a, b = (remembered(program.code(x)) for x in e.args)
    join, until = applied(e), e.op == "or"
    assert join is not None

    def run(frame: Frame) -> Value:
        first = a.run(frame)
        if not isinstance(first, np.ndarray):
            return bool(first) if bool(first) is until else b.run(frame)
        if b.steady or first.ndim > 2:
            found: Value = join(first, b.run(frame))
            return found
        value: Value = join(first, _narrowed(b, frame, ~first if until else first))
        return value

    return Code(run, a.needs | b.needs, a.steady and b.steady, a.uniform and b.uniform)


def _let(e: Expr, program: KernelProgram) -> Code:
    """(variable, value, body): the body with the variable bound."""
    variable, value = e.args[0], remembered(program.code(e.args[1]))
    uid = variable.uid
    program.variables[uid] = Code(lambda frame: frame.variables[uid])
    body = program.code(e.args[2])

    def run(frame: Frame) -> Value:
        found = value.run(frame)
        frame.variables[uid] = found.copy() if isinstance(found, np.ndarray) else found
        return body.run(frame)

    return Code(run)


def _shuffle(e: Expr, program: KernelProgram) -> Code:
    """(vectors, then indices): lanes taken from all vectors, one after the other."""
    count = int(e.value or 0)
    vectors, picks = [program.code(a) for a in e.args[:count]], e.args[count:]
    if any(p.op != "int" for p in picks):
        raise NotModelled("shuffle with varying indices")
    sizes, order = [lanes_of(a.dtype) for a in e.args[:count]], [int(p.value or 0) for p in picks]
    how = packing(e, program.release) if program.options.is_cuda else None

    def run(frame: Frame) -> Value:
        parts = [np.atleast_3d(_as_vector(v.run(frame), n)) for v, n in zip(vectors, sizes, strict=True)]
        shape = np.broadcast_shapes(*[p.shape[1:] for p in parts])
        lanes = np.concatenate([np.broadcast_to(p, (p.shape[0], *shape)) for p in parts])
        found = np.asarray(lanes[order[0]] if len(order) == 1 else lanes[order])
        return found if how is None else packed(found, how)

    return Code(run)


def _as_vector(value: Value, lanes: int) -> Value:
    """A value with the axis of vector lanes first."""
    array = np.asarray(value)
    return array.reshape((1,) * (3 - array.ndim) + array.shape) if lanes == 1 else array


def _predicated(e: Expr, program: KernelProgram) -> Code:
    """(load, condition): the elements for which the condition holds; the others are zero."""
    load, condition = e.args[0], program.code(e.args[1])
    if load.op != "load" or load.buffer is None:
        raise NotModelled("predicate on what is no load")
    place = program.place(load.buffer, load.args)

    def run(frame: Frame) -> Value:
        holds = condition.run(frame)
        with place.only_where(frame, holds):
            found = place.load(frame)
        return np.where(holds, found, found.dtype.type(0))

    return Code(run)


def _unknown(e: Expr, program: KernelProgram) -> Code:
    raise NotModelled(str(e.value))


def _operator(e: Expr, program: KernelProgram) -> Code:
    if e.op == "broadcast" and program.options.is_cuda and is_repeated(e):
        # a vector of which CUDA computes each lane anew: an atomic runs once for each
        one, count, form = program.code(e.args[0]), _lanes(e), kind_of(e.dtype).array
        return Code(lambda frame: np.concatenate([_broadcast(one.run(frame), 1, form) for _ in range(count)]))
    options = program.options
    if e.op == "cast" and options.printed and is_never_false(e.args[0], program.release, options.target):
        return program.code(as_printed(e.args[0], e.dtype))
    return _elementwise(_in_type(e), _operation(e, program), program)


def _operation(e: Expr, program: KernelProgram) -> Callable[..., Any]:
    """Return what an operator does with the values of its arguments."""
    if program.options.field is not None and e.op not in ("cast", "ramp", "broadcast"):
        formula = formulas.operation(e, program.options.field, program.function)
        if formula is not None:
            return formula
    if e.op == "cast":
        return _cast(kind_of(e.args[0].dtype), kind_of(e.dtype), program)
    if e.op == "ramp":
        steps = np.arange(_lanes(e), dtype=kind_of(e.dtype).array).reshape(-1, 1, 1)
        return lambda base, stride: base + steps * stride
    if e.op == "broadcast":
        count, form = _lanes(e), kind_of(e.dtype).array
        how = packing(e, program.release) if program.options.is_cuda else None
        if how is not None:
            return lambda value: packed(_broadcast(value, count, form), how)
        return lambda value: _broadcast(value, count, form)
    if program.options.printed and is_promoted(e):
        return _promoted(e)
    if program.options.wide and leaves_type(e):
        return _widened(e)
    if kind_of(e.dtype).is_float and e.op in _FLOAT_DIVISIONS:
        # TVM writes the division of floats that rounds down as `floor(a / b)`, and its remainder with that
        quotient = _settled(_divide, e, program)
        if e.op == "floordiv":
            return lambda a, b: np.floor(quotient(a, b))
        if e.op == "floormod":
            return _settled(lambda a, b: a - np.floor(quotient(a, b)) * b, e, program)
        return quotient
    _require_format(e, program)
    apply = applied(e)
    if apply is None:
        raise NotModelled(f"{e.op} of {e.args[0].dtype}")
    return _settled(apply, e, program)


def _cast(source: Kind, target: Kind, program: KernelProgram) -> Callable[..., Any]:
    """A conversion; some targets take eight bits for another format than the kernel says."""
    exact = program.options.exact
    own, made = formatted(source, program), formatted(target, program)
    if program.options.field is not None and (own, made) != (source, target):
        raise NotModelled(f"{source.name} taken for another format")
    if program.options.wide and source.is_float and target.name == "int32":
        return lambda value: _past_ends(value, converted(value, source, target, exact))
    if (own, made) == (source, target):
        return lambda value: converted(value, source, target, exact)

    def run(value: Value) -> Value:
        taken = value if own == source else reinterpreted(value, source, own, exact)
        found = converted(taken, own, made, exact)
        return found if made == target else reinterpreted(found, made, target, exact)

    return run


def _past_ends(value: Value, found: Value) -> Value:
    """Convert floats to integers, also those that int32 does not hold. found: what they become in int32."""
    if not isinstance(value, np.ndarray):
        return found
    with np.errstate(invalid="ignore"):
        inside = ~(np.abs(value) >= _INT32_ENDS)
    return np.where(inside, found, np.clip(np.where(inside, 0, value), -_FAR, _FAR).astype(np.int64))


def formatted(kind: Kind, program: KernelProgram) -> Kind:
    """The format that the target's code takes such numbers for."""
    name = program.options.target.formats.get(kind.name) if program.options.printed else None
    return kind if name is None else kind_of(name)


def _require_format(e: Expr, program: KernelProgram) -> None:
    """Raise NotModelled for what computes with numbers that the target takes for those of another format."""
    formats = program.options.target.formats if program.options.printed else {}
    for part in (e, *e.args) if formats else ():
        if part.op != "str" and kind_of(part.dtype).name in formats:
            raise NotModelled(f"{e.value or e.op} of {part.dtype} on {program.options.target.arch}")


class _Ints(ArrayNumbers):
    """Numbers that are ints, whatever type an operation has."""

    def holding(self, dtype: DType) -> Apply:
        return lambda value: value


_INTS = _Ints()


def _promoted(e: Expr) -> Callable[..., Any]:
    """An operation in int, whatever the type of its operands."""
    kind, apply = kind_of(e.dtype), meaning(e, _INTS)
    assert apply is not None

    def run(*operands: Any) -> Any:
        if any(isinstance(a, np.ndarray) for a in operands):
            return apply(*(np.asarray(a, np.int32) for a in operands))
        return wrapped(int(apply(*operands)), kind)

    return run


def _widened(e: Expr) -> Callable[..., Any]:
    """An operation on lanes in 64 bits, whatever the type of its operands."""
    apply, usual = meaning(e, _INTS), applied(e)
    assert apply is not None
    assert usual is not None

    def run(*operands: Any) -> Any:
        if any(isinstance(a, np.ndarray) for a in operands):
            return apply(*(np.asarray(a, np.int64) for a in operands))
        return usual(*operands)

    return run


def _lanes(e: Expr) -> int:
    count = int(e.value or 0)
    if count > _WIDEST:
        raise NotModelled(f"a vector of {count} lanes")
    return count


def _broadcast(value: Value, count: int, form: np.dtype[Any]) -> Array:
    if isinstance(value, np.ndarray):
        return np.broadcast_to(value.astype(form, copy=False), (count, *value.shape[-2:]))
    return np.full((count, 1, 1), value, form)


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.divide(a, b)
    return float(np.divide(np.float64(a), np.float64(b)))


EXPRESSIONS |= {
    **dict.fromkeys(("int", "float", "str"), _constant),
    **dict.fromkeys(("cast", "ramp", "broadcast", "not", *BINARY), _operator),
    "var": _variable,
    "load": _load,
    "select": _select,
    "and": _shortcut,
    "or": _shortcut,
    "call": _call,
    "let": _let,
    "shuffle": _shuffle,
    "predicated": _predicated,
    "unknown": _unknown,
}
