"""Test where a wrong output begins: the first access in which lowered differs from source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, region, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.counterparts import Counterparts
from tlcheck.execute.compare.descent import Descent, Parting
from tlcheck.execute.compare.equal_steps import unlike
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.origin import ValueOrigin, _Search, origin_of
from tlcheck.execute.compare.provenance import TracedStep
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.request import LOWERED, SOURCE, Request
from tlcheck.snapshot.ir import Alloc, Bind, Buffer, Expr, For, Function, If, Seq, Snapshot, Stmt, Store
from tlcheck.snapshot.walk import statements
from tlcheck.verdicts.judging import verdicts_of
from tlcheck.verdicts.origins import origin_in_words
from tlcheck.verdicts.results import read_snapshot

WRONG = Path(__file__).parents[3] / "fixtures" / "wrong"


def origin(snapshot: Snapshot, executed: Execution | None = None) -> ValueOrigin | None:
    execution = executed or execute(snapshot, Request())
    output = next(o for o in execution.outputs if o.difference is not None)
    assert output.difference is not None
    return origin_of(snapshot, Request(), output.name, output.difference)


def test_a_buffer_is_overwritten_through_the_name_of_another() -> None:
    right = read_snapshot(WRONG.parent / "era" / "annotated_gemm-0.1.9.snapshot.json")
    lowered = right.checkpoints[LOWERED]
    shared = [
        s.buffer for s in statements(lowered.body) if isinstance(s, Alloc) and s.buffer.scope.startswith("shared")
    ]
    overlapping = replace(lowered, places=tuple((buffer.data, 0) for buffer in shared))
    snapshot = replace(right, checkpoints={**right.checkpoints, LOWERED: overlapping})
    found = origin(snapshot)
    assert found is not None
    assert found.other is not None
    assert (found.kind, found.access.buffer, found.other.buffer) == ("overwritten", "a", "w")
    assert origin_in_words(snapshot, found).words == (
        "a[0, 0] is read (TIR line 25) with the value that w[0, 0] stored (TIR line 12): "
        "both lie at bytes 0 to 8,191 of the shared memory since tl.MergeSharedMemoryAllocations"
    )


@pytest.mark.parametrize("name", [pytest.param("wait-0.1.9", marks=pytest.mark.slow), "short_wait-0.1.9"])
def test_a_tile_is_read_while_its_copy_is_under_way(name: str) -> None:
    snapshot = read_snapshot(WRONG / f"{name}.snapshot.json")
    execution = execute(snapshot, Request())
    found = origin(snapshot, execution)
    assert found is not None
    assert (found.kind, found.access.buffer, found.access.index) == ("early", "a", (0, 0))
    words = origin_in_words(snapshot, found, execution.races).words
    assert words.startswith("a[0, 0] is read")
    assert words.endswith("is under way: between the two a wait for the copy is missing")


def test_elements_that_are_never_stored_are_counted() -> None:
    snapshot = read_snapshot(WRONG / "loop-0.1.15.snapshot.json")
    found = origin(snapshot)
    assert found is not None
    assert (found.kind, found.access.index, found.count) == ("unwritten", (100,), 156)
    told = origin_in_words(snapshot, found)
    assert told.line == 63
    assert told.words == (
        "C[100] is never stored, which the source does at line 63, nor are 155 other elements: "
        "its store stands in `if tx < 100` (TIR line 7)"
    )


@pytest.mark.parametrize(
    ("name", "kind", "buffer", "line", "other"),
    [
        ("sums-0.1.9", "early", "O", 0, 0),  # of a release whose snapshot has no lines
        ("moved-0.1.15", "early", "row", 380, 383),
        ("nested-0.1.15", "overwritten", "c", 259, 0),
        ("skipped-0.1.15", "unwritten", "c", 214, 208),
        ("merged-0.1.12", "unguarded", "B", 57, 53),
        ("neighbour-0.1.12", "other-index", "a", 193, 193),
        ("lower-0.1.12", "other-index", "s", 130, 129),
        ("batched-0.1.15", "incomplete", "r", 545, 544),
        ("safe-0.1.12", "other-value", "s", 115, 0),
    ],
)
def test_the_first_access_that_differs_is_named_with_its_lines(
    name: str, kind: str, buffer: str, line: int, other: int
) -> None:
    snapshot = read_snapshot(WRONG / f"{name}.snapshot.json")
    found = origin(snapshot)
    assert found is not None
    told = origin_in_words(snapshot, found)
    assert (told.kind, told.buffers[0], told.line, told.other_line) == (kind, buffer, line, other)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("skipped-0.1.15", "its store stands in `if 0 < bx` (TIR line 21)"),
        ("nested-0.1.15", "in step 1 of the loop `_`; the source stores it once, before that loop"),
        ("neighbour-0.1.12", "a[0] is read at line 193 (thread 0, TIR line 8) where the source reads a[1]"),
    ],
)
def test_what_differs_is_said(name: str, words: str) -> None:
    snapshot = read_snapshot(WRONG / f"{name}.snapshot.json")
    found = origin(snapshot)
    assert found is not None
    assert words in origin_in_words(snapshot, found).words


def test_a_read_that_nothing_orders_is_told_as_that() -> None:
    """The second tile lands before the first is read: that it is another tile follows from the order."""
    snapshot = read_snapshot(WRONG / "replaced-0.1.15.snapshot.json")
    execution = execute(snapshot, Request())
    output = next(o for o in execution.outputs if o.difference is not None)
    assert output.difference is not None
    found = origin_of(snapshot, Request(), output.name, output.difference, execution.races)
    assert found is not None
    assert (found.kind, found.access.buffer) == ("unordered", "s")
    blind = origin_of(snapshot, Request(), output.name, output.difference)
    assert blind is not None
    assert blind.kind == "late"


@pytest.mark.parametrize(
    "name", [pytest.param("wait-0.1.9", marks=pytest.mark.slow), "replaced-0.1.15", "store-0.1.7.post3"]
)
def test_one_cause_is_one_finding(name: str) -> None:
    claims = verdicts_of(read_snapshot(WRONG / f"{name}.snapshot.json"), Request()).claims
    assert [claim.verdict for claim in claims if not claim.is_clean] == ["refuted"]


@pytest.mark.parametrize(("extent", "named"), [(256, "s"), (64, "f")])
def test_a_write_behind_a_copy_is_one_of_the_buffer_that_it_writes(extent: int, named: str) -> None:
    """`f` was copied to `s`, then the lowered kernel stores to `s`: its element is f's, if both have one shape."""
    fragment, shared = buffer("f", 256), buffer("s", extent)
    store = Store(shared, (Expr("int", "int32", (), 64),), Expr("float", "float32", (), 31.0))
    source = Function("f", (), (), (), Seq((Alloc(fragment), Alloc(shared), store)))
    search = _Search.__new__(_Search)
    search._snapshot = replace(read_snapshot(WRONG / "loop-0.1.15.snapshot.json"), checkpoints={SOURCE: source})
    own, step = (TracedStep(f"{name}[64]", "31.0") for name in ("f", "s"))
    access = search._made_by(own, step, Parting("unguarded", step, own, stmt=store))
    assert (access.buffer, access.index, access.source) == (named, (64,), store)


