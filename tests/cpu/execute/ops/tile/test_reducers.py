"""T.alloc_reducer in both forms, against reductions of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import (
    Array,
    Index,
    Kernel,
    call,
    load,
    number,
    parallel,
    random,
    region,
    variable,
)
from tlcheck.execute.machine_options import Options
from tlcheck.execute.stops import Illegal, NotModelled
from tlcheck.program.updates import MULTIPLICITY
from tlcheck.snapshot.ir import Attr, Evaluate, Expr, Stmt, Store

ROWS, COLUMNS = 6, 9
OF = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
}
CASES = [(op, dtype) for op in OF for dtype in ("float32", "int32", "uint8") if "bit" not in op or dtype != "float32"]
WRITTEN = {"sum": "add", "max": "max", "min": "min"}


def update(target: Expr, value: Expr) -> Evaluate:
    return Evaluate(Expr("call", "handle", (target, value), "reducer_update"))


def epoch(op: str, a: Array, first: int | None = None, rows: int = ROWS, finished: int = ROWS) -> Array:
    """Over all rows and columns, the reducer one element for each row. rows, finished: of it, and of its result."""
    kernel, dtype = Kernel(), str(a.dtype)
    source, target = kernel.tensor("A", dtype, a), kernel.tensor("B", dtype, [ROWS])
    total, result = (
        kernel.tile("total", dtype, (rows,), "local.reducer"),
        kernel.tile("r", dtype, (finished,), "local.fragment"),
    )
    kernel.annotations["reducer_info_v2"] = f"{{other: {{op: max}}, total: {{op: {op}}}}}"
    i, j = variable("i"), variable("j")
    begin = [] if first is None else [Expr("int" if dtype != "float32" else "float", dtype, (), first)]
    return kernel.run(
        call("reducer_init", region(total), *begin),
        parallel([ROWS, COLUMNS], [i, j], update(load(total, i), load(source, i, j))),
        call("finalize_reducer_v2", region(total), region(result)),
        call("copy", region(result), region(target)),
    )["B"]


@pytest.mark.parametrize("first", [None, 3])
@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_an_epoch(op: str, dtype: str, first: int | None) -> None:
    a = random(dtype, ROWS, COLUMNS)
    found = epoch(op, a, first)
    with np.errstate(over="ignore"):
        expected = OF[op].reduce(a, axis=1, dtype=a.dtype)
        expected = expected if first is None else OF[op](expected, a.dtype.type(first))
    assert np.array_equal(found, expected)


def test_an_update_beyond_the_reducer_stops_the_source() -> None:
    with pytest.raises(Illegal, match="total out of bounds"):
        epoch("sum", random("float32", ROWS, COLUMNS), rows=ROWS - 1)


def test_a_result_of_another_size_is_not_modelled() -> None:
    with pytest.raises(NotModelled, match="a tile of another shape"):
        epoch("sum", random("float32", ROWS, COLUMNS), finished=ROWS + 1)


@pytest.mark.parametrize(("op", "ignoring", "begin"), [("max", np.fmax, -np.inf), ("min", np.fmin, np.inf)])
def test_nan_leaves_a_maximum_as_it_is(op: str, ignoring: np.ufunc, begin: float) -> None:
    a = random("float32", ROWS, COLUMNS)
    a[0, 2], a[1] = np.nan, np.nan
    assert np.array_equal(epoch(op, a), ignoring.reduce(a, axis=1, initial=begin))


def older(op: str, a: Array, value: Expr, begin: float, info: str | None = None, of: str = "local.fragment") -> Array:
    """The older form: begun by a fill, updated by stores. of: the scope; newer reducers are no fragments."""
    kernel = Kernel()
    kernel.tensor("A", "float32", a)
    target, total = kernel.tensor("B", "float32", [1]), kernel.tile("total", "float32", (1,), of)
    key = "reducer_info" if of == "local.fragment" else "reducer_info_v2"
    kernel.annotations[key] = info or f"{{total: {{op: {op}, rep: all}}}}"
    store = Store(total, (number(0),), value_of(value, kernel))
    return kernel.run(
        call("fill", region(total), Expr("float", "float32", (), begin)),
        parallel([ROWS, COLUMNS], [ROW, COLUMN], store),
        call("finalize_reducer", region(total)),
        call("copy", region(total), region(target)),
    )["B"]


ROW, COLUMN = variable("i"), variable("j")


def value_of(shape: Expr, kernel: Kernel) -> Expr:
    """`shape` with its strings replaced: "A" by an element of the source, "total" by the reducer's."""
    if shape.op == "str":
        made = kernel.tensors["A"][0] if shape.value == "A" else kernel.tiles[0]
        indices: tuple[Index, ...] = (ROW, COLUMN) if shape.value == "A" else (0,)
        return load(made, *indices)
    return Expr(shape.op, shape.dtype, tuple(value_of(x, kernel) for x in shape.args), shape.value)


