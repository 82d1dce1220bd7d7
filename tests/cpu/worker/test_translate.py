"""From TVM's graphs to snapshots: what the releases spell differently becomes one spelling, and nothing is guessed."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from tests.cpu.snapshot.recorded import ERAS, GRAPHS, META, RECORDED, Maker, graph, snapshot
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import (
    Alloc,
    Assert,
    Attr,
    Bind,
    Block,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Launch,
    Layout,
    Seq,
    Snapshot,
    Stmt,
    Store,
    Thread,
    Unknown,
)
from tlcheck.snapshot.text import render, render_layout
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.worker.cuda_source import without_places
from tlcheck.worker.graph import GraphError, read_graph
from tlcheck.worker.shared_memory import UNMERGED
from tlcheck.worker.translate import translate


def all_expressions(function: Function) -> Iterator[Expr]:
    for stmt in statements(function.body):
        yield from postorder(expressions(stmt))


def layouts(function: Function) -> dict[str, Layout]:
    blocks = [s for s in statements(function.body) if isinstance(s, Block)]
    return {str(data.value): layout for block in blocks for data, layout in block.layouts}


def allocations(function: Function, scope: str) -> dict[str, tuple[int | float | str | None, ...]]:
    """Name -> shape of the buffers of a scope."""
    allocs = [s.buffer for s in statements(function.body) if isinstance(s, Alloc)]
    return {b.name: tuple(e.value for e in b.shape) for b in allocs if b.scope == scope}


def body_of(value: int, maker: Maker) -> Expr:
    """The expression that a graph's node becomes."""
    body = one_statement(maker.evaluate(value), maker)
    assert isinstance(body, Evaluate)
    return body.value


def one_statement(stmt: int, maker: Maker) -> Stmt:
    """The statement that a graph's node becomes."""
    text = maker.text(intent=maker.module(main=maker.function(maker.launch(stmt))))
    launch = translate(text, META).checkpoints["intent"].body
    assert isinstance(launch, Thread)
    return launch.body


# The kernels of all eras


@pytest.mark.parametrize("name", RECORDED)
def test_everything_in_the_recorded_kernels_is_understood(name: str) -> None:
    for function in snapshot(name).checkpoints.values():
        assert not [s for s in statements(function.body) if isinstance(s, Unknown)]
        assert not [e for e in all_expressions(function) if e.op == "unknown"]


@pytest.mark.parametrize("kernel", ["annotated", "histogram", "sequence", "symbolic"])
def test_the_intent_is_the_same_in_all_eras_but_for_the_calls(kernel: str) -> None:
    def shape(stmt: Stmt) -> str:
        if isinstance(stmt, Thread):
            return f"{stmt.tag} {stmt.extent.value}"
        return type(stmt).__name__

    def outline(release: str) -> list[str]:
        function = snapshot(f"{release}.{kernel}").checkpoints["intent"]
        skipped = {"Block", "Seq", "Attr", "Bind"}  # the oldest release binds sub-expressions of its own accord
        return [s for s in map(shape, statements(function.body)) if s not in skipped]

    first, *others = [outline(release) for release in ERAS]
    assert len(first) > 4
    assert all(other == first for other in others)


@pytest.mark.parametrize("release", ERAS)
def test_layouts_are_index_maps_of_their_own_variables(release: str) -> None:
    found = layouts(snapshot(f"{release}.annotated").checkpoints["tile-ops"])
    assert render_layout(found["C"]) == "(i, j) -> (i // 8, j // 8, j % 2, i % 8 * 4 + j % 8 // 2)"
    assert found["tile"].thread is not None
    free = {e.uid for y in found.values() for e in postorder(y.index) if e.op == "var"}
    owned = [v.uid for y in found.values() for v in y.vars]
    assert free <= set(owned)
    assert len(set(owned)) == 2 * len({id(y) for y in found.values()})


@pytest.mark.parametrize("release", ERAS)
def test_variables_keep_their_identity_from_checkpoint_to_checkpoint(release: str) -> None:
    checkpoints = snapshot(f"{release}.symbolic").checkpoints
    assert len(checkpoints) >= 5
    size = {e.uid for f in checkpoints.values() for e in all_expressions(f) if e.value == "n" and e.op == "var"}
    target = {p.uid for f in checkpoints.values() for p in f.params if p.value == "B"}
    launches = [s for f in checkpoints.values() for s in statements(f.body) if isinstance(s, Thread)]
    block = {s.var.uid for s in launches if s.tag == "blockIdx.x"}
    assert (len(size), len(target), len(block)) == (1, 1, 1)