def buffer(name: str, extent: int) -> Buffer:
    return Buffer(name, "float32", (Expr("int", "int32", (), extent),), "shared", Expr("var", "handle", (), name))


@pytest.mark.parametrize(("stores", "kind"), [((0,), "unwritten"), ((1, 0), "overwritten"), ((0, 1), "")])
def test_only_what_was_written_is_overwritten(stores: tuple[int, ...], kind: str) -> None:
    """Two tiles lie in one memory as lowered: what the other one left there may be all that there is."""
    kernel = Kernel(threads=32)
    a, b, out = (kernel.tensor(name, "float32", (32,)) for name in "ABC")
    other, tile = (kernel.tile(name, "float32", (32,), "shared") for name in "ts")
    large = Expr("add", "float32", (load(a, kernel.tx), Expr("float", "float32", (), 1e5)))
    both = Store(other, (kernel.tx,), large), Store(tile, (kernel.tx,), load(b, kernel.tx))
    read = Store(out, (kernel.tx,), load(tile, kernel.tx))
    snapshot = kernel.snapshot((*both, read), (*(both[n] for n in stores), read))
    places = tuple((each.data, 0) for each in (other, tile))
    lowered = replace(snapshot.checkpoints[LOWERED], places=places)
    snapshot = replace(snapshot, checkpoints={**snapshot.checkpoints, LOWERED: lowered})
    execution = execute(snapshot, Request())
    if not kind:
        assert [output.verdict for output in execution.outputs] == ["agreed"]
        return
    found = origin(snapshot, execution)
    assert found is not None
    assert (found.kind, found.access.buffer, found.writes) == (kind, "s", False)


