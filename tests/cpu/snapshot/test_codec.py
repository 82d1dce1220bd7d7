"""Snapshots as files: the same snapshot after reading, the same bytes after writing, and no other text accepted."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import randoms

from tests.cpu.snapshot.recorded import ERAS, META, RECORDED, Maker, graph, snapshot
from tests.fixtures.index import FOLDER
from tlcheck.snapshot.codec import SCHEMA, CorruptSnapshot, dumps, loads
from tlcheck.snapshot.ir import (
    Alloc,
    Assert,
    Attr,
    Block,
    Buffer,
    Evaluate,
    Expr,
    For,
    Function,
    Launch,
    Layout,
    Seq,
    Snapshot,
    Stmt,
    Store,
)
from tlcheck.snapshot.text import render
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.worker.translate import translate

TEXTS = {name: dumps(snapshot(name)) for name in RECORDED}


def with_body(*values: Expr) -> Snapshot:
    """A snapshot of one function that evaluates the expressions."""
    body = Seq(tuple(Evaluate(value) for value in values))
    function = Function("f", (), (), (), body)
    return replace(snapshot("0.1.7.sequence"), checkpoints={"intent": function}, passes={"intent": "p"})


def values(whole: Snapshot) -> list[Expr]:
    stmts = statements(whole.checkpoints["intent"].body)
    return [s.value for s in stmts if isinstance(s, Evaluate)]


@pytest.mark.parametrize("name", RECORDED)
def test_reading_and_writing_gives_the_same_bytes(name: str) -> None:
    assert dumps(loads(TEXTS[name])) == TEXTS[name]


@pytest.mark.parametrize("name", RECORDED)
def test_reading_gives_the_same_functions(name: str) -> None:
    old, new = snapshot(name), loads(TEXTS[name])
    assert list(new.checkpoints) == list(old.checkpoints)
    for checkpoint, function in old.checkpoints.items():
        other = new.checkpoints[checkpoint]
        assert render(other).lines == render(function).lines
        assert [s.line for s in statements(other.body)] == [s.line for s in statements(function.body)]
        assert (other.attrs, len(other.buffers)) == (function.attrs, len(function.buffers))
    assert _meta(new) == _meta(old)


def _meta(whole: Snapshot) -> tuple[Any, ...]:
    maps = (whole.toolchain, whole.args, whole.pass_configs, whole.passes)
    return (whole.case, whole.file, whole.line, whole.target, whole.cuda, *map(dict, maps))


def test_shared_parts_are_shared_after_reading_too() -> None:
    whole = loads(TEXTS["0.1.15.annotated"])
    seen: dict[tuple[Any, ...], Expr] = {}
    for function in whole.checkpoints.values():
        for stmt in statements(function.body):
            for e in postorder(expressions(stmt)):
                key = (e.op, e.dtype, e.value, e.uid, tuple(map(id, e.args)), id(e.buffer), e.annotations)
                assert seen.setdefault(key, e) is e
    blocks = [s for f in whole.checkpoints.values() for s in statements(f.body) if isinstance(s, Block)]
    written = [layout for block in blocks for _, layout in block.layouts]
    assert len({id(layout) for layout in written}) < len(written)


def test_bytes_do_not_depend_on_the_order_of_tvms_maps() -> None:
    text, meta = graph("0.1.15.annotated")
    shuffled = json.loads(text)
    rng = random.Random(3)
    for node in shuffled["nodes"]:
        if node["type"] == "ffi.Map" and node.get("data"):
            pairs = list(zip(node["data"][::2], node["data"][1::2], strict=True))
            rng.shuffle(pairs)
            node["data"] = [index for pair in pairs for index in pair]
    assert dumps(translate(json.dumps(shuffled), meta)) == TEXTS["0.1.15.annotated"]


def test_bytes_do_not_depend_on_the_order_of_nodes() -> None:
    """Unused nodes before the others change every index, and so every uid, that translating gives."""
    maker = Maker()
    for position in range(7):
        maker.var(f"unused{position}")
    plain = Maker()

    def program(m: Maker) -> str:
        x, y = m.var("x"), m.var("y")
        return m.text(intent=m.module(main=m.function(m.launch(m.evaluate(m.binary("Sub", y, x))))))

    assert dumps(translate(program(maker), META)) == dumps(translate(program(plain), META))


@pytest.mark.parametrize("value", [0.0, -0.0, 1e300, math.inf, -math.inf, math.nan, 0.1])
def test_every_float_survives(value: float) -> None:
    text = dumps(with_body(Expr("float", "float32", (), value)))
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    (found,) = values(loads(text))
    assert repr(found.value) == repr(value)


def test_variables_with_one_name_stay_two() -> None:
    x, other = (Expr("var", "int32", (), "x", uid) for uid in (7, 3))
    found = values(loads(dumps(with_body(x, other, x))))
    assert [e.uid for e in found] == [1, 2, 1]


def test_annotations_and_unknowns_survive() -> None:
    tile = Expr("call", "handle", (Expr("unknown", "", (), "Hologram"),), "copy", annotations=(("use_tma", "1"),))
    (found,) = values(loads(dumps(with_body(tile))))
    assert (found.annotations, found.args[0].op, found.args[0].value) == (tile.annotations, "unknown", "Hologram")


# Texts that are no snapshots


def assert_corrupt(text: str) -> str:
    with pytest.raises(CorruptSnapshot) as caught:
        loads(text)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "3", '"x"', "{}", "[" * 100_000, '{"schema": NaN}', "\ud800"])
def test_other_texts_are_refused(text: str) -> None:
    assert_corrupt(text)


@pytest.mark.parametrize("version", [0, SCHEMA + 1, None, "1", True, [], 1.0])
def test_other_schemas_are_refused(version: object) -> None:
    fields = json.loads(TEXTS["0.1.7.sequence"])
    assert "schema" in assert_corrupt(json.dumps({**fields, "schema": version}))


@pytest.mark.parametrize("key", sorted(json.loads(TEXTS["0.1.7.sequence"])))
def test_every_field_is_needed_and_checked(key: str) -> None:
    fields = json.loads(TEXTS["0.1.7.sequence"])
    assert key in assert_corrupt(json.dumps({k: v for k, v in fields.items() if k != key}))
    for wrong in (None, 3.5, [None], {"a": [1]}):
        assert_corrupt(json.dumps({**fields, key: wrong}))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (["add", "int32", 0], "arguments"),
        (["add", "int32", 0, 99999], "earlier"),
        (["add", "int32", 0, -1], "earlier"),
        (["add", "int32", 0, True], "earlier"),
        (["add", 32, 0, 0], "dtype"),
        (["shrug", "int32", 1], "unknown kind"),
        (["int", "int32", "1"], "int"),
        (["int", "int32", 1, 0], "arguments"),
        (["float", "float32", "1.0"], "float"),
        (["load", "int32", 0], "Buffer"),
        (["ramp", "int32x4", 4, 0], "arguments"),
        (["call", "int32", "f", [["a"]]], "pairs"),
        (["call", "int32"], "missing"),
        (["Seq", 0, 0], "statement"),
        (["Seq"], "entry"),
        (["For", 0, 0, 0, 0, "sideways", 0, []], "loop"),
        (["Store", 0, 0, 0], "Buffer"),
        (["Evaluate", 0], "fields"),
        (["Evaluate", "1", 0], "line"),
        (["layout", [], [0], [], None, None, 1, 0], "variable per dimension"),
        (["layout", [0], [0], [], None, None, 1, 0], "variable"),
        ([["add"], 1], "entry"),
        ("add", "entry"),
    ],
)
def test_wrong_entries_are_refused(entry: object, reason: str) -> None:
    fields = json.loads(TEXTS["0.1.7.sequence"])
    integer = ["int", "int32", 1]
    assert reason in assert_corrupt(json.dumps({**fields, "nodes": [integer, entry], "checkpoints": {}}))


def spoil_bytes(text: str, rng: random.Random) -> str:
    position = rng.randrange(len(text))
    return text[:position] + chr(rng.randrange(32, 127)) + text[position + 1 :]


def truncate(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) - 1)]


def spoil_a_value(text: str, rng: random.Random) -> str:
    """Another value, or none, somewhere in the JSON."""
    fields = json.loads(text)
    holder: Any = fields
    while True:
        key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        if isinstance(holder[key], (dict, list)) and holder[key] and rng.random() < 0.9:
            holder = holder[key]
            continue
        if rng.random() < 0.5:
            del holder[key]
        else:
            holder[key] = rng.choice([None, -1, 0, 5, 10**9, "x", [], {}, 0.5, True, [[0]]])
        return json.dumps(fields)


@pytest.mark.parametrize("spoil", [spoil_bytes, truncate, spoil_a_value])
@pytest.mark.parametrize("release", ERAS)
def test_a_spoiled_file_is_refused_or_read_never_worse(
    release: str, spoil: Callable[[str, random.Random], str]
) -> None:
    text = TEXTS[f"{release}.symbolic"]
    messages: list[str] = []

    @settings(max_examples=30)
    @given(rng=randoms(use_true_random=False))
    def refused_or_read(rng: random.Random) -> None:
        spoiled = spoil(text, rng)
        try:
            whole = loads(spoiled)
        except CorruptSnapshot as error:
            messages.append(str(error))
        else:
            assert loads(dumps(whole)).case == whole.case
            assert all(render(function).lines for function in whole.checkpoints.values())

    refused_or_read()
    assert len(messages) > 10
    assert not any("\n" in message for message in messages)


def test_a_file_is_small_enough_to_mail() -> None:
    assert max(len(text) - len(snapshot(name).cuda) for name, text in TEXTS.items()) < 30_000


def test_stores_and_allocations_are_there() -> None:
    whole = loads(TEXTS["0.1.15.histogram"])
    kinds = {type(s) for f in whole.checkpoints.values() for s in statements(f.body)}
    assert {Store, Alloc} <= kinds


def test_what_schema_2_adds_survives() -> None:
    x, data = Expr("var", "int32", (), "x", 1), Expr("var", "handle", (), "A", 2)
    one = Expr("int", "int32", (), 1)
    memory = Buffer("A", "float32", (one,), "shared.dyn", data)
    load = Expr("load", "float32", (x,), buffer=memory)
    copy = Expr("call", "handle", (load,), "copy", computed=(("barrier", load),))
    layout = Layout((x,), (one,), (x,))
    parts: tuple[Stmt, ...] = (
        Evaluate(Expr("let", "int32", (x, one, Expr("add", "int32", (x, x))))),
        Evaluate(Expr("shuffle", "int32", (x, one, one), 2)),
        Evaluate(Expr("predicated", "float32", (load, x))),
        Evaluate(copy),
        Store(memory, (x,), load, one),
        Assert(x, "x must hold"),
        For(x, one, one, "parallel", Evaluate(x), (), (("predicate", x),), layout),
        Attr("scope", one, Evaluate(x), (one, x)),
        Block("b", Evaluate(x), (), (), ((data, (one, x)),), ((data, one),), (one, one)),
    )
    body = Seq((Launch("k", (x, data), (("a", "b"),), Seq(parts)),))
    function = Function("f", (x, data), (), (), body, ((data, copy),), ((data, 1024),))
    saved = snapshot("0.1.7.sequence")
    text = dumps(replace(saved, checkpoints={"intent": function}))
    found = loads(text).checkpoints["intent"]
    assert dumps(loads(text)) == text
    assert render(found).lines == render(function).lines
    assert list(_plain(found)) == list(_plain(function))
    assert [(d.value, c.value) for d, c in found.descriptors] == [("A", "copy")]
    assert [(d.value, place) for d, place in found.places] == [("A", 1024)]


def _plain(function: Function) -> Iterator[object]:
    """Yield what the text does not show of the statements."""
    for s in statements(function.body):
        if isinstance(s, Launch):
            yield s.name, [p.value for p in s.params], s.attrs
        elif isinstance(s, For):
            yield [(key, e.value) for key, e in s.computed], s.layout is not None and len(s.layout.vars)
        elif isinstance(s, Attr):
            yield [e.value for e in s.node]
        elif isinstance(s, Block):
            yield [(d.value, [e.value for e in counts]) for d, counts in s.barriers]
            yield [(d.value, e.value) for d, e in s.safe_values], [e.value for e in s.threads]
        elif isinstance(s, Evaluate):
            yield [(key, e.op) for key, e in s.value.computed]


def test_schema_1_is_still_read() -> None:
    old = FOLDER / "old" / "attention_full_0.1.7.snapshot.json"
    text = old.read_text()
    assert json.loads(text)["schema"] == 1
    whole = loads(text)
    assert next(iter(whole.checkpoints)) == "intent"
    assert json.loads(dumps(whole)) == {**json.loads(text), "schema": SCHEMA}