OWN, TERM = Expr("str", "", (), "total"), Expr("str", "", (), "A")


@pytest.mark.parametrize("scope", ["local.fragment", "local.reducer"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_stores_that_update_accumulate_over_iterations(op: str, turned: bool, scope: str) -> None:
    a = random("float32", ROWS, COLUMNS)
    args = (TERM, OWN) if turned else (OWN, TERM)
    found = older(op, a, Expr(WRITTEN[op], "float32", args), 1.0, of=scope)
    assert found.tolist() == [OF[op].reduce(a.reshape(-1), initial=1.0)]


@pytest.mark.parametrize(
    ("value", "info", "message"),
    [
        (TERM, None, "no update"),
        (Expr("max", "float32", (OWN, TERM)), None, "another operation"),
        (Expr("add", "float32", (OWN, TERM)), "{total: {rep: all}}", "unknown kind"),
    ],
)
def test_other_stores_are_not_modelled(value: Expr, info: str | None, message: str) -> None:
    with pytest.raises(NotModelled, match=message):
        older("sum", random("float32", ROWS, COLUMNS), value, 0.0, info)


@pytest.mark.parametrize("first", [None, 3])
@pytest.mark.parametrize("form", ["marked", "fused", "left out"])
@pytest.mark.parametrize("op", ["sum", "max"])
def test_an_epoch_that_is_materialized(op: str, form: str, first: int | None) -> None:
    """A reducer is a fragment then, and updates are stores. form: why a store is an update."""
    kernel, a = Kernel(lowered=Options(source=True, midway=True)), random("float32", ROWS, COLUMNS)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [ROWS])
    total = kernel.tile("total", "float32", (ROWS,), "local.fragment")
    seed = kernel.tile("seed", "float32", (1,), "local")
    i, j = variable("i"), variable("j")
    row: Expr = i if form == "left out" else Expr("floordiv", "int32", (i, number(COLUMNS)))
    column = j if form == "left out" else Expr("floormod", "int32", (i, number(COLUMNS)))
    value = Expr(WRITTEN[op], "float32", (load(total, row), load(source, row, column)))
    body: Stmt = Store(total, (row,), value)
    if form == "marked":
        body = Attr(MULTIPLICITY, number(1), body)
    begin = Expr("float", "float32", (), 0.0 if op == "sum" else -np.inf)
    computed = () if first is None else (("seed", load(seed, 0)),)
    kind = number(["sum", "max"].index(op))
    finalize = Expr("call", "handle", (region(total), kind), "finalize_reducer", computed=computed)
    extents, variables = ([ROWS, COLUMNS], [i, j]) if form == "left out" else ([ROWS * COLUMNS], [i])
    found = kernel.run(
        Store(seed, (number(0),), Expr("float", "float32", (), float(first or 0))),
        call("fill", region(total), begin),
        parallel(extents, variables, body),
        Evaluate(finalize),
        call("copy", region(total), region(target)),
    )["B"]
    expected = OF[op].reduce(a, axis=1)
    assert np.array_equal(found, expected if first is None else OF[op](expected, first))
