"""Test where an element comes from: every step of its way, at both levels, and where they part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cpu.checking import RIGHT, WRONG, published
from tests.cpu.execute.observe.test_order import without as without_call
from tests.cpu.execute.ops.thread.test_hardware import FORMS
from tests.cpu.execute.ops.tile.building import Kernel, add, buffer, call, flag, load, number, region, text
from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.execute.compare.provenance import TracedStep
from tlcheck.execute.compare.sum_terms import is_addition
from tlcheck.execute.compare.trace import Traced, parting, place_of, trace
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.observe.tracer import Tracer, last_write
from tlcheck.execute.request import Request
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Alloc, Evaluate, Expr, Seq, Snapshot, Stmt, Store, While
from tlcheck.snapshot.walk import rebuild, statements
from tlcheck.verdicts.results import read_snapshot

REQUEST = Request(seeds=(0,))


def traced(snapshot: Snapshot, index: tuple[int, ...], depth: int = 8) -> Traced:
    return trace(snapshot, REQUEST, "B", index, place_of(snapshot, REQUEST, "B", index), depth)


def steps(step: TracedStep) -> Iterator[TracedStep]:
    yield step
    for source in step.sources:
        yield from steps(source)


def inputs(step: TracedStep) -> set[str]:
    return {found.element for found in steps(step) if found.input}


def test_a_product_comes_from_its_row_and_column_at_both_levels() -> None:
    found = traced(read_snapshot(RIGHT), (3, 5))
    assert found.first is None
    assert inputs(found.source) == inputs(found.lowered) == {"A[3, 63]", "W[63, 5]"}
    elements = [step.element for step in steps(found.source)]
    assert elements == ["B[3, 5]", "c[3, 5]", "a[3, 63]", "A[3, 63]", "w[63, 5]", "W[63, 5]", "c[3, 5]"]
    assert float(found.source.value) == float(found.lowered.value)


def test_blocks_that_add_to_an_element_are_counted_and_their_sum_said() -> None:
    saved = read_snapshot(RIGHT)
    found = traced(saved, (3, 5))
    place = place_of(saved, REQUEST, "B", (3, 5))
    other = trace(saved, replace(REQUEST, blocks=((1, 0, 0),)), "B", (3, 5), place, 8)
    assert (found.block, other.block) == ((0, 0, 0), (1, 0, 0))
    assert (found.sharing, other.sharing) == (((0, 0, 0), (1, 0, 0)), ((1, 0, 0),))
    product = next(step for step in steps(found.source) if step.element == "c[3, 5]")
    assert float(found.sums[0]) == float(found.sums[1]) == float(other.source.value) + float(product.value)


@pytest.mark.parametrize("cleared", [False, True])
def test_what_a_product_is_added_to_is_part_of_where_it_comes_from(cleared: bool) -> None:
    """The accumulator is filled with ones; of a product that clears it they are no part. A zero adds nothing."""
    saved = read_snapshot(RIGHT)

    def filled(old: Stmt, new: Stmt) -> Stmt:
        if isinstance(new, Store) and new.buffer.name == "c":
            return replace(new, value=Expr("broadcast", new.value.dtype, (Expr("float", "float32", (), 1.0),), 4))
        if isinstance(new, Evaluate) and new.value.value == "fill":
            return replace(new, value=replace(new.value, args=(new.value.args[0], Expr("float", "float32", (), 1.0))))
        if isinstance(new, Evaluate) and new.value.value == "gemm" and cleared:
            args = list(new.value.args)
            args[9] = Expr("int", "bool", (), 1)
            return replace(new, value=replace(new.value, args=tuple(args)))
        return new

    changed = {n: replace(f, body=rebuild(f.body, filled)) for n, f in saved.checkpoints.items()}
    found = traced(replace(saved, checkpoints=changed), (3, 5))
    before = [step.value for step in steps(found.source) if step.element == "c[3, 5]"][1:]
    assert before == ([] if cleared else ["1.0"])
    assert "1.0" in [step.value for step in steps(found.lowered) if step.element.startswith("c[")]
    assert found.agree != cleared


def test_a_lane_at_a_wrong_place_is_where_the_levels_part() -> None:
    found = traced(read_snapshot(WRONG), (0, 1))
    assert inputs(found.source) == {"A[0, 63]", "W[63, 1]"}
    assert found.first is not None
    assert inputs(found.lowered) != inputs(found.source)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_tree_that_ends_early_marks_nothing(depth: int) -> None:
    """Steps that are not shown may be right: the two part deeper."""
    found = traced(read_snapshot(WRONG), (0, 1), depth)
    assert not found.agree
    assert found.first is None


@pytest.mark.parametrize("early", [True, False])
def test_copies_land_as_early_or_as_late_as_they_may(early: bool) -> None:
    """Without the wait before a product, its copy is there only if it lands at once."""
    right = FORMS["gemm_nt"]
    broken = without_call(right.checkpoints["device-tir"], "mbarrier_wait_parity", 1)
    saved = replace(right, checkpoints={**right.checkpoints, "device-tir": broken})
    found = trace(saved, REQUEST, "C", (0, 0), 0, 2, early=early)
    assert found.agree == early


def stored(element: str, value: str, *sources: TracedStep) -> TracedStep:
    return TracedStep(element, value, Origin(None, ()), sources=sources)


def test_what_is_read_before_it_is_written_is_where_the_levels_part() -> None:
    """Each value as lowered is one that is there as written as well, elsewhere."""
    added, before = (TracedStep(name, value, input=True) for name, value in (("A[2]", "-1.0"), ("A[1]", "0.0")))
    summed = stored("A[1]", "3.0", before, TracedStep("A[0]", "3.0", input=True))
    written = stored("A[2]", "2.0", added, stored("s[0]", "3.0", summed))
    lowered = stored("A[2]", "-1.0", added, stored("s[128]", "0.0", before))
    assert parting(written, lowered) == (before, None)


def test_a_write_that_is_missing_is_where_the_levels_part() -> None:
    """The store is right at both levels; what it reads was written once more as written."""
    given = TracedStep("A[0]", "2.0", input=True)
    copied = stored("s[0]", "2.0", given)
    summed = stored("s[0]", "5.0", copied, TracedStep("A[1]", "3.0", input=True))
    stale = stored("s[0]", "2.0", given)
    written, lowered = stored("B[0]", "25.0", summed), stored("B[0]", "4.0", stale)
    assert parting(written, lowered) == (stale, summed)
    other = stored("s[1]", "3.0", TracedStep("A[1]", "3.0", input=True))
    wrong = stored("B[0]", "9.0", other)
    assert parting(stored("B[0]", "4.0", copied, other), wrong) == (wrong, None)


def test_an_equal_value_in_the_place_of_another_is_where_the_levels_part() -> None:
    """A step reads the first row twice: each value that it reads is one that is read as written, too."""
    rows = [TracedStep(f"X[{row}]", value, input=True) for row, value in enumerate(("2.0", "5.0"))]
    first, second = (stored("x[0]", row.value, row) for row in rows)
    again = stored("x[1]", "2.0", rows[0])
    written = stored("Y[1]", "7.0", stored("acc[0]", "7.0", stored("acc[0]", "2.0", first), second))
    lowered = stored("Y[1]", "4.0", stored("acc[0]", "4.0", stored("acc[0]", "2.0", first), again))
    assert parting(written, lowered) == (again, None)


@pytest.mark.parametrize(("step", "parts"), [(2, True), (0, False)])
def test_what_is_set_once_more_in_a_later_step_is_where_the_levels_part(step: int, parts: bool) -> None:
    """As written the accumulator is set before the loop over e; as lowered in its step: its value is right."""
    product = replace(stored("x[0]", "3.0", TracedStep("X[0]", "3.0", input=True)), origin=Origin(None, (("e", 2),)))
    once = stored("acc[0]", "1.0")
    again = replace(once, origin=Origin(None, (("e", step), ("i", 1))))
    written, lowered = (
        stored("Y[0]", value, stored("acc[0]", value, product, origin))
        for value, origin in (("10.0", once), ("4.0", again))
    )
    assert parting(written, lowered) == ((again, once) if parts else (lowered.sources[0], None))


@pytest.mark.parametrize(
    ("kind", "shown"), [("max", ["f[2, 3]"]), ("sum", ["f[2, 0]", "f[2, 3]", "f[2, 4]"]), ("min", ["f[2, 1]"])]
)
def test_a_reduction_comes_from_its_own_line(kind: str, shown: list[str]) -> None:
    """Of a sum the ends and the largest are shown, of a maximum the element that it is."""
    made = Kernel()
    source, target = made.tensor("A", "float32", [4, 5]), made.tensor("B", "float32", [4])
    tile, result = (
        made.tile("f", "float32", (4, 5), "local.fragment"),
        made.tile("r", "float32", (4,), "local.fragment"),
    )
    values = (3.0, -2.0, 1.0, 9.0, 4.0)
    stores = [Store(tile, (number(2), number(j)), Expr("float", "float32", (), v)) for j, v in enumerate(values)]
    clears = call("fill", region(tile), Expr("float", "float32", (), 0.0))
    reduced = call("reduce", region(tile), region(result), text(kind), number(1), flag(True))
    body = (clears, *stores, reduced, call("copy", region(result), region(target)))
    found = traced(made.snapshot(body, body), (2,))
    line = next(step for step in steps(found.source) if step.element == "r[2]")
    assert [step.element for step in line.sources] == shown
    assert source.name not in inputs(found.source)


def test_a_product_is_followed_where_it_counts() -> None:
    """The last columns of A are zero: what is made of them explains nothing."""
    made = Kernel()
    target = made.tensor("B", "float32", [16, 16])
    tiles = [made.tile(name, "float32", (16, 16)) for name in ("a", "w")]
    total = made.tile("c", "float32", (16, 16), "local.fragment")
    fills = [call("fill", region(tile), Expr("float", "float32", (), 1.0)) for tile in tiles]
    zero = call("fill", region(tiles[0], [0, 5], [16, 11]), Expr("float", "float32", (), 0.0))
    clear = call("fill", region(total), Expr("float", "float32", (), 0.0))
    no, one = flag(False), number(16)
    gemm = call("gemm", *(region(t) for t in (*tiles, total)), no, no, one, one, one, number(0), no)
    body = (*fills, zero, clear, gemm, call("copy", region(total), region(target)))
    product = next(s for s in steps(traced(made.snapshot(body, body), (3, 5)).source) if s.element == "c[3, 5]")
    assert [(step.element, step.value) for step in product.sources] == [
        ("a[3, 4]", "1.0"),
        ("w[4, 5]", "1.0"),
        ("c[3, 5]", "0.0"),
    ]


def test_what_lies_beyond_a_tensor_is_no_input() -> None:
    made = Kernel()
    source, target = made.tensor("A", "float32", np.ones(5)), made.tensor("B", "float32", [8])
    tile = made.tile("f", "float32", (8,))
    body = (call("copy", region(source, [0], [8]), region(tile)), call("copy", region(tile), region(target)))
    for element, given in ((4, {"A[4]"}), (6, set())):
        assert inputs(traced(made.snapshot(body, body), (element,)).source) == given


def test_what_a_statement_reads_twice_is_shown_once() -> None:
    saved = read_snapshot(RIGHT)
    lowered = saved.checkpoints["device-tir"]

    def doubled(old: Stmt, new: Stmt) -> Stmt:
        if not isinstance(new, Store) or new.buffer.name != "a":
            return new
        return replace(new, value=Expr("add", new.value.dtype, (new.value, new.value)))

    changed = replace(lowered, body=rebuild(lowered.body, doubled))
    found = traced(replace(saved, checkpoints={**saved.checkpoints, "device-tir": changed}), (3, 5))
    read = [step for step in steps(found.lowered) if step.element == "A[3, 63]"]
    assert [step.times for step in read] == [2]


def test_a_copy_that_is_left_out_is_poison_at_the_first_difference() -> None:
    saved = read_snapshot(RIGHT)
    lowered = saved.checkpoints["device-tir"]
    copy = next(s for s in statements(lowered.body) if isinstance(s, Store) and s.buffer.name == "a")
    broken = replace(lowered, body=without(lowered.body, copy))
    found = traced(replace(saved, checkpoints={**saved.checkpoints, "device-tir": broken}), (3, 5))
    assert found.first is not None
    assert found.first.is_poison


def test_poison_at_both_levels_is_traced_to_its_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The accumulator is filled at neither level. Nobody names an element."""
    saved = read_snapshot(RIGHT)
    changed = dict(saved.checkpoints)
    for name in ("source", "device-tir"):
        body = changed[name].body
        fill = next(
            s
            for s in statements(body)
            if (isinstance(s, Store) and s.buffer.name == "c") or (isinstance(s, Evaluate) and s.value.value == "fill")
        )
        changed[name] = replace(changed[name], body=without(body, fill))
    file = tmp_path / "unset.snapshot.json"
    file.write_text(codec.dumps(replace(saved, checkpoints=changed)))
    assert main(["trace", str(file)]) == 0
    out = capsys.readouterr().out
    assert "    B[0, 0] = poison: never written" in out
    assert "        c[0, 0] = poison: never written   nothing wrote it\n" in out
    assert out.endswith("both levels have the same value\n")