def test_an_element_that_is_read_instead_of_another_one_is_told_at_its_read() -> None:
    """The value is that of a later store, which the lowered kernel makes where the source does."""
    kernel = Kernel(threads=32)
    a, b = kernel.tensor("A", "float32", (32,)), kernel.tensor("B", "float32", (32,))
    tile, copied, renamed = (kernel.tile(name, "float32", (64,), "shared") for name in ("s", "t", "u"))

    def body(offset: int, copy: Buffer) -> tuple[Stmt, ...]:
        cleared = Store(tile, (kernel.tx,), Expr("float", "float32", (), 0.0))
        twice = Expr("add", "float32", (load(a, kernel.tx), load(a, kernel.tx)))
        stored = Store(tile, (add(kernel.tx, 32),), twice)
        read = Store(copy, (kernel.tx,), load(tile, add(kernel.tx, offset)))
        return cleared, stored, read, Store(b, (kernel.tx,), load(copy, kernel.tx))

    kernel.tiles = [tile, copied]
    source = kernel.snapshot(body(0, copied), ())
    kernel.tiles = [tile, renamed]
    lowered = kernel.snapshot((), body(32, renamed)).checkpoints[LOWERED]
    snapshot = replace(source, checkpoints={**source.checkpoints, LOWERED: lowered})
    found = origin(snapshot)
    assert found is not None
    assert found.other is not None
    reads = [stmt for stmt in statements(snapshot.checkpoints[LOWERED].body) if isinstance(stmt, Store)][2]
    place = found.access.index[0]
    assert (found.kind, found.writes, found.access.buffer, found.other.buffer) == ("other-index", False, "s", "s")
    assert (found.other.index, found.access.stmt) == ((place - 32,), reads)


@pytest.mark.parametrize("steers", [False, True])
def test_a_buffer_behind_another_output_is_no_origin(steers: bool) -> None:
    """The lowered kernel does not fill a tile, and B is wrong by itself, unless the tile decides what it is."""
    kernel = Kernel(threads=32)
    a, b, c = (kernel.tensor(name, "float32", (32,)) for name in "ABC")
    tile, one = kernel.tile("s", "float32", (32,), "shared"), Expr("float", "float32", (), 1.0)
    fill, read = Store(tile, (kernel.tx,), load(a, kernel.tx)), Store(c, (kernel.tx,), load(tile, kernel.tx))
    is_one = Expr("lt", "bool", (load(tile, kernel.tx), Expr("float", "float32", (), 99.0)))

    def body(value: Expr) -> Stmt:
        stored = Store(b, (kernel.tx,), value)
        return If(is_one, stored) if steers else stored

    more = Expr("add", "float32", (load(a, kernel.tx), one))
    snapshot = kernel.snapshot((fill, read, body(load(a, kernel.tx))), (read, body(more)))
    wrong = next(o for o in execute(snapshot, Request()).outputs if o.name == "B").difference
    assert wrong is not None
    found = origin_of(snapshot, Request(), "B", wrong)
    assert found is not None
    assert found.access.buffer == ("s" if steers else "B")


