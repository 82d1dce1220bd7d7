"""Functions are equal if nothing that is known of them differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from tests.cpu.snapshot.recorded import RECORDED, snapshot
from tlcheck.snapshot import codec
from tlcheck.snapshot.equality import same, united
from tlcheck.snapshot.ir import Evaluate, Expr, Function, Seq

Place = tuple[str, str]  # class and field
_FIELDS: dict[type, tuple[str, ...]] = {}


def _function(value: Any) -> Function:
    body = Seq((Evaluate(Expr("call", "int32", (Expr("float", "float32", (), value),), "f")),))
    return Function("main", (), (), (), body)


class Copy:
    """Makes everything anew but variables, and the first value that stands at one place another one."""

    def __init__(self, wrong: Place | None = None) -> None:
        self.wrong = wrong
        self.is_wrong = False

    def of(self, value: Any) -> Any:
        """The copy of a node, of a tuple or of a plain value."""
        if isinstance(value, tuple):
            return tuple([self.of(part) for part in value])
        names = _names(type(value))
        if not names:
            return value
        if self.wrong is not None and not self.is_wrong and self.wrong[0] == type(value).__name__:
            self.is_wrong = True
            return replace(value, **{self.wrong[1]: _other(getattr(value, self.wrong[1]))})
        if isinstance(value, Expr) and value.op == "var":
            return value
        return type(value)(**{name: self.of(getattr(value, name)) for name in names})


def _other(value: Any) -> Any:
    if isinstance(value, tuple):
        return value[:-1] if value else (Expr("int", "int32", (), 1),)
    if isinstance(value, str):
        return value + "'"
    if isinstance(value, (int, float)):
        return value + 1
    return None if value is not None else Expr("int", "int32", (), 1)


def _places(value: Any) -> Iterator[Place]:
    for part in value if isinstance(value, tuple) else ():
        yield from _places(part)
    for name in _names(type(value)):
        yield type(value).__name__, name
        yield from _places(getattr(value, name))


def _names(kind: type) -> tuple[str, ...]:
    """The fields of a class of nodes; none of plain values."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return _FIELDS[kind]


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_made_anew_is_equal(name: str) -> None:
    for function in snapshot(name).checkpoints.values():
        again = Copy().of(function)
        assert again is not function
        assert same(function, again)
        assert list(united({"one": function, "other": again}).values()) == [function, function]


@pytest.mark.parametrize("name", RECORDED)
def test_one_other_value_anywhere_is_a_difference(name: str) -> None:
    functions = list(snapshot(name).checkpoints.values())
    for function in {id(f): f for f in (functions[0], functions[-1])}.values():
        for place in dict.fromkeys(_places(function)):
            copy = Copy(place)
            wrong = copy.of(function)
            assert copy.is_wrong
            assert not same(function, wrong), place
            assert not same(wrong, function), place


def test_each_variable_is_itself() -> None:
    text = codec.dumps(snapshot(RECORDED[0]))
    (_, one), *_ = codec.loads(text).checkpoints.items()
    (_, other), *_ = codec.loads(text).checkpoints.items()
    assert not same(one, other)


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (1.0, 1), (float("nan"), 0.0)])
def test_numbers_of_another_sign_or_type_are_others(one: Any, other: Any) -> None:
    assert same(_function(one), _function(one))
    assert not same(_function(one), _function(other))


def test_a_function_is_united_with_the_one_before_it_only() -> None:
    one, other, again = _function(1.0), _function(2.0), _function(1.0)
    assert list(united({"a": one, "b": other, "c": again}).values()) == [one, other, again]