@pytest.mark.parametrize("release", ERAS)
def test_several_kernels_become_one_function(release: str) -> None:
    function = snapshot(f"{release}.sequence").checkpoints["device-tir"]
    assert [p.value for p in function.params] == ["A", "B", "C"]
    assert isinstance(function.body, Seq)
    assert len([s for s in statements(function.body) if isinstance(s, Thread) and s.tag == "blockIdx.x"]) == 2
    used = {e.buffer.data.uid for e in all_expressions(function) if e.buffer is not None and e.buffer.name == "B"}
    assert len(used) == 1


@pytest.mark.parametrize("release", ["0.1.6.post2", "0.1.7", "0.1.7.post3"])
def test_merged_shared_memory_gets_its_buffers_back(release: str) -> None:
    whole = snapshot(f"{release}.annotated")
    before = allocations(whole.checkpoints["vectorize-loop"], "shared.dyn")
    assert allocations(whole.checkpoints["device-tir"], "shared.dyn") == before
    assert set(before) == {"left", "right"}
    device = whole.checkpoints["device-tir"]
    names = {str(e.buffer.data.value) for e in all_expressions(device) if e.buffer and e.buffer.scope == "shared.dyn"}
    assert names == {"left", "right"}


def test_one_kernel_gives_the_same_bytes_wherever_its_shared_memory_was_placed() -> None:
    (first, meta), (again, other) = graph("0.1.7.annotated"), graph("0.1.7.again.annotated")
    assert meta["cuda"] != other["cuda"]
    assert codec.dumps(translate(first, meta)) == codec.dumps(translate(again, other))


def test_without_the_module_before_the_merge_nothing_is_undone() -> None:
    text, meta = graph("0.1.7.annotated")
    passes = {name: after for name, after in meta["passes"].items() if name != UNMERGED}
    whole = translate(text, {**meta, "passes": passes})
    assert set(allocations(whole.checkpoints["device-tir"], "shared.dyn")) == {"buf_dyn_shmem"}
    assert whole.cuda == meta["cuda"]


def test_lines_come_from_spans_of_the_kernels_file_only() -> None:
    text, meta = graph("0.1.15.histogram")
    source = enumerate((GRAPHS / "kernels.py").read_text().splitlines(), 1)
    written = {number for number, line in source if "T.atomic_add(counts" in line or "T.atomic_add(bins" in line}
    for function in translate(text, meta).checkpoints.values():
        assert {s.line for s in statements(function.body) if _is_atomic(s)} == written
    elsewhere = translate(text, {**meta, "file": "other.py"})
    assert {s.line for f in elsewhere.checkpoints.values() for s in statements(f.body)} == {0}


def test_a_line_is_handed_down_from_a_branch_but_not_from_a_launch() -> None:
    maker = Maker()
    span = maker.node("ir.Span", {"source_name": maker.node("ir.SourceName", "kernels.py"), "line": 7})
    value = maker.evaluate(maker.number(1))
    branch = maker.fields("tirx.IfThenElse", condition=maker.var("c"), then_case=value, else_case=maker.null)
    maker.nodes[branch]["data"]["span"] = span
    launch = maker.launch(maker.fields("tirx.SeqStmt", seq=maker.array(branch, maker.evaluate(maker.number(2)))))
    maker.nodes[launch]["data"]["span"] = span
    whole = translate(maker.text(intent=maker.module(main=maker.function(launch))), META)
    lines = [(type(s), s.line) for s in statements(whole.checkpoints["intent"].body)]
    assert lines == [(Thread, 7), (Seq, 0), (If, 7), (Evaluate, 7), (Evaluate, 0)]


def _is_atomic(stmt: Stmt) -> bool:
    return any(str(e.value).startswith("atomic_add") for e in postorder(expressions(stmt)))


def test_the_functions_attributes_have_no_target_and_no_namespace() -> None:
    for release in ERAS:
        attrs = dict(snapshot(f"{release}.annotated").checkpoints["device-tir"].attrs)
        assert "target" not in attrs
        assert attrs["noalias"] == "True"
        assert "thread_extent" in attrs


