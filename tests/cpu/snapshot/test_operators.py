"""All that interpret expressions, held against C: a program that gcc has compiled."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis.strategies import randoms

from tests.cpu.snapshot.c_expressions import (
    FLOATS,
    INTEGERS,
    VARIABLES,
    Drawing,
    Number,
    Point,
    Result,
    in_c,
    node,
    points,
)
from tlcheck.algebra.algebra import Algebra, unread
from tlcheck.algebra.evaluate import Evaluator
from tlcheck.execute.compile import registry
from tlcheck.execute.compile.extents import interval
from tlcheck.execute.compile.program import EXPRESSIONS as COMPILED
from tlcheck.execute.memory.codes import Code, counter
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.memory.values import kind_of
from tlcheck.golden.indices import simpler
from tlcheck.program.release import Release
from tlcheck.snapshot.dtypes import whole_numbers
from tlcheck.snapshot.expression_text import render_expression
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.operators import (
    BINARY,
    COMMUTING,
    MIRRORED,
    OPERATORS,
    OPPOSITE,
    ORDER,
    Scalars,
    exact,
    named,
)
from tlcheck.snapshot.walk import postorder
from tlcheck.worker.shared_memory import _value as value_at_seed

registry.load()

EXPRESSIONS, POINTS = 30, 24
_BATCHES = settings(max_examples=3, phases=[Phase.generate])  # a smaller batch says no more


class Compiler:
    """As much of a program as expressions of variables ask for. counted: variables that are a loop's."""

    class options:  # noqa: N801
        exact, jitter, printed, wide, field, release = False, 0, False, False, None, Release.of("0.1.15")

    def __init__(self, counted: Sequence[Expr] = ()) -> None:
        self.variables = {v.uid: Code(_reader(v.uid)) for v in VARIABLES.values()}
        self.variables |= {v.uid: counter(v.uid) for v in counted}

    def code(self, e: Expr) -> Code:
        program: Any = self
        return COMPILED[e.op](e, program)


def _reader(uid: int) -> Callable[[Frame], Any]:
    return lambda frame: frame.variables[uid]


def executed(e: Expr, values: dict[str, Any], lanes: int) -> list[Number]:
    """The values of an expression in all lanes."""
    frame = Frame({VARIABLES[name].uid: value for name, value in values.items()}, 1, lanes)
    found: list[Number] = np.broadcast_to(np.asarray(Compiler().code(e).run(frame)), (1, lanes))[0].tolist()
    return found


def scalars(p: Point) -> dict[str, Any]:
    return {name: bool(p[name]) if v.dtype == "bool" else p[name] for name, v in VARIABLES.items()}


def same(found: Number, expected: Number) -> bool:
    return found == expected or (math.isnan(found) and math.isnan(expected))


def shown(value: Any) -> str:
    """An expression in words, or a number."""
    return render_expression(value, lambda v: str(v.value), str) if isinstance(value, Expr) else str(value)


def differing(e: Expr, found: Sequence[Number], expected: Sequence[Result], at: Sequence[Point]) -> list[str]:
    """Return where a domain is not as C, in words."""
    names = [str(v.value) for v in postorder([e]) if v.op == "var"]
    return [
        f"{shown(e)} is {f}, in C {c.value}, at { {name: p[name] for name in names} }"
        for f, c, p in zip(found, expected, at, strict=True)
        if not c.undefined and not same(f, c.value)
    ]


def has(e: Expr, *dtypes: str) -> bool:
    return any(each.dtype in dtypes for each in postorder([e]))


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    """As where kernels run."""
    with np.errstate(all="ignore"):
        yield