def test_a_zero_of_another_buffer_is_no_store_that_comes_again() -> None:
    """A sum is cleared once, and a tile is filled in each step of the loop; both may have stored zeros."""
    kernel, k = Kernel(threads=32), variable("k")
    a, tile = kernel.tensor("A", "float32", (4, 32)), kernel.tile("s", "float32", (32,), "shared")
    total, zero = kernel.tile("c", "float32", (1,), "local"), Expr("float", "float32", (), 0.0)

    def written() -> tuple[Stmt, ...]:
        fill = Store(tile, (kernel.tx,), load(a, k, kernel.tx))
        term = Store(total, (number(0),), add(load(total, 0), load(tile, kernel.tx)))
        return Store(total, (number(0),), zero), For(k, number(0), number(4), "serial", Seq((fill, term)))

    snapshot = kernel.snapshot(written(), written())
    source, lowered = (snapshot.checkpoints[at] for at in (SOURCE, LOWERED))
    own, other = ([stmt for stmt in statements(f.body) if isinstance(stmt, Store)] for f in (source, lowered))
    descent = Descent(Counterparts(source, lowered), {}, lambda step: None)
    cleared = TracedStep("c[0]", "0.0", Origin(own[0]))
    wanted = TracedStep("c[0]", "5.0", Origin(own[2], (("k", 3),)), sources=(cleared,))

    def parting(again: Store, element: str) -> Parting | None:
        stored = TracedStep(element, "0.0", Origin(again, (("k", 3),)))
        got = TracedStep("c[0]", "0.0", Origin(other[2], (("k", 3),)), sources=(stored,))
        return descent.parting(wanted, got)

    once_more, tile_of_zeros = parting(other[0], "c[0]"), parting(other[1], "s[0]")
    assert once_more is not None
    assert once_more.again == ("k", 3)
    assert tile_of_zeros is None or tile_of_zeros.again is None


@pytest.mark.parametrize(
    ("kept", "writers", "left", "name"), [((0, 0), (0, 1), (0, 1), "t"), ((1, 5), (1, 1), (1, 0), "s")]
)
def test_an_operand_in_shared_memory_is_of_the_buffer_that_its_store_names(
    kept: tuple[int, int], writers: tuple[int, int], left: tuple[int, int], name: str
) -> None:
    """Shared memory hides which operand of the source the lowered one is: where both have one value, its store tells.

    The operand of another value is `s` where the store to `t` has left both.
    """
    kernel = Kernel(threads=32)
    a, out = kernel.tensor("A", "float32", (32,)), kernel.tensor("C", "float32", (32,))
    tiles = [kernel.tile(name, "float32", (32,), "shared") for name in "st"]
    both = Expr("add", "float32", tuple(load(tile, kernel.tx) for tile in tiles))
    written = *(Store(tile, (kernel.tx,), load(a, kernel.tx)) for tile in tiles), Store(out, (kernel.tx,), both)
    snapshot = kernel.snapshot(written, written)
    source, lowered = (snapshot.checkpoints[at] for at in (SOURCE, LOWERED))
    stores, others = ([s for s in statements(f.body) if isinstance(s, Store)] for f in (source, lowered))
    own = tuple(
        TracedStep(f"{tile}[0]", f"{value}.0", Origin(stores["st".index(tile)]))
        for tile, value in zip("ts", kept, strict=True)
    )
    got = tuple(TracedStep(f"m[{n}]", f"{left[n]}.0", Origin(others[by])) for n, by in enumerate(writers))
    descent = Descent(Counterparts(source, lowered), {}, lambda step: None, (), lambda own, step: own.element[0] + "1")
    found = descent.parting(
        TracedStep("C[0]", "0.0", Origin(stores[2]), sources=own),
        TracedStep("C[0]", "1.0", Origin(others[2]), sources=got),
    )
    assert found is not None
    assert (found.kind, found.lowered.element, found.source.element) == (
        "other-index", f"{name}[{name}1]", f"{name}[0]"
    )  # fmt: skip


def test_the_buffers_behind_an_output_are_those_of_its_values_and_of_conditions() -> None:
    kernel = Kernel(threads=32)
    b, c = kernel.tensor("B", "float32", (32,)), kernel.tensor("C", "float32", (32,))
    s, t, u = (kernel.tile(name, "float32", (32,), "shared") for name in "stu")
    copied = Store(s, (kernel.tx,), load(t, kernel.tx)), Store(b, (kernel.tx,), load(s, kernel.tx))
    function = kernel.function(*copied, Store(c, (kernel.tx,), load(u, kernel.tx)))
    found = Counterparts(function, function)
    assert found.behind("B") == {"B", "s", "t"}
    assert found.behind("C") == {"C", "u"}
    asked = If(Expr("lt", "bool", (load(u, kernel.tx), Expr("float", "float32", (), 0.0))), Seq(copied))
    function = kernel.function(asked)
    assert Counterparts(function, function).behind("B") == {"B", "s", "t", "u"}