# Graphs made by hand


@pytest.mark.parametrize(
    ("name", "constant", "op", "value"),
    [
        ("tir.shift_right", 3, "floordiv", 8),
        ("tirx.shift_left", 2, "mul", 4),
        ("tirx.bitwise_and", 7, "floormod", 8),
        ("tirx.bitwise_and", 1, "floormod", 2),
    ],
)
def test_shifts_and_masks_by_constants_are_arithmetic(name: str, constant: int, op: str, value: int) -> None:
    maker = Maker()
    e = body_of(maker.call(name, maker.var("x"), maker.number(constant)), maker)
    assert (e.op, e.args[0].value, e.args[1].value, e.args[1].dtype) == (op, "x", value, "int32")


@pytest.mark.parametrize(("name", "constant"), [("shift_right", -1), ("bitwise_and", 6), ("bitwise_xor", 1)])
def test_other_bit_operations_stay_calls(name: str, constant: int) -> None:
    maker = Maker()
    e = body_of(maker.call(f"tirx.{name}", maker.var("x"), maker.number(constant)), maker)
    assert (e.op, e.value) == ("call", name)


def test_a_mask_in_the_lanes_of_a_vector() -> None:
    maker = Maker()
    lanes = maker.fields("tirx.Broadcast", dtype="int32x4", value=maker.number(3), lanes=maker.number(4))
    e = body_of(maker.call("tirx.bitwise_and", maker.var("x", "int32x4"), lanes, dtype="int32x4"), maker)
    assert e.op == "floormod"
    assert (e.args[1].op, e.args[1].value, e.args[1].args[0].value) == ("broadcast", 4, 4)


@pytest.mark.parametrize(("dtype", "op"), [("int32", "truncdiv"), ("uint8", "truncdiv"), ("float32", "div")])
def test_division(dtype: str, op: str) -> None:
    maker = Maker()
    assert body_of(maker.binary("Div", maker.var("x", dtype), maker.var("y", dtype), dtype), maker).op == op


def test_equal_expressions_are_one_object_and_negative_zero_is_not_zero() -> None:
    maker = Maker()
    x = maker.var("x")
    zeros = [maker.fields("ir.FloatImm", dtype="float32", value=value) for value in (0.0, -0.0)]
    sums = [maker.binary("Add", x, maker.number(1)) for _ in range(2)]
    e = body_of(maker.call("f", *sums, *zeros, maker.number(0), maker.number(0, "bool")), maker)
    assert e.args[0] is e.args[1]
    assert len({id(a) for a in e.args}) == 5


def test_unknown_nodes_are_named() -> None:
    maker = Maker()
    e = body_of(maker.call("f", maker.fields("tirx.Hologram", dtype="int32"), maker.var("x")), maker)
    assert (e.args[0].op, e.args[0].value, e.args[1].value) == ("unknown", "Hologram", "x")
    stmt = one_statement(maker.fields("tirx.Teleport", body=maker.null), maker)
    assert isinstance(stmt, Unknown)
    assert stmt.what == "Teleport"


def test_let_and_shuffle() -> None:
    maker = Maker()
    x, a, b = maker.var("x"), maker.var("a", "int32x2"), maker.var("b", "int32x2")
    let = body_of(maker.fields("tirx.Let", var=x, value=maker.number(3), body=maker.binary("Add", x, x)), maker)
    assert (let.op, let.dtype, [e.op for e in let.args]) == ("let", "int32", ["var", "int", "add"])
    picked = maker.array(maker.number(0), maker.number(3))
    shuffle = maker.fields("tirx.Shuffle", dtype="int32x2", vectors=maker.array(a, b), indices=picked)
    found = body_of(shuffle, maker)
    assert (found.op, found.dtype, found.value) == ("shuffle", "int32x2", 2)
    assert [e.value for e in found.args] == ["a", "b", 0, 3]


