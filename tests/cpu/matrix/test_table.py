"""Test which cells are of one row, and what a row says."""

from __future__ import annotations

from dataclasses import replace

from tests.cpu.checking import failed, make_result, make_run
from tests.cpu.cost.kernels import cost
from tlcheck.cost.figures import figures_of, more_than
from tlcheck.lower.scripts import End
from tlcheck.matrix.cell import cells_of
from tlcheck.matrix.table import Column, Matrix, MatrixRow, rows_of
from tlcheck.matrix.words import costs_in_words
from tlcheck.verdicts.results import Result
from tlcheck.worker.protocol import Failure


def result(release: str, *verdicts: str, name: str = "case", place: int = 0) -> Result:
    run = replace(make_run(release), name=name, position=(0, place))
    return make_result(*verdicts, run=run)


def states(row: MatrixRow) -> list[str]:
    return [cell.state for cell in row.cells]


def matrix(rows: tuple[MatrixRow, ...], toolchains: str) -> Matrix:
    return Matrix({}, tuple(Column(name, name, {}) for name in toolchains), rows)


def test_every_state() -> None:
    found = [
        result("1", "proved", "refuted"),
        result("2", "proved", "agreed"),
        failed(run=replace(make_run("3"), position=(0, 0))),
        result("5", "refuted", "undecided"),
        result("6", "undecided", "proved"),
        result("7"),
        result("8", "agreed"),
    ]
    (row,) = rows_of(cells_of(found[::-1], []), "12345678")
    assert states(row) == ["wrong", "fine", "broken", "absent", "wrong", "undecided", "undecided", "fine"]
    assert (row.first_wrong, row.right_again) == ("1", "8")
    assert [claim.verdict for claim in row.cells[4].claims] == ["refuted", "undecided"]
    table = matrix((row,), "12345678")
    supported = [column.name for column in table.columns if table.is_supported(column)]
    assert supported == ["2", "6", "8"], "with 4 and 7 nothing is decided"
    assert table.exit_code == 1


def test_what_is_not_decided_at_all_is_not_checked() -> None:
    def code(*results: Result) -> int:
        return matrix(rows_of(cells_of(results, []), "1"), "1").exit_code

    assert code(result("1", "undecided", "proved")) == 0
    assert code(result("1", "undecided", "undecided")) == 3
    assert code(result("1")) == 3
    assert code(result("1", "proved"), failed(run=replace(make_run("1"), name="b", position=(0, 1)))) == 3


def test_a_file_that_one_toolchain_cannot_import_is_broken_for_all_its_kernels() -> None:
    broken = Result(replace(make_run("2"), name="", target=""), failure=Failure("exception", "import", "no T.foo"))
    rows = rows_of(cells_of([result("1", "proved"), result("1", "proved", name="b", place=1), broken], []), "12")
    assert [row.name for row in rows] == ["case", "b"]
    assert [states(row) for row in rows] == [["fine", "broken"]] * 2
    assert [row.cells[1].words for row in rows] == ["import: no T.foo"] * 2
    (nothing,) = rows_of(cells_of([broken], []), "2")
    assert (nothing.title, states(nothing)) == ("k.py", ["broken"])


def test_a_named_kernel_whose_file_one_toolchain_cannot_import_has_one_row_for_each_arch() -> None:
    """Its archs are known to the other toolchain alone."""
    broken = Result(replace(make_run("2"), target=""), failure=Failure("exception", "import", "no T.foo"))
    older = replace(result("1", "proved"), run=replace(make_run("1"), target="sm_80"))
    rows = rows_of(cells_of([result("1", "proved"), older, broken], []), "12")
    assert [row.title for row in rows] == ["k.py::case sm_80", "k.py::case sm_90"]
    assert [states(row) for row in rows] == [["fine", "broken"]] * 2
    (nothing,) = rows_of(cells_of([broken], []), "2")
    assert (nothing.title, states(nothing)) == ("k.py::case", ["broken"])


def test_kernels_of_scripts_are_paired_by_call_and_those_behind_its_end_are_broken() -> None:
    """The second release quotes its types otherwise, and ends before the second call of `f`."""
    old = [result("1", "proved", name=name, place=n) for n, name in enumerate(("f[d='half']", "f[d='half']-2", "g"))]
    new = [result("2", "refuted", name="f[d=half]")]
    ended = Failure("exception", "run", "no T.foo")
    ends = [End(replace(make_run("1"), name=""), 3, None, ()), End(replace(make_run("2"), name=""), 1, ended, ())]
    rows = rows_of(cells_of([*old, *new], ends), "12")
    assert [row.name for row in rows] == ["f[d='half']", "f[d='half']-2", "g"]
    assert [states(row) for row in rows] == [["fine", "wrong"], ["fine", "broken"], ["fine", "broken"]]
    assert rows[2].cells[1].words == "run: no T.foo"


def test_a_row_says_what_costs_more_than_before() -> None:
    swizzled, linear = figures_of(cost("product")), figures_of(cost("product_linear"))
    assert list(more_than(swizzled, linear)) == ["wavefronts of shared memory"]
    assert list(more_than(linear, swizzled)) == []
    slower = replace(swizzled, tensor="mma", in_flight=0, resident=1, global_bytes=2 * swizzled.global_bytes)
    assert list(more_than(replace(swizzled, tensor="wgmma", in_flight=64, resident=2), slower)) == [
        "bytes of global memory",
        "fewer bytes of copies in flight",
        "fewer blocks on a multiprocessor",
        "mma for wgmma",
    ]
    results = [replace(result(name, "agreed"), cost=cost(case)) for name, case in zip("123", _CASES, strict=True)]
    (row,) = rows_of(cells_of(results, []), "1234")
    first, second = costs_in_words(row)
    assert first.startswith("1, 2: ")
    assert "more than before" not in first
    assert second.startswith("3: ")
    assert second.endswith("; more than before: wavefronts of shared memory")


_CASES = ("product", "product", "product_linear")