def test_a_partial_result_of_a_sum_is_not_another_buffers_value() -> None:
    """The threads of a sum exchange partial results through shared memory. Another buffer's store there is one."""
    kernel = Kernel(threads=32)
    a, tile = kernel.tensor("A", "float32", (32,)), kernel.tile("s", "float32", (32,), "shared")
    total = kernel.tile("c", "float32", (1,), "local")
    written = Store(tile, (kernel.tx,), load(a, kernel.tx)), Store(total, (number(0),), load(tile, kernel.tx))
    snapshot = kernel.snapshot(written, written)
    source, lowered = (snapshot.checkpoints[at] for at in (SOURCE, LOWERED))
    own, (filled, summed) = ([s for s in statements(f.body) if isinstance(s, Store)] for f in (source, lowered))
    descent = Descent(Counterparts(source, lowered), {}, lambda step: None)
    term = TracedStep("A[3]", "2.0", input=True)
    wanted = TracedStep("c[0]", "5.0", Origin(own[1]), sources=(term,))

    def kind(by: Store, element: str) -> str:
        got = TracedStep("c[0]", "9.0", Origin(summed), sources=(TracedStep(element, "4.0", Origin(by)),))
        parting = descent.parting(wanted, got)
        assert parting is not None
        return parting.kind

    assert kind(summed, "workspace[3]") == "computed"
    assert kind(summed, "c[0]") == "computed"
    assert kind(filled, "workspace[3]") == "overwritten"
    assert kind(filled, "s[3]") == "computed", "a buffer of its own cannot lie in a tensor's memory"


def test_operands_of_one_value_go_together_in_their_places() -> None:
    zeros = TracedStep("s[1, 0]", "0.0"), TracedStep("s[3, 6]", "0.0")
    got = TracedStep("merged[0]", "-1.0"), TracedStep("merged[60]", "0.0")
    source, lowered = TracedStep("f[0]", "0.0", sources=zeros), TracedStep("f[0]", "-1.0", sources=got)
    assert unlike(source, lowered) == [zeros[0]]
    assert unlike(lowered, source) == [got[0]]


@pytest.mark.parametrize("name", ["finalize_reducer", "finalize_reducer_v2"])
def test_what_a_reducer_leaves_is_known_by_both_names_of_its_end(name: str) -> None:
    """One leaves the result in the reducer, the other one in registers."""
    kernel = Kernel(threads=32)
    reducer, result = (kernel.tile(tile, "float32", (32,), "local.fragment") for tile in "rf")
    ends = call(name, region(reducer), *([region(result)] if name.endswith("v2") else []))
    function = kernel.function(ends)
    assert ("f" if name.endswith("v2") else "r") in Counterparts(function, function).reducers


def test_registers_are_no_operand_in_shared_memory_of_their_value() -> None:
    own = TracedStep("f[4]", "0"), TracedStep("s[1]", "0.0")
    got = TracedStep("merged[44]", "3.0"), TracedStep("f[0]", "0")
    source, lowered = TracedStep("f[4]", "0", sources=own), TracedStep("f[0]", "3", sources=got)
    assert unlike(source, lowered) == [own[1]]
    assert unlike(lowered, source) == [got[0]]


def test_merged_memory_that_a_copy_fills_is_the_buffer_that_it_fills_in_the_source() -> None:
    kernel = Kernel(threads=32)
    a, b = (kernel.tensor(name, "float32", (32,)) for name in "AB")
    tile = kernel.tile("s", "float32", (32,), "shared")
    body = Store(tile, (kernel.tx,), load(a, kernel.tx)), Store(b, (kernel.tx,), load(tile, kernel.tx))
    snapshot = kernel.snapshot(body, body)
    source, lowered = (snapshot.checkpoints[at] for at in (SOURCE, LOWERED))
    own, other = ([stmt for stmt in statements(f.body) if isinstance(stmt, Store)] for f in (source, lowered))
    descent = Descent(Counterparts(source, lowered), {"s": {("A", "4"): "4"}}, lambda step: None)

    def step(name: str, place: int, writers: list[Store]) -> TracedStep:
        leaf = TracedStep(f"A[{place}]", f"{place}.0", input=True)
        filled = TracedStep(name, f"{place}.0", Origin(writers[0]), sources=(leaf,))
        return TracedStep("B[5]", f"{place}.0", Origin(writers[1]), sources=(filled,))

    parting = descent.parting(step("s[5]", 5, own), step("merged[16]", 4, other))
    assert parting is not None
    assert (parting.kind, parting.lowered.element, parting.source.element) == ("other-index", "s[4]", "s[5]")