def test_asserts_of_both_forms() -> None:
    maker = Maker()
    guard, words = maker.var("c", "bool"), [maker.string("c must "), maker.string("hold")]
    older = maker.fields("tir.AssertStmt", condition=guard, message=words[0], body=maker.evaluate(guard))
    newer = maker.fields("tirx.AssertStmt", condition=guard, error_kind=words[0], message_parts=maker.array(*words))
    found = one_statement(maker.seq(older, newer), maker)
    assert isinstance(found, Seq)
    assert [type(part) for part in found.body] == [Assert, Evaluate, Assert]
    assert [part.message for part in found.body if isinstance(part, Assert)] == ["c must ", "c must hold"]


def test_annotations_that_are_no_text() -> None:
    maker = Maker()
    k, memory, barrier = maker.var("k"), maker.buffer("A", 8), maker.buffer("bars", 2)
    note = maker.map((maker.string("barrier"), maker.load(barrier, k)), (maker.string("use_tma"), maker.number(1)))
    copy = body_of(
        maker.fields(
            "tirx.Call",
            dtype="handle",
            op=maker.node("ir.Op", "tl.tileop.copy"),
            args=maker.array(maker.load(memory, k)),
            annotations=note,
        ),
        maker,
    )
    assert copy.annotations == (("use_tma", "1"),)
    assert [(key, e.op) for key, e in copy.computed] == [("barrier", "load")]
    counts = maker.array(maker.number(1), maker.number(128))
    minus_one = maker.fields("ir.FloatImm", dtype="float32", value=-1.0)
    notes = maker.map(
        (maker.string("barrier_init"), maker.map((barrier, counts))),
        (maker.string("safe_value_map"), maker.map((memory, minus_one), (barrier, maker.node("float", 0.5)))),
        (maker.string("tl.launch_threads"), counts),
        (maker.string("stage"), maker.number(3)),
    )
    block = one_statement(maker.block(maker.evaluate(k), notes, maker.number(1, "bool")), maker)
    assert isinstance(block, Block)
    assert block.annotations == (("stage", "3"),)
    assert [(data.value, [e.value for e in found]) for data, found in block.barriers] == [("bars", [1, 128])]
    assert [(data.value, value.value) for data, value in block.safe_values] == [("A", -1.0), ("bars", 0.5)]
    assert [e.value for e in block.threads] == [1, 128]


def test_what_an_attribute_is_about() -> None:
    maker = Maker()
    threads = maker.array(maker.number(128), maker.number(256))

    def attr(key: str, node: int) -> Stmt:
        body = maker.evaluate(maker.number(0))
        name = maker.string(key)
        return one_statement(
            maker.fields("tirx.AttrStmt", node=node, attr_key=name, value=maker.number(0), body=body), maker
        )

    found = [attr("kWarpSpecializationScope", threads), attr("async_scope", maker.number(0))]
    found.append(attr("pragma_unroll_explicit", maker.var("i")))
    assert [[e.value for e in stmt.node] for stmt in found if isinstance(stmt, Attr)] == [[128, 256], [], []]


def test_descriptors_of_one_name_are_told_apart_by_what_the_host_passes() -> None:
    maker = Maker()
    host, device = [maker.var("A_desc", "handle") for _ in "ab"], [maker.var("A_desc", "handle") for _ in "ab"]
    name = maker.fields("ir.GlobalVar", name_hint=maker.string("main_kernel"))
    made = [
        maker.evaluate(
            maker.call(
                "tirx.tvm_call_packed",
                maker.fields("tirx.StringImm", value=maker.string("__tvm_tensormap_create_tiled")),
                descriptor,
                maker.number(box),
            )
        )
        for descriptor, box in zip(host, (64, 32), strict=True)
    ]
    launch = maker.evaluate(maker.fields("tirx.Call", dtype="int32", op=name, args=maker.array(*reversed(host))))
    uses = maker.seq(*[maker.evaluate(maker.call("tl.tma_load", d)) for d in device])
    kernel = maker.function(maker.launch(uses), *device)
    both = maker.map(
        (maker.fields("ir.GlobalVar", name_hint=maker.string("main")), maker.function(maker.seq(*made, launch))),
        (name, kernel),
    )
    text = maker.text(intent=maker.fields("ir.IRModule", functions=both))
    function = translate(text, META).checkpoints["intent"]
    assert [p.uid for p in function.params] == list(reversed(host))
    calls = [
        (p is q, call.value, call.args[0].value)
        for p, (q, call) in zip(function.params, function.descriptors, strict=True)
    ]
    assert calls == [(True, "create_tma_descriptor", 32), (True, "create_tma_descriptor", 64)]
    assert [e.args[0] for e in all_expressions(function) if e.value == "tma_load"] == list(function.params)


