"""Sums that are known: of parts that differ in anything that a sum depends on, none is taken for another's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tlcheck.algebra.algebra import Algebra, FragmentTable, unread
from tlcheck.algebra.evaluate import Dimension
from tlcheck.algebra.polynomial import Poly, add, constant, scale
from tlcheck.prove import known_fingerprints
from tlcheck.prove.fingerprints import Part, UndecidedError, fingerprints
from tlcheck.prove.footprints import Leaf
from tlcheck.prove.known_fingerprints import KnownSums

ROW, COLUMN, SIZE = 1, 2, 3  # uids: a lane's two coordinates, and a size


def table(moved: int) -> FragmentTable:
    return FragmentTable(8, 64, np.roll(np.arange(512, dtype=np.int64), moved))


TABLES = table(0), table(1)


@dataclass(frozen=True)
class Form:
    """A record of what a part is made of: lane (i, j) adds what it reads, where its gate and its flag let it."""

    start: int = 0
    rows: int = 64
    columns: int = 8
    stride: int = 8
    pitch: int = 1  # of the destination, in units of a size that nobody knows
    place: int = 0  # of that size among the atoms
    divisor: int = 4
    kind: str = "min"
    read: str = "A"
    source: int = 0
    thread: int = 1
    own: int = 0
    fragment: int | None = None
    register: int = 0
    gate: int = 1
    outer: int = -40
    flag: int = 2
    needed: int = 0
    salt: int = 0
    numbers: tuple[int, ...] = ()
    opaque: int = 61
    cut: str = "uint8"
    holds: str = ""


FORM = Form()
HELD = Form(fragment=0)
PAIRS = [
    *((FORM, replace(FORM, **cast(Any, {name: value}))) for name, value in [
        ("start", 1), ("rows", 63), ("columns", 7), ("stride", 9), ("pitch", 2), ("place", 1), ("divisor", 2),
        ("kind", "max"), ("read", "B"), ("source", 1), ("own", 1), ("fragment", 0), ("register", 1), ("gate", 2),
        ("outer", -41), ("flag", 4), ("salt", 1), ("numbers", (3, 5)), ("opaque", 7), ("cut", "int8"),
    ]),
    (replace(FORM, numbers=(3, 5)), replace(FORM, numbers=(5, 3))),
    (replace(FORM, numbers=(3, 500)), replace(FORM, numbers=(3, 500), holds="int8")),
    (HELD, replace(HELD, fragment=1)),
    (HELD, replace(HELD, thread=2)),
]  # fmt: skip


def made(form: Form) -> tuple[Algebra, Part, Mapping[int, int]]:
    """The form's part in an algebra of its own, and the class of outer points that it is asked for."""
    algebra = Algebra(unread)
    algebra.ranges.update({ROW: (form.start, form.start + form.rows - 1), COLUMN: (0, form.columns - 1)})
    for uid in range(10, 10 + form.place):
        algebra.variable(uid)
    algebra.tables["R"] = TABLES[form.register]
    size, i, j = algebra.variable(SIZE), algebra.variable(ROW), algebra.variable(COLUMN)
    ((pitch, _),) = size.items()
    read = algebra._opaque("load", form.read, [algebra.floordiv(i, form.divisor)], (None, None), form.holds)
    held = algebra._opaque("register", "R", [i, j], (None, None))
    wrapped = algebra._opaque("wrap", form.cut, [scale(j, 20)], (None, None))
    chosen = algebra._opaque(form.kind, "", [i, j], (None, None))
    inner = add(add(add(add(scale(i, form.stride), wrapped), read), held), chosen)
    thread, element = scale(i, form.thread), add(j, constant(form.source))
    fragment = None if form.fragment is None else TABLES[form.fragment]
    leaf = Leaf("A", "global", element, scale(i, form.own), fragment)
    needed = (add(i, constant(1 - form.needed)),)
    part = Part(
        cast(Any, SimpleNamespace(leaves=(leaf,), needed=needed, site=SimpleNamespace(is_idempotent=False))),
        {(): inner, pitch: scale(i, form.pitch)},
        ((thread, {(): element}),),
        ((0, scale(i, form.gate)),),
        (algebra.floormod(add(i, j), form.flag),),
        (Dimension(ROW, form.start, form.rows), Dimension(COLUMN, 0, form.columns)),
        (),
        (),
        (),
    )
    algebra.salt, algebra.numbers, algebra.opaque = form.salt, form.numbers, form.opaque
    return algebra, part, {0: form.outer}


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_what_differs_in_one_thing_has_a_sum_of_its_own(one: Form, other: Form) -> None:
    sums = KnownSums()
    found = []
    for form in (one, other, one, other):
        algebra, part, outer = made(form)
        found.append(sums.of(algebra, [part], [outer]))
        assert found[-1] == fingerprints(algebra, [part], [outer])
    assert found[0] != found[1]


def test_a_value_that_is_replaced_is_undecided_again_and_again() -> None:
    sums = KnownSums()
    algebra, part, outer = made(FORM)
    sums.of(algebra, [part], [outer])
    for _ in range(2):
        algebra, part, outer = made(replace(FORM, needed=51))
        with pytest.raises(UndecidedError):
            sums.of(algebra, [part], [outer])


def test_the_same_of_another_algebra_is_not_summed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    summed: list[int] = []
    sums = KnownSums()

    def counted(algebra: Algebra, parts: Any, classes: Any) -> Any:
        summed.append(len(classes))
        return fingerprints(algebra, parts, classes)

    monkeypatch.setattr(known_fingerprints, "fingerprints", counted)
    for _ in range(2):
        algebra, part, outer = made(FORM)
        sums.of(algebra, [part, part], [outer, {0: 5}, outer])
    assert summed == [2]


def test_sums_of_parts_add_up() -> None:
    algebra, one, outer = made(FORM)
    other = replace(one, space=(Dimension(ROW, 64, 64), one.space[1]))
    classes = [outer, {0: 0}, {0: 5}]
    assert KnownSums().of(algebra, [one, other], classes) == fingerprints(algebra, [one, other], classes)
    assert KnownSums().of(algebra, [], classes) == fingerprints(algebra, [], classes)


def test_atoms_are_named_by_what_they_are() -> None:
    """One algebra's third atom is another's fourth."""
    names: dict[Any, int] = {}
    found = []
    for order in ((ROW, COLUMN, SIZE), (SIZE, COLUMN, ROW)):
        algebra = Algebra(unread)
        polys: list[Poly] = [algebra.variable(uid) for uid in order]
        keys = known_fingerprints._Keys(algebra, names, {})
        found.append({uid: keys.poly(poly) for uid, poly in zip(order, polys, strict=True)})
    assert found[0] == found[1]