def test_a_result_that_equals_an_operand_is_no_copy_of_it() -> None:
    """3 - 0 is 3: in merged memory, too, it is what its own store writes, and that store is not missing."""
    kernel = Kernel(threads=32)
    a, b = (kernel.tensor(name, "float32", (32,)) for name in "AB")
    s, u = (kernel.tile(name, "float32", (32,), "shared") for name in "su")
    less = Expr("sub", "float32", (load(s, kernel.tx), load(s, number(0))))
    body = (
        *(Store(*each) for each in ((s, (kernel.tx,), load(a, kernel.tx)), (u, (kernel.tx,), less))),
        Store(b, (kernel.tx,), load(u, kernel.tx)),
    )
    snapshot = kernel.snapshot(body, body)
    source, lowered = (snapshot.checkpoints[at] for at in (SOURCE, LOWERED))
    own, other = ([stmt for stmt in statements(f.body) if isinstance(stmt, Store)] for f in (source, lowered))
    descent = Descent(Counterparts(source, lowered), {}, lambda step: None)

    def step(names: str, values: tuple[int, int, int], stores: list[Store]) -> TracedStep:
        operands = tuple(TracedStep(f"{names[0]}[{n}]", f"{values[n]}.0", Origin(stores[0])) for n in (1, 2))
        made = TracedStep(f"{names[1]}[0]", f"{values[0]}.0", Origin(stores[1]), sources=operands)
        return TracedStep("B[0]", f"{values[0]}.0", Origin(stores[2]), sources=(made,))

    parting = descent.parting(step("su", (1, 3, 2), own), step("mm", (3, 3, 0), other))
    assert parting is not None
    assert (parting.kind, parting.source.element) != ("unwritten", "u[0]")


def test_a_copy_into_a_part_of_merged_memory_is_one_of_both_levels() -> None:
    """A store that is missing is told where its value is read, not as another value of the copy behind that."""
    kernel = Kernel(threads=32)
    a, b = (kernel.tensor(name, "float32", (32,)) for name in "AB")
    s, u = (kernel.tile(name, "float32", (32,), "shared") for name in "su")
    clear, added = Store(s, (kernel.tx,), number(0)), Store(s, (kernel.tx,), load(a, kernel.tx))
    copy, last = Store(u, (kernel.tx,), load(s, kernel.tx)), Store(b, (kernel.tx,), load(u, kernel.tx))
    source = kernel.function(clear, added, copy, last)
    parts = [Bind(tile.data, Expr("var", "handle", (), "merged", 77)) for tile in (s, u)]
    lowered = replace(source, body=Seq((*parts, clear, copy, last)))
    descent = Descent(Counterparts(source, lowered), {}, lambda step: None)
    sum_ = TracedStep("s[0]", "2.0", Origin(added), sources=(TracedStep("A[0]", "2.0", input=True),))
    wanted = TracedStep("u[0]", "2.0", Origin(copy), sources=(sum_,))
    got = TracedStep("merged[0]", "0.0", Origin(copy), sources=(TracedStep("merged[32]", "0.0", Origin(clear)),))
    found = descent.parting(
        TracedStep("B[0]", "2.0", Origin(last), sources=(wanted,)),
        TracedStep("B[0]", "0.0", Origin(last), sources=(got,)),
    )
    assert found is not None
    assert (found.kind, found.source.element, found.reader) == ("unwritten", "s[0]", got)