def test_several_kernels_are_launches() -> None:
    maker = Maker()
    kernels = {
        f"main_kernel{n}": maker.function(maker.launch(maker.evaluate(maker.number(len(n)))), maker.var("n"))
        for n in ("", "_1")
    }
    host = {"main": maker.function(maker.evaluate(maker.number(0)))}
    function = translate(maker.text(intent=maker.module(**kernels, **host)), META).checkpoints["intent"]
    assert isinstance(function.body, Seq)
    names = [(s.name, [p.value for p in s.params]) for s in function.body.body if isinstance(s, Launch)]
    assert names == [("main_kernel", ["n"]), ("main_kernel_1", ["n"])]


def test_nodes_with_other_fields_than_known_are_unknown() -> None:
    maker = Maker()
    e = body_of(maker.call("f", maker.fields("tirx.Add", dtype="int32", left=1, right=2)), maker)
    assert (e.args[0].op, e.args[0].value) == ("unknown", "Add")
    stmt = one_statement(maker.fields("tirx.For", loop_var=maker.var("i")), maker)
    assert isinstance(stmt, Unknown)


def test_a_loop_with_a_step_counts_its_iterations() -> None:
    maker = Maker()
    i = maker.var("i")
    loop = maker.fields(
        "tirx.For",
        loop_var=i,
        min=maker.number(1),
        extent=maker.number(19),
        body=maker.evaluate(i),
        thread_binding=maker.null,
        annotations=maker.map(),
        step=maker.number(3),
        kind=0,
    )
    loop_stmt = one_statement(loop, maker)
    assert isinstance(loop_stmt, For)
    assert isinstance(loop_stmt.body, Seq)
    assert isinstance(loop_stmt.body.body[0], Bind)
    assert render(_function(loop_stmt)).lines[1:] == (
        "    for i in T.serial((19 + 2) // 3):",
        "        i_1 = 1 + i * 3",
        "        i_1",
    )


def _function(body: Stmt) -> Function:
    return Function("f", (), (), (), body)


def test_lets_keep_their_scope() -> None:
    maker = Maker()
    x, y = maker.var("x"), maker.var("y")
    inner = maker.fields("tir.LetStmt", var=x, value=maker.number(1), body=maker.evaluate(x))
    last = maker.fields("tir.LetStmt", var=y, value=maker.number(2), body=maker.seq(maker.evaluate(y)))
    body = one_statement(maker.seq(inner, maker.seq(maker.evaluate(x), last)), maker)
    assert isinstance(body, Seq)
    assert [type(part) for part in body.body] == [Seq, Evaluate, Bind, Evaluate]


def test_replicas_and_layouts_that_share_their_placeholders() -> None:
    maker = Maker()
    i, j, rep = (maker.var(name) for name in ("_i", "_j", "_rep"))
    eight = maker.number(8)
    plain = maker.node(
        "tl.Layout",
        {"input_size": maker.array(eight, eight), "forward_index": maker.array(maker.binary("Add", i, j))},
    )
    fragment = maker.node(
        "tl.Fragment",
        {
            "input_size": maker.array(eight),
            "forward_index": maker.array(i),
            "forward_thread": maker.binary("Mul", rep, i),
            "replicate_size": maker.number(2),
        },
    )
    buffers = [maker.buffer("A", 8, 8), maker.buffer("B", 8)]
    entries = maker.map((buffers[0], plain), (buffers[1], fragment))
    notes = maker.map((maker.string("layout_map"), entries), (maker.string("stage"), maker.number(3)))
    uses = maker.seq(*[maker.store(b, maker.number(0), maker.number(0)) for b in buffers])
    block = one_statement(maker.block(uses, notes, maker.number(1, "bool")), maker)
    assert isinstance(block, Block)
    assert block.annotations == (("stage", "3"),)
    words = [render_layout(layout, str(data.value)) for data, layout in block.layouts]
    assert words == ["A: (i, j) -> (i + j)", "B: (i) -> thread rep * i, local i, 2 replicas"]
    (_, a), (_, b) = block.layouts
    assert b.replica is not None
    assert len({v.uid for v in (*a.vars, *b.vars, b.replica)}) == 4