@_BATCHES
@given(random=randoms(use_true_random=True))
def test_expressions_have_the_values_that_c_gives_them(
    random: Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In executions, sizes, polynomials, intervals, and where shared memory is unmerged."""
    batch = [Drawing(random, n % 2 == 0).expression(random.choice([*INTEGERS, "bool"]), 3) for n in range(EXPRESSIONS)]
    batch += [Drawing(random, True).expression(random.choice(FLOATS), 3) for _ in range(EXPRESSIONS // 2)]
    at = [*(merged(seed) for seed in (0, 1)), *points(random, POINTS)]
    for e, expected in zip(batch, in_c(batch, at, tmp_path_factory.mktemp("c")), strict=True):
        for domain in (in_lanes, in_sizes, where_merged, in_algebra, in_intervals):
            wrong = domain(e, expected, at)
            assert not wrong, f"{domain.__name__}: {wrong[0]}"


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_without_gcc_only_ci_fails(
    ci: str, outcome: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(outcome, match="apt install gcc"):
        in_c([], [], tmp_path)


def in_lanes(e: Expr, expected: Sequence[Result], at: Sequence[Point]) -> list[str]:
    """Executions: all points as lanes, and each alone."""
    lanes = {name: np.array([[p[name] for p in at]], kind_of(v.dtype).array) for name, v in VARIABLES.items()}
    one_by_one = [executed(e, scalars(p), 1)[0] for p in at]
    return differing(e, executed(e, lanes, len(at)), expected, at) + differing(e, one_by_one, expected, at)


def in_sizes(e: Expr, expected: Sequence[Result], at: Sequence[Point]) -> list[str]:
    """Sizes, as arrays and alone. Their floats have 64 bits, and no quotients."""
    if has(e, "float32") or any(each.op == "div" for each in postorder([e])):
        return []
    arrays = {name: as_words([p[name] for p in at], v.dtype) for name, v in VARIABLES.items()}
    together = np.broadcast_to(evaluated(e, arrays), len(at)).tolist()
    return differing(e, together, expected, at) + differing(e, [evaluated(e, scalars(p)) for p in at], expected, at)


def as_words(values: Sequence[Number], dtype: str) -> Any:
    """Numbers as an array of the one integral type that indices have."""
    return np.array(values, kind_of(dtype).array).astype(np.float64 if dtype in FLOATS else np.int64)


def merged(seed: int) -> Point:
    """The values that variables have where accesses of merged shared memory are compared."""
    return {name: seed * (sum(map(ord, name)) % 61 + 3) for name in VARIABLES}


def where_merged(e: Expr, expected: Sequence[Result], at: Sequence[Point]) -> list[str]:
    """Two values of an index, the variables of which are given by their names."""
    if has(e, *FLOATS) or any(each.op == "var" and each.dtype == "bool" for each in postorder([e])):
        return []
    return differing(e, [value_at_seed(e, seed) for seed in (0, 1)], expected[:2], at[:2])


def in_algebra(e: Expr, expected: Sequence[Result], at: Sequence[Point]) -> list[str]:
    """Polynomials, whose numbers are those of int64, and fit where their bounds are not known."""
    if has(e, *FLOATS):
        return []
    fitting = [n for n, c in enumerate(expected) if not (c.wide or c.unbounded)]
    there, algebra = [at[n] for n in fitting], Algebra(unread)
    for v in VARIABLES.values():
        algebra.ranges[v.uid] = (0, 2**63 - 1) if v.dtype == "uint64" else whole_numbers(v.dtype)
    env = {v.uid: as_words([p[name] for p in there], v.dtype) for name, v in VARIABLES.items() if v.dtype not in FLOATS}
    found = np.broadcast_to(np.asarray(Evaluator(algebra, env)(algebra.poly(e))), len(there)).tolist()
    return differing(e, found, [expected[n] for n in fitting], there)


def in_intervals(e: Expr, expected: Sequence[Result], at: Sequence[Point]) -> list[str]:
    """All values of an expression lie in its interval."""
    if has(e, *FLOATS) or any(c.undefined for c in expected):
        return []
    known = {v.uid: (min(p[n] for p in at), max(p[n] for p in at)) for n, v in VARIABLES.items()}
    found = interval(e, {}, known)
    if found is None:
        return []
    return [f"{c.value} is not in {found}" for c in expected if not found[0] <= c.value <= found[1]]


A, B = ({dtype: VARIABLES[f"{dtype}_{n}"] for dtype in (*INTEGERS, "bool", *FLOATS)} for n in (0, 1))
ZERO = dict.fromkeys(VARIABLES, 0)


def binary(op: str, dtype: str) -> Expr:
    return node(op, dtype, A[dtype], B[dtype])


def cast(source: str, target: str) -> Expr:
    return node("cast", target, A[source])


@pytest.mark.parametrize(
    ("e", "a", "b", "expected"),
    [
        (binary("truncdiv", "int32"), -7, 2, -3),
        (binary("truncmod", "int32"), -7, 2, -1),
        (binary("truncdiv", "int64"), 7, -2, -3),
        (binary("truncmod", "int64"), 7, -2, 1),
        (binary("add", "uint8"), 200, 100, 44),
        (binary("sub", "uint16"), 3, 5, 65534),
        (binary("sub", "uint32"), 3, 5, 2**32 - 2),
        (binary("mul", "int8"), 100, 3, 44),
        (binary("min", "int64"), -5, 2**62, -5),
        (binary("shift_left", "uint8"), 200, 1, 144),
        (binary("shift_right", "int8"), -128, 3, -16),
        (node("bitwise_not", "uint8", A["uint8"]), 1, 0, 254),
        (node("bitwise_not", "int32", A["int32"]), 6, 0, -7),
        (cast("int32", "int8"), 300, 0, 44),
        (cast("int64", "int32"), 2**32 + 5, 0, 5),
        (cast("int64", "uint16"), -1, 0, 65535),
        (cast("int32", "bool"), 2, 0, 1),
        (cast("float64", "int32"), -2.75, 0, -2),
        (cast("int64", "float32"), 2**62 + 2**38 + 1, 0, float(2**62 + 2**39)),
        (cast("int64", "float32"), -(2**62) - 2**38 - 1, 0, -float(2**62 + 2**39)),
        (cast("uint64", "float32"), 2**63 + 2**39 + 1, 0, float(2**63 + 2**40)),
        (node("mul", "int32", A["int32"], Expr("int", "int32", value=2**31)), 3, 0, -(2**31)),
        (node("truncmod", "int32", Expr("int", "int32", value=-7), Expr("int", "int32", value=2)), 0, 0, -1),
    ],
    ids=shown,
)
def test_values_that_c_defines(e: Expr, a: Number, b: Number, expected: Number) -> None:
    assert_everywhere(e, a, b, expected)


@pytest.mark.parametrize(
    ("e", "a", "b", "expected"),
    [
        (binary("floordiv", "int32"), -7, 0, -1),
        (binary("floordiv", "int32"), 7, 0, 0),
        (binary("floormod", "int32"), -7, 0, -7),
        (binary("truncdiv", "int64"), -7, 0, 0),
        (binary("truncmod", "int64"), 7, 0, 7),
        (binary("truncdiv", "uint8"), 7, 0, 0),
        (binary("shift_left", "int32"), 5, 40, 0),
        (binary("shift_left", "int32"), 5, -1, 0),
        (binary("shift_right", "int64"), -5, 64, -1),
        (binary("shift_right", "int64"), -5, -1, -1),
        (binary("shift_right", "uint8"), 200, 9, 0),
        (binary("add", "int32"), 2**31 - 1, 1, -(2**31)),
        (binary("shift_left", "int32"), 3, 31, -(2**31)),
    ],
    ids=shown,
)
def test_values_that_c_leaves_open_are_the_same_everywhere(e: Expr, a: Number, b: Number, expected: Number) -> None:
    assert_everywhere(e, a, b, expected)


def assert_everywhere(e: Expr, a: Number, b: Number, expected: Number) -> None:
    """Two points, so that arrays are not all of one number: at the other one all variables are 1."""
    names = [str(v.value) for v in postorder([e]) if v.op == "var"]
    here = {**ZERO, **dict(zip(sorted(names), (a, b), strict=False))}
    for domain in (in_lanes, in_sizes, in_algebra, in_intervals):
        other = Result(0, undefined=True, wide=False, unbounded=False)
        result = Result(expected, undefined=False, wide=False, unbounded=False)
        assert not domain(e, [result], [here]), domain.__name__
        assert not domain(e, [result, other], [here, dict.fromkeys(VARIABLES, 1)]), domain.__name__


@pytest.mark.parametrize("op", ["floordiv", "truncdiv"])
def test_the_least_number_by_minus_one_wraps_in_an_execution_and_a_size(op: str) -> None:
    for dtype in ("int8", "int32", "int64"):
        least = whole_numbers(dtype)[0]
        here = {**ZERO, f"{dtype}_0": least, f"{dtype}_1": -1}
        result = Result(least, undefined=False, wide=False, unbounded=False)
        assert not in_lanes(binary(op, dtype), [result], [here])
        assert not in_sizes(binary(op, dtype), [result], [here])


def test_a_choice_of_constants_of_64_bits_is_exact() -> None:
    large, small = (Expr("int", "uint64", value=n) for n in (2**63 + 1, 4))
    e = node("select", "uint64", node("cast", "bool", A["int32"]), large, small)
    here = [{**ZERO, "int32_0": 1}, ZERO]
    expected = [Result(n, undefined=False, wide=False, unbounded=False) for n in (2**63 + 1, 4)]
    assert not in_lanes(e, expected, here)
    assert not in_sizes(e, expected, here)


@pytest.mark.parametrize(
    "e",
    [
        node("cast", "int8", node("mul", "int32", A["int32"], Expr("int", "int32", value=100))),
        node("shift_left", "int32", A["int32"], Expr("int", "int32", value=2)),
        node("sub", "uint32", Expr("int", "uint32", value=0), A["uint32"]),
    ],
    ids=shown,
)
def test_unmerging_reads_indices_as_an_execution_does(e: Expr) -> None:
    for seed in (0, 1):
        assert value_at_seed(e, seed) == executed(e, scalars(merged(seed)), 1)[0]


@pytest.mark.parametrize("target", INTEGERS)
def test_floats_become_the_nearest_integer_that_a_type_has(target: str) -> None:
    least, most = whole_numbers(target)
    for value, expected in ((1e30, most), (-1e30, least), (math.inf, most), (math.nan, 0), (float(most), most)):
        result = Result(expected, undefined=False, wide=False, unbounded=False)
        here = {**ZERO, "float64_0": value}
        assert not in_lanes(cast("float64", target), [result], [here])
        assert not in_sizes(cast("float64", target), [result], [here])


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("values", [(1.5, math.nan), (math.nan, 1.5)])
def test_of_a_number_and_none_an_execution_takes_the_number(op: str, values: tuple[float, float]) -> None:
    here = {**ZERO, **dict(zip(("float32_0", "float32_1"), values, strict=True))}
    assert not in_lanes(binary(op, "float32"), [Result(1.5, undefined=False, wide=False, unbounded=False)], [here])


def test_floats_are_divided_and_then_rounded_down() -> None:
    """7 / 0.1 is 70 as a float of 32 bits, and a little less with what 0.1 is."""
    e = binary("floordiv", "float32")
    here = {**ZERO, "float32_0": 7.0, "float32_1": float(np.float32(0.1))}
    assert not in_lanes(e, [Result(70.0, undefined=False, wide=False, unbounded=False)], [here])


def test_integers_of_four_bits_wrap_in_lanes() -> None:
    a, b = (Expr("var", "int4", (), v.value, v.uid) for v in (A["int8"], B["int8"]))
    values = {"int8_0": np.array([[7, -8]], np.int8), "int8_1": np.array([[1, 1]], np.int8)}
    assert executed(Expr("add", "int4", (a, b)), values, 2) == [-8, -7]
    assert executed(Expr("sub", "int4", (a, b)), values, 2) == [6, 7]


def test_shifts_by_a_number_of_a_wider_type() -> None:
    for op, expected in (("shift_left", [0, 144]), ("shift_right", [0, 100])):
        e = node(op, "uint8", A["uint8"], B["int32"])
        values = {"uint8_0": np.array([[200, 200]], np.uint8), "int32_1": np.array([[256, 1]], np.int32)}
        assert executed(e, values, 2) == expected


def test_comparisons_and_what_they_are_the_other_way_round() -> None:
    assert named("comparison") == MIRRORED.keys() == OPPOSITE.keys() == {"eq", "ne", *ORDER}
    for name, (a, b) in product(MIRRORED, product(range(-2, 3), repeat=2)):
        holds = exact(name, Scalars())(a, b)
        assert exact(MIRRORED[name], Scalars())(b, a) == holds
        assert exact(OPPOSITE[name], Scalars())(a, b) != holds
        smaller, larger, gap = ORDER.get(name, (0, 1, None))
        assert gap is None or ((a, b)[larger] - (a, b)[smaller] >= gap) == holds


def test_operands_are_exchanged_where_that_changes_nothing() -> None:
    for name in BINARY | {"bitwise_and", "bitwise_or", "bitwise_xor", "shift_left"}:
        apply = exact(name, Scalars())
        assert (name in COMMUTING) == all(apply(a, b) == apply(b, a) for a, b in product(range(4), repeat=2)), name


def test_no_other_module_computes_operators_of_its_own() -> None:
    """Atomics need the functions of NumPy itself, which combine in place."""
    computing = re.compile(rf'"({"|".join(OPERATORS.keys() - named("same"))})": *(np|operator|lambda|min|max)\b')
    package = Path(__file__).parents[3] / "tlcheck"
    parts = ("algebra", "execute", "golden", "program", "prove", "scope")
    files = (file for part in parts for file in (package / part).rglob("*.py"))
    found = [file.name for file in files if computing.search(file.read_text(encoding="utf-8"))]
    assert found == ["atomics.py"]


def test_the_algebra_computes_with_constants_of_64_bits() -> None:
    most = Expr("int", "uint64", value=2**64 - 1)
    for op in ("add", "floordiv", "bitwise_and"):
        here = [{**ZERO, "uint64_0": 3}, {**ZERO, "uint64_0": 1}]
        expected = [Result(0, undefined=True, wide=False, unbounded=False)] * 2
        assert in_algebra(node(op, "uint64", A["uint64"], most), expected, here) == []


@_BATCHES
@given(random=randoms(use_true_random=True))
def test_indices_as_text_have_the_values_that_c_gives_them(
    random: Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Written out, and in the simpler form that goldens are compared in."""
    batch = [Drawing(random, False).index(4) for _ in range(EXPRESSIONS)]
    at = [{**p, "int64_0": random.randint(-40, 40), "int64_1": random.randint(-40, 40)} for p in points(random, POINTS)]
    for e, expected in zip(batch, in_c(batch, at, tmp_path_factory.mktemp("c")), strict=True):
        text = re.sub(r"T\.int64\((\d+)\)", r"\1", shown(e))
        for form in (text, simpler(f"a[{text}]")[2:-1]):
            code = compile(form, "", "eval")
            assert not differing(e, [eval(code, dict(p)) for p in at], expected, at)


@_BATCHES
@given(random=randoms(use_true_random=True))
def test_values_grow_as_far_as_growth_says(random: Random) -> None:
    """Of variables that a loop counts up, of any type: also where they wrap."""
    counted = [v for v in VARIABLES.values() if v.dtype not in (*FLOATS, "bool")]
    grown = 0
    for _ in range(EXPRESSIONS * 4):
        v = random.choice(counted)
        e = growing(random, v, 3)
        growth = Compiler([v]).code(e).growths.get(v.uid)
        if growth is None or growth.period > 1000:
            continue
        run = Compiler([v]).code(e).run
        for start in range(0, 100, 7):
            first, later = (int(run(Frame({v.uid: k}, 1, 1))) for k in (start, start + growth.period))
            assert later - first == growth.slope * growth.period, shown(e)
        grown += 1
    assert grown >= EXPRESSIONS // 2


def growing(random: Random, v: Expr, depth: int) -> Expr:
    """An expression of a variable and constants, in its type."""
    if depth == 0:
        return v
    op = random.choice(("add", "sub", "mul", "floordiv", "floormod"))
    by = random.choice((2, 3, 4, 6, 8)) if op.startswith("floor") else random.choice((1, 2, 5, 100))
    return node(op, v.dtype, growing(random, v, depth - 1), Expr("int", v.dtype, value=by))