def test_a_sum_with_zero_is_no_copy_through_a_buffer_that_only_the_source_has() -> None:
    kernel, merged = Kernel(threads=32), Kernel(threads=32)
    tensors = [[k.tensor(name, "float32", (32,)) for name in "AB"] for k in (kernel, merged)]
    s, u = (kernel.tile(name, "float32", (32,), "shared") for name in "su")
    m = merged.tile("m", "float32", (64,), "shared")

    def body(k: Kernel, to: Sequence[Buffer], by: Sequence[Buffer]) -> tuple[Stmt, ...]:
        made = Expr("add", "float32", (load(to[1], k.tx), load(to[0], k.tx)))
        stores = (Store(to[0], (k.tx,), load(by[0], k.tx)), Store(to[1], (k.tx,), made))
        return *stores, Store(by[1], (k.tx,), load(to[1], k.tx))

    source = kernel.function(*body(kernel, (s, u), tensors[0]))
    lowered = merged.function(*body(merged, (m, m), tensors[1]))
    own, other = ([stmt for stmt in statements(f.body) if isinstance(stmt, Store)] for f in (source, lowered))
    descent = Descent(Counterparts(source, lowered), {}, lambda step: None)

    def step(names: str, values: tuple[int, int], stores: list[Store]) -> TracedStep:
        operands = tuple(TracedStep(f"{names[0]}[{n}]", f"{values[n]}.0", Origin(stores[0])) for n in (0, 1))
        made = TracedStep(f"{names[1]}[0]", f"{values[1]}.0", Origin(stores[1]), sources=operands)
        return TracedStep("B[0]", f"{values[1]}.0", Origin(stores[2]), sources=(made,))

    parting = descent.parting(step("su", (0, 5), own), step("mm", (0, 2), other))
    assert parting is None or parting.source.element != "s[1]" or parting.source_reader is not None


def test_a_store_of_staged_values_is_no_store_of_a_constant() -> None:
    kernel = Kernel(threads=32)
    a, s = kernel.tensor("A", "int64", (32,)), kernel.tile("s", "int32", (32,), "shared")
    made = add(load(s, kernel.tx), Expr("cast", "int32", (load(a, kernel.tx),)))
    clear = Store(s, (kernel.tx,), number(0))
    source = kernel.function(clear, Store(s, (kernel.tx,), made))
    staging = kernel.tile("s_local_cast", "int32", (1,), "local")
    staged = Store(s, (kernel.tx,), load(staging, 0))
    lowered = kernel.function(clear, Store(staging, (number(0),), made), staged)
    found = Counterparts(source, lowered).only(staged)
    assert isinstance(found, Store)
    assert found.value is made


@pytest.mark.parametrize("there", ["", "1"])
@pytest.mark.parametrize(
    ("read", "stored", "kind"),
    [((), (), "late"), ((("k", 1),), (("k", 1),), "late"), ((("k", 1),), (("k", 0),), "other-index")],
)
def test_a_read_after_a_write_that_comes_later_in_the_source_is_late(
    read: tuple[tuple[str, int], ...], stored: tuple[tuple[str, int], ...], kind: str, there: str
) -> None:
    """The source sets s, reads it, and sets it again. read, stored: loops around the read, and the write as lowered.
    there: another element of s that has the same value.
    """
    kernel, k = Kernel(threads=32), variable("k")
    a, b = (kernel.tensor(name, "float32", (32,)) for name in "AB")
    s, out = kernel.tile("s", "float32", (32,), "shared"), kernel.tensor("C", "float32", (32,))
    steps = Store(out, (kernel.tx,), load(s, kernel.tx)), Store(s, (kernel.tx,), load(b, kernel.tx))
    written = Store(s, (kernel.tx,), load(a, kernel.tx)), For(k, number(0), number(2), "serial", Seq(steps))
    snapshot = kernel.snapshot(written, written)
    source, lowered = (snapshot.checkpoints[at] for at in (SOURCE, LOWERED))
    own, other = ([stmt for stmt in statements(f.body) if isinstance(stmt, Store)] for f in (source, lowered))
    descent = Descent(Counterparts(source, lowered), {}, lambda step: None, (), lambda own, step: there)
    wanted, got = TracedStep("s[0]", "1.0", Origin(own[0])), TracedStep("s[0]", "2.0", Origin(other[2], stored))
    found = descent.parting(
        TracedStep("C[0]", "1.0", Origin(own[1], read), sources=(wanted,)),
        TracedStep("C[0]", "2.0", Origin(other[1], read), sources=(got,)),
    )
    assert found is not None
    assert found.kind == kind