@pytest.mark.parametrize("python", [False, True])
def test_what_a_variable_begins_with_is_stored_in_it(python: bool) -> None:
    """Up to 0.1.9 it is a note of the block, later of the allocation; in 0.1.6 one of Python's numbers."""
    maker = Maker()
    variable, other = maker.buffer("v", 1), maker.buffer("w", 1)
    value = maker.node("int", 5) if python else maker.fields("ir.FloatImm", dtype="float32", value=5.0)
    begins, body = maker.string("tl.local_var_init"), maker.evaluate(maker.call("f"))
    notes, allocs = maker.map((begins, maker.map((variable, value)))), (variable, other)
    block = one_statement(maker.block(body, notes, maker.number(1, "bool"), allocs=allocs), maker)
    assert isinstance(block, Block)
    pointer = maker.var("v", "handle")
    allocation = maker.fields(
        "tir.Allocate",
        buffer_var=pointer,
        dtype="float32",
        extents=maker.array(maker.number(1)),
        body=body,
        annotations=maker.map((begins, value)),
    )
    lowered = one_statement(allocation, maker)
    for found, kinds in ((block.body, [Alloc, Store, Alloc, Evaluate]), (lowered, [Alloc, Store, Evaluate])):
        assert isinstance(found, Seq)
        assert [type(part) for part in found.body] == kinds
        store = found.body[1]
        assert isinstance(store, Store)
        assert (store.buffer.name, store.value.value, store.value.dtype) == ("v", 5.0, "float32")


def test_a_block_that_does_not_always_run_is_a_branch() -> None:
    maker = Maker()
    branch = one_statement(maker.block(maker.evaluate(maker.number(1)), maker.map(), maker.var("c", "bool")), maker)
    assert isinstance(branch, If)
    assert isinstance(branch.then, Block)


def test_a_block_with_an_init_is_not_understood() -> None:
    maker = Maker()
    body = maker.evaluate(maker.number(1))
    block = one_statement(maker.block(body, maker.map(), maker.number(1, "bool"), init=body), maker)
    assert isinstance(block, Block)
    assert isinstance(block.body, Unknown)
    assert isinstance(block.body.body[0], Evaluate)


def test_accesses_with_a_predicate() -> None:
    maker = Maker()
    memory, zero, guard = maker.buffer("A", 8), maker.number(0), maker.var("c", "boolx4")
    load = body_of(maker.load(memory, zero, predicate=guard), maker)
    assert (load.op, load.args[0].op, load.args[1].value) == ("predicated", "load", "c")
    store = one_statement(maker.store(memory, zero, zero, predicate=guard), maker)
    assert isinstance(store, Store)
    assert store.predicate is not None
    assert store.predicate.value == "c"


@pytest.mark.parametrize(
    ("strides", "kept"), [((), ()), ((8, 1), ()), ((16, 1), (16, 1)), ((1, 4), (1, 4)), ((8, 2), (8, 2))]
)
def test_strides_of_compact_buffers_are_left_out(strides: tuple[int, ...], kept: tuple[int, ...]) -> None:
    maker = Maker()
    memory = maker.buffer("A", 4, 8, strides=strides)
    load = body_of(maker.load(memory, maker.number(0), maker.number(0)), maker)
    assert load.buffer is not None
    assert tuple(e.value for e in load.buffer.strides) == kept


@pytest.mark.parametrize(("offset", "kept"), [(None, None), (0, None), (4, 4)])
def test_offsets_of_buffers(offset: int | None, kept: int | None) -> None:
    maker = Maker()
    load = body_of(maker.load(maker.buffer("A", 4, offset=offset), maker.number(0)), maker)
    assert load.buffer is not None
    found = load.buffer.elem_offset
    assert (found.value if found is not None else None) == kept


def test_kernels_nest_deeper_than_pythons_stack() -> None:
    maker = Maker()
    total = maker.var("x")
    for _ in range(5000):
        total = maker.binary("Add", total, maker.number(1))
    stmt = maker.evaluate(total)
    condition = maker.var("c", "bool")
    for _ in range(5000):
        stmt = maker.fields("tirx.IfThenElse", condition=condition, then_case=stmt, else_case=maker.null)
    text = maker.text(intent=maker.module(main=maker.function(maker.launch(stmt))))
    whole = translate(text, META)
    written = codec.dumps(whole)
    assert codec.dumps(codec.loads(written)) == written
    assert len(render(whole.checkpoints["intent"]).lines) == 5003