def without(stmt: Stmt, gone: Stmt) -> Stmt:
    """The statement with another one left out."""
    if stmt is gone:
        return Evaluate(Expr("int", "int32", (), 0))
    fields = {name: getattr(stmt, name) for name in ("body", "then", "orelse") if hasattr(stmt, name)}
    changed = {
        name: tuple(without(s, gone) for s in value) if isinstance(stmt, Seq) else without(value, gone)
        for name, value in fields.items()
        if value is not None
    }
    return replace(stmt, **changed) if changed else stmt  # type: ignore[arg-type]


def test_what_is_not_there_is_said() -> None:
    saved = read_snapshot(RIGHT)
    with pytest.raises(UsageError, match=r"no tensor Q; it has A, W, B"):
        place_of(saved, REQUEST, "Q", (0,))
    with pytest.raises(UsageError, match=r"B has the shape \[64, 64\]"):
        place_of(saved, REQUEST, "B", (64, 0))


def leaves(element: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what an element is made of in the end."""
    if not element["sources"]:
        yield element
    for source in element["sources"]:
        yield from leaves(source)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(RIGHT.relative_to(Path.cwd()))
    assert main(["trace", file, "--element", "B[3, 5]"]) == 0
    out = capsys.readouterr().out
    assert "cases/atomics.py:" in out
    assert "A[3, 63] = " in out
    assert "both levels have the same value" in out
    assert main(["trace", file, "--element", "B[3, 5]", "--format", "json"]) == 0
    (run,) = published(capsys.readouterr().out, "trace")["runs"]
    assert run["agree"]
    assert "A[3, 63]" in {source["element"] for source in leaves(run["lowered"])}
    assert main(["trace", file, "--element", "B"]) == 2
    assert "expected a tensor and an index" in capsys.readouterr().err
    assert main(["trace", file, "--element", "B[99, 0]"]) == 2
    assert capsys.readouterr().err == "tlcheck: error: --element: B has the shape [64, 64]\n"


@pytest.mark.parametrize(
    ("written", "adds"),
    [
        (call("call_extern", text("AtomicAddx2"), number(0), number(1)), True),  # how kernels for 0.1.7 are written
        (call("atomic_store_elem_op", number(0), number(1)), True),
        (call("atomicadd", number(0), number(1)), True),
        (call("ptx_cp_async", number(0), number(1), number(4)), False),
        (call("call_extern", text("expf"), number(0)), False),
    ],
)
def test_what_an_atomic_wrote_other_blocks_may_write(written: Evaluate, adds: bool) -> None:
    assert is_addition(written) == adds


def _counted(kernel: Kernel) -> tuple[Stmt, ...]:
    """A variable counts to 2 in a loop."""
    count = buffer("k", "int32", (1,), "local.var")
    counting = Store(count, (number(0),), add(load(count, 0), 1))
    asks = Expr("lt", "bool", (load(count, 0), number(2)))
    return Alloc(count), Store(count, (number(0),), number(0)), While(asks, counting)


def test_a_constant_behind_a_while_loop_is_not_made_of_what_the_loop_asks() -> None:
    kernel = Kernel(threads=1)
    out = kernel.tensor("B", "int32", (1,))
    body = (*_counted(kernel), Store(out, (number(0),), number(7)))
    found = traced(kernel.snapshot(body, body), (0,)).source
    assert (found.value, found.sources) == ("7", ())


def test_an_atomic_of_the_first_element_is_not_the_last_store_of_a_variable() -> None:
    """Both places are the number 0, which is one object."""
    kernel = Kernel(threads=1)
    out, s = kernel.tensor("B", "int32", (1,)), kernel.tile("s", "int32", (1,), "shared")
    element = Expr("call", "handle", (load(s, 0),), "address_of")
    atomic = replace(call("atomic_add_elem_op", element, number(5)), line=9)
    before, after = Store(s, (number(0),), number(1)), Store(out, (number(0),), load(s, 0))
    body = (before, *_counted(kernel), atomic, after)
    found = traced(kernel.snapshot(body, body), (0,)).source
    assert [step.value for step in steps(found)][:2] == ["6", "6"]
    assert found.sources[0].origin is not None
    assert found.sources[0].origin.stmt is atomic


def _last_written(*body: Stmt, kernel: Kernel) -> int:
    """The line of the statement that wrote an element of B last, in a kernel that is lowered to itself."""
    found = traced(kernel.snapshot(body, body), (3,))
    lines = {step.origin.stmt.line for step in (found.source, found.lowered) if step.origin and step.origin.stmt}
    assert len(lines) == 1
    return lines.pop()


@pytest.mark.parametrize("set_first", [True, False])
def test_of_two_stores_into_an_element_the_second_one_is_told(set_first: bool) -> None:
    """Also where both store what nothing has written."""
    kernel = Kernel()
    a, b = (kernel.tensor(name, "float32", (32,)) for name in "AB")
    s = kernel.tile("s", "float32", (32,))
    first = [Store(s, (kernel.tx,), load(a, kernel.tx), line=4)] if set_first else []
    twice = [Store(b, (kernel.tx,), load(s, kernel.tx), line=n) for n in (5, 6)]
    assert _last_written(*first, *twice, kernel=kernel) == 6


def test_of_two_operators_that_write_one_region_the_second_one_is_told() -> None:
    """Both have the same object for the places that they write, as a copy has where it is waited for."""
    kernel = Kernel()
    a, b = (kernel.tensor(name, "float32", (32,)) for name in "AB")
    copies = [call("copy", region(a), region(b)) for _ in range(2)]
    machine = kernel.machine(*copies)
    asked, places = last_write(machine, "B", 0, 3), np.arange(32)
    tracer = Tracer(machine, [asked])
    tracer.allocated(asked.cell.root, machine.pages("B"))
    for machine.state.at in (*copies, call("ptx_wait_group", number(0))):
        tracer.put(machine.pages("B"), places, 1.0, None)
    assert tracer.found[asked].origin.stmt is copies[1]


def test_of_what_is_added_to_what_nothing_wrote_the_first_one_is_told() -> None:
    kernel = Kernel()
    a, b = (kernel.tensor(name, "float32", (32,)) for name in "AB")
    s = kernel.tile("s", "float32", (32,))
    sums = [
        Store(b, (kernel.tx,), Expr("add", "float32", (load(b, kernel.tx), load(other, kernel.tx))), line=n)
        for n, other in ((5, s), (6, a))
    ]
    assert _last_written(*sums, kernel=kernel) == 5