def test_a_write_of_another_buffer_does_not_stand_for_one_that_is_missing() -> None:
    """As lowered, B is made of r at once, where the source has a copy of r in f."""
    kernel = Kernel(threads=32)
    a, b = (kernel.tensor(name, "float32", (32,)) for name in "AB")
    r, f = (kernel.tile(name, "float32", (1,), "local") for name in "rf")
    pairs = (r, load(a, kernel.tx)), (f, load(r, 0))
    written = *(Store(to, (number(0),), value) for to, value in pairs), Store(b, (kernel.tx,), load(f, 0))
    snapshot = kernel.snapshot(written, written)
    source, lowered = (snapshot.checkpoints[at] for at in (SOURCE, LOWERED))
    own, other = ([stmt for stmt in statements(each.body) if isinstance(stmt, Store)] for each in (source, lowered))
    descent = Descent(Counterparts(source, lowered), {}, lambda step: None)
    set_ = TracedStep("r[0]", "1.0", Origin(own[0]))
    found = descent.parting(
        TracedStep(
            "B[0]", "1.0", Origin(own[2]), sources=(TracedStep("f[0]", "1.0", Origin(own[1]), sources=(set_,)),)
        ),
        TracedStep("B[0]", "poison", Origin(other[2]), sources=(TracedStep("r[0]", "poison", Origin(other[0])),)),
    )
    assert found is None or found.kind not in ("unwritten", "early")


def test_a_late_read_names_the_buffer_that_shared_memory_hides() -> None:
    kernel = Kernel(threads=32)
    s = kernel.tile("s", "float32", (32,), "shared")
    again = Store(s, (kernel.tx,), Expr("float", "float32", (), 2.0))
    function = kernel.function(again)
    search = _Search.__new__(_Search)
    search._counterparts = Counterparts(function, function)
    steps = TracedStep("buf_dyn_shmem[3]", "2.0", Origin(again)), TracedStep("s[3]", "1.0")
    found = search._of_parting(Parting("late", *steps, TracedStep("C[3]", "2.0"), TracedStep("C[3]", "1.0")))
    assert found.other is not None
    assert (found.kind, found.access.buffer, found.other.buffer) == ("late", "s", "s")


@pytest.mark.parametrize(("done", "kind"), [(True, "other-index"), (False, "unguarded")])
def test_a_condition_holds_where_the_source_does_the_store(done: bool, kind: str) -> None:
    """Under a condition s is added to. The lowered kernel reads the sum where the source reads what was there before.

    done: whether it is this sum that reads it in the source, which the lowered kernel then does twice.
    """
    kernel = Kernel(threads=32)
    a, c, s = (*(kernel.tensor(n, "float32", (32,)) for n in "AC"), kernel.tile("s", "float32", (32,), "shared"))
    more = Expr("add", "float32", (load(s, kernel.tx), Expr("float", "float32", (), 1.0)))
    first, total = Store(s, (kernel.tx,), load(a, kernel.tx)), Store(s, (kernel.tx,), more)
    guarded = If(Expr("lt", "bool", (kernel.bx, number(1))), total, None)
    function = kernel.function(first, guarded, Store(c, (kernel.tx,), load(s, kernel.tx)))
    own = [stmt for stmt in statements(function.body) if isinstance(stmt, Store)]
    descent = Descent(Counterparts(function, function), {}, lambda step: None)
    reads = own[1] if done else own[2]
    wanted, got = TracedStep("s[0]", "1.0", Origin(own[0])), TracedStep("s[0]", "2.0", Origin(own[1], (("k", 0),)))
    found = descent.parting(
        TracedStep("s[0]", "2.0", Origin(reads, (("k", 1),)), sources=(wanted,)),
        TracedStep("s[0]", "3.0", Origin(reads, (("k", 1),)), sources=(got,)),
    )
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize("otherwise", [False, True])
def test_a_condition_that_must_not_hold_guards_no_store(otherwise: bool) -> None:
    """The consumers of a pipeline are those for whom the producers' condition does not hold."""
    kernel = Kernel(threads=32)
    a, s = kernel.tensor("A", "float32", (32,)), kernel.tile("s", "float32", (32,), "shared")
    store, none = Store(s, (kernel.tx,), load(a, kernel.tx)), Seq(())
    less = Expr("lt", "bool", (kernel.tx, number(16)))
    branch = If(less, none, store) if otherwise else If(less, store, none)
    source, lowered = kernel.function(store), kernel.function(branch)
    assert Counterparts(source, lowered).guard(store) is (None if otherwise else branch)