def test_two_kernels_that_were_never_one_are_refused() -> None:
    maker = Maker()
    functions = {name: maker.function(maker.launch(maker.evaluate(maker.number(0)))) for name in ("one", "two")}
    with pytest.raises(GraphError, match=r"one.*two"):
        translate(maker.text(intent=maker.module(**functions)), META)


def test_a_module_without_a_device_side_is_no_checkpoint() -> None:
    maker = Maker()
    assert translate(maker.text(intent=maker.module()), META).checkpoints == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"root_index": 0, "nodes": 3}', '{"root": 1, "nodes": [{}]}', "[" * 99999]
)
def test_what_is_no_graph_says_so(text: str) -> None:
    with pytest.raises(GraphError, match="not a graph"):
        read_graph(text)


def test_both_dialects_read_the_same() -> None:
    new = Maker()
    plus = new.binary("Add", new.var("x"), new.number(7))
    new_text = new.text(intent=new.module(main=new.function(new.launch(new.evaluate(plus)))))
    assert _outline(translate(new_text, META)) == _outline(translate(_older(json.loads(new_text)), META))


def _outline(whole: Snapshot) -> str:
    return str(render(whole.checkpoints["intent"]))


def _older(graph: dict[str, object]) -> str:
    """A graph of the newer dialect in the older one, with parents before their children."""
    nodes = graph["nodes"]
    assert isinstance(nodes, list)
    last = len(nodes)

    def index(old: int) -> int:
        return last - old  # node 0 is null in the older dialect

    written: list[dict[str, object]] = [{"type_key": ""}]
    for node in reversed(nodes):
        kind, data = node["type"], node.get("data")
        entry: dict[str, object] = {"type_key": "" if kind == "None" else kind}
        if isinstance(data, str):
            entry["repr_str"] = data
        elif isinstance(data, list):
            entry["data"] = [index(i) for i in data]
        elif isinstance(data, dict):
            plain = ("dtype", "kind") + (("value",) if kind == "ir.IntImm" else ())
            entry["attrs"] = {k: str(v if k in plain else index(v)) for k, v in data.items()}
        written.append(entry)
    root = graph["root_index"]
    assert isinstance(root, int)
    return json.dumps({"root": index(root), "nodes": written})


# The CUDA source


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("[0]", "[PLACE]"),
        ("[8192]", "[PLACE]"),
        ("[((k * 8) + 8192)]", "[(k * 8) + PLACE]"),
        ("[(k * 8)]", "[(k * 8) + PLACE]"),
        ("[((k * 8) - 32)]", "[(k * 8) + PLACE]"),
        ("[i]", "[(i) + PLACE]"),
        ("[(i + 64)]", "[(i) + PLACE]"),
        (" + ((k * 8) + 64)", " + ((k * 8) + PLACE)"),
        (" + (k * 8)", " + ((k * 8) + PLACE)"),
        ("[(a[k + 1] + b)]", "[(a[k + 1] + b) + PLACE]"),
    ],
)
def test_places_in_shared_memory_are_left_out_of_the_source(index: str, expected: str) -> None:
    found = without_places(f"x = ((half_t*)buf_dyn_shmem){index};")
    assert found.splitlines()[1] == f"x = ((half_t*)buf_dyn_shmem){expected};"


def test_a_source_without_merged_memory_is_unchanged() -> None:
    assert without_places("y[0] = x[1];") == "y[0] = x[1];"


def test_no_identity_is_asked_for() -> None:
    """Python tells a worker's audit hook of each `id()`: a microsecond, a million times in a run."""
    script = """
        import sys
        from tests.cpu.snapshot.recorded import RECORDED, graph
        from tlcheck.snapshot.codec import dumps
        from tlcheck.worker.translate import translate
        graphs = [graph(name) for name in RECORDED]
        asked = []
        sys.addaudithook(lambda event, args: asked.append(event) if event == "builtins.id" else None)
        texts = [dumps(translate(*one)) for one in graphs]
        print(len(texts), len(asked))
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(RECORDED)), "0"]
