"""A quick run says what a plain one says: iterations at once, and a glance at the order instead of a record of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tests.cpu.execute.observe.test_order import without
from tests.cpu.execute.ops.thread.test_hardware import FORMS, machine_of
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compile import registry
from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.iterations import at_once
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.events import Observers
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import Array, is_poison, kind_of
from tlcheck.execute.observe.races import Access
from tlcheck.execute.observe.suspects import Suspects
from tlcheck.execute.observe.watching import Watching
from tlcheck.execute.ops.thread.cp_async import Copy
from tlcheck.execute.request import Request
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Alloc, Bind, Buffer, Evaluate, Expr, For, Function, Seq, Stmt, Store, Thread

registry.load()
ERA = Path(__file__).parents[3] / "fixtures" / "era"
FIXTURES = sorted(ERA.glob("*-0.1.9.snapshot.json")) + sorted(ERA.glob("*-0.1.15.snapshot.json"))


def _quick(name: str, call: str = "", number: int = 0) -> Machine:
    """The quick machine of a form, without one of its statements."""
    lowered = FORMS[name].checkpoints["device-tir"]
    lowered = without(lowered, call, number) if call else lowered
    machine = machine_of(FORMS[name], name, late=True, exact=True, lowered=lowered)
    return Machine(
        machine.function,
        machine.extents,
        machine.worlds,
        machine.state.tensors,
        machine.scalars,
        replace(machine.options, plain=False),
    )


def _suspects(quick: Machine) -> Suspects:
    """Run a quick machine; what is suspected of it."""
    watching = Watching(quick.function, frozenset(quick.state.tensors))
    quick.run(*watching(quick))
    return watching.suspects


@pytest.mark.parametrize("name", sorted(FORMS))
def test_a_right_kernel_is_not_suspected_and_leaves_the_same(name: str) -> None:
    plain, quick = machine_of(FORMS[name], name, late=True, exact=True), _quick(name)
    plain.run()
    assert not _suspects(quick)
    assert quick.state.spent == plain.state.spent
    for parameter in plain.state.tensors:
        for a, b in zip(plain.pages(parameter).outcome(0), quick.pages(parameter).outcome(0), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("name", "call", "number"),
    [
        ("gemm_stmatrix", "tvm_storage_sync", 0),
        ("gemm_stmatrix", "tvm_storage_sync", 2),
        ("gemm_stmatrix", "fence_proxy_async", 0),
        ("gemm_stmatrix", "mbarrier_wait_parity", 1),
        ("tma_2d", "tvm_storage_sync", 1),
        ("tma_2d", "tvm_storage_sync", 2),
        ("reduce_fp32", "tvm_storage_sync", 0),
        ("reduce_fp32", "fence_proxy_async", 0),
    ],
)
def test_a_race_is_suspected_and_found_where_it_is(name: str, call: str, number: int) -> None:
    """Whoever watches nothing but what a glance suspects finds the same races, accesses included."""
    quick = _quick(name, call, number)
    found = _suspects(quick)
    assert found
    everywhere, there = (_races(quick, suspects) for suspects in (None, found))
    assert everywhere
    assert there == everywhere


def _races(quick: Machine, suspects: Suspects | None) -> list[object]:
    """The races of a quick machine's kernel, run plainly, and the buffers that were accessed."""
    options = replace(quick.options, plain=True)
    plain = Machine(quick.function, quick.extents, quick.worlds, quick.state.tensors, quick.scalars, options)
    watching = Watching(plain.function, frozenset(plain.state.tensors), suspects=suspects)
    plain.run(*watching(plain))
    watch = watching.watches[0]
    found = [
        (race.buffer, race.index, race.missing, *map(_access, (race.first, race.second)))
        for race in watch.races.values()
    ]
    return [found, watch.buffers] if found else []


def _access(access: Access) -> tuple[object, ...]:
    return access.kind, access.proxy, access.block, access.thread, id(access.origin.stmt), access.origin.loops


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.name.removesuffix(".snapshot.json"))
def test_executions_are_equal(file: Path) -> None:
    """But for the statements: a quick run leaves out the early copies of which it knows that they change nothing."""
    snapshot = codec.loads(file.read_text())
    quick, plain = execute(snapshot, Request()), execute(snapshot, Request(plain=True))
    assert quick == replace(plain, statements=quick.statements)


def test_loops_of_mma_and_of_copies_leave_the_same() -> None:
    """A pipelined gemm for sm_80: each step is eight copies, and two rounds of ldmatrix and mma."""
    snapshot = codec.loads((ERA.parent / "wrong" / "wait-0.1.9.snapshot.json").read_text())
    plain, quick = (levels_of(snapshot, Request(blocks=2)).invocations().lowered() for _ in range(2))
    plain.options = replace(plain.options, late=False)  # its wait is missing: late, all of it is poison
    quick.options = replace(plain.options, plain=False)
    plain.run()
    quick.run()
    assert quick.spent == plain.spent
    for seed in (0, 1):
        for a, b in zip(plain.left["C"].outcome(seed), quick.left["C"].outcome(seed), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
            assert np.isfinite(a).all()


# ---- which loops

THREADS, COUNT = 32, 8


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


TX, STEP, INNER = _var("tx", 1), _var("i", 2), _var("j", 6)
A = Buffer("A", "float32", (_int(2 * COUNT * THREADS),), "global", _var("A", 3, "handle"))
LOCAL = Buffer("r", "float32", (_int(2 * COUNT),), "local", _var("r", 4, "handle"))
OTHER = Buffer("t", "float32", (_int(2 * COUNT),), "local", _var("t", 7, "handle"))
SHARED = Buffer("s", "float32", (_int(2 * COUNT * THREADS),), "shared", _var("s", 5, "handle"))
WORDS = Buffer("s", "uint32", (_int(2 * COUNT * THREADS),), "shared", SHARED.data)
BYTES = Buffer("t", "int8", (_int(8 * COUNT),), "local", OTHER.data)
SUM = Buffer("r", "int32", (_int(2 * COUNT),), "local", LOCAL.data)


def _sum(*terms: Expr) -> Expr:
    first, *more = terms
    for term in more:
        first = Expr("add", first.dtype, (first, term))
    return first


def _cast(e: Expr) -> Expr:
    return Expr("cast", "float32", (e,))


def _load(buffer: Buffer, index: Expr) -> Expr:
    return Expr("load", "float32", (index,), None, 0, buffer)


def _address(buffer: Buffer, index: Expr) -> Expr:
    return Expr("call", "handle", (_load(buffer, index),), "address_of")


def _bits(e: Expr) -> Expr:
    return Expr("call", "uint32", (e,), "reinterpret")


def _bytes(at: int) -> Expr:
    """Registers as DP4A takes them: bytes, and from 0 on a sum."""
    return _address(SUM if at == 0 else BYTES, _int(at))


ROW = _sum(Expr("mul", "int32", (STEP, _int(THREADS))), TX)
A_ROW, LESS = _load(A, ROW), Expr("lt", "bool", (STEP, _int(3)))
BODIES: dict[str, tuple[Stmt, bool]] = {
    "own register": (Store(LOCAL, (STEP,), _sum(_load(LOCAL, STEP), _load(A, ROW))), True),
    "two registers": (Store(LOCAL, (_sum(STEP, _int(COUNT)),), _sum(_load(LOCAL, STEP), _load(A, ROW))), True),
    "the one before": (Store(LOCAL, (_sum(STEP, _int(1)),), _load(LOCAL, STEP)), False),
    "written first": (Seq((Store(OTHER, (_int(9),), A_ROW), Store(LOCAL, (STEP,), _load(OTHER, _int(9))))), True),
    "read first": (Seq((Store(LOCAL, (STEP,), _load(OTHER, _int(9))), Store(OTHER, (_int(9),), A_ROW))), False),
    "written here and there": (
        Seq((Store(OTHER, (_int(9),), A_ROW, LESS), Store(LOCAL, (STEP,), _load(OTHER, _int(9))))),
        False,
    ),
    "what remains is of many": (
        Seq((Store(LOCAL, (_int(9),), A_ROW), Store(LOCAL, (STEP,), _load(LOCAL, _int(9))))),
        False,
    ),
    "a loop within": (
        Seq(
            (
                For(INNER, _int(0), _int(2), "unrolled", Store(OTHER, (INNER,), _sum(A_ROW, _cast(INNER)))),
                Store(LOCAL, (STEP,), _sum(_load(OTHER, _int(0)), _load(OTHER, _int(1)))),
            )
        ),
        True,
    ),
    "a loop that begins where the step is": (
        For(INNER, _int(0), _int(2), "unrolled", Store(LOCAL, (_sum(STEP, INNER),), _load(LOCAL, STEP))),
        False,
    ),
    "one sum": (Store(LOCAL, (_int(0),), _sum(_load(LOCAL, _int(0)), _load(A, ROW))), False),
    "to shared": (Store(SHARED, (ROW,), _load(A, ROW)), True),
    "within shared": (Store(SHARED, (ROW,), _load(SHARED, ROW)), False),
    "both ways": (Seq((Store(LOCAL, (STEP,), _load(SHARED, ROW)), Store(SHARED, (ROW,), _load(LOCAL, STEP)))), False),
    "words to shared": (Evaluate(Expr("call", "handle", (_address(SHARED, ROW), _bits(A_ROW)), "sts32")), True),
    "words within shared": (
        Evaluate(Expr("call", "handle", (_address(SHARED, ROW), _bits(_load(SHARED, ROW))), "sts32")),
        False,
    ),
    "an atomic or": (
        Evaluate(Expr("call", "handle", (_load(WORDS, TX), _bits(A_ROW)), "atomic_or_elem_op")),
        True,
    ),
    "a dot product added to its own sum": (
        Evaluate(Expr("call", "handle", (Expr("str", "", value="DP4A"), *map(_bytes, (8, 12, 0))), "call_extern")),
        False,
    ),
    "in the tensor": (Store(A, (ROW,), _sum(_load(A, ROW), _load(A, TX))), False),
}


def _registers(body: Stmt, plain: bool) -> list[Array]:
    """Return what a loop leaves of registers and shared memory."""
    given = Store(LOCAL, (STEP,), Expr("cast", "float32", (STEP,)))
    loops = (For(STEP, _int(0), _int(2 * COUNT), "serial", given), For(STEP, _int(0), _int(COUNT), "unrolled", body))
    inner = Thread(TX, "threadIdx.x", _int(THREADS), Seq((Alloc(LOCAL), Alloc(OTHER), Alloc(SHARED), *loops)))
    tensor = Tensor(kind_of("float32"), 2 * COUNT * THREADS, lambda seed, numbers: numbers)
    function = Function("main", (A.data,), (A,), (), inner)
    machine = Machine(function, (THREADS, 1, 1), [World(0), World(1)], {"A": tensor}, {}, Options(False, plain=plain))
    machine.run()
    return [machine.state.memory[buffer.data.uid].flat for buffer in (LOCAL, OTHER, SHARED)]


@pytest.mark.parametrize("name", sorted(BODIES))
def test_iterations_that_depend_on_one_another_stay_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, together = BODIES[name]
    seen: list[bool] = []

    def watched(stmt: For, program: KernelProgram) -> object:
        step = at_once(stmt, program)
        if stmt.body is body:
            seen.append(step is not None)
        return step

    monkeypatch.setattr("tlcheck.execute.compile.statements.at_once", watched)
    quick, plain = _registers(body, plain=False), _registers(body, plain=True)
    for a, b in zip(quick, plain, strict=True):
        np.testing.assert_array_equal(a, b)
    assert seen == [together, False]


def test_one_number_for_all_lanes_lands_too() -> None:
    """A predicate leaves out a zero that has no shape."""
    memory = Cells(16, (kind_of("float32"),), (0,), 1)
    place = SimpleNamespace(observers=Observers(), memory=memory, kind=kind_of("float32"))
    lanes = np.ones((1, 32), np.bool_)
    Copy(cast(BufferElement, place), np.array([[[1]]]), np.array(0.0), lanes).land(lanes)
    assert memory.data[1, 0, 0] == 0.0
    assert is_poison(memory.data[0, 0]).all()


def test_a_loop_at_once_within_another_has_the_worlds_of_both() -> None:
    """Also one with a single step."""
    cells, kind = Cells(4, (kind_of("float32"),), (0, 1), 32), kind_of("float32")
    for inner in (1, 5):
        within = cells.repeated(3).repeated(inner)
        assert within.take(within.locate(0, kind, 0), kind).shape == (2 * 3 * inner, 32)


@pytest.mark.parametrize("unbound", [False, True], ids=["let", "of the loop"])
def test_what_is_made_where_it_is_used_has_the_worlds_of_all_iterations(unbound: bool) -> None:
    """A variable with a let in it, and one that is bound before its loop, of blocks that differ."""
    block, x, v = _var("bx", 920), _var("x", 921), _var("v", 922)
    value = Expr("let", "int32", (v, _int(2), _sum(block, v)))
    bound = Bind(x, _sum(block, STEP, _int(2)) if unbound else value)
    at = _sum(Expr("mul", "int32", (x, _int(THREADS))), TX)
    loop = For(STEP, _int(0), _int(1 if unbound else COUNT), "unrolled", Store(LOCAL, (STEP,), _load(A, at)))
    body = Thread(TX, "threadIdx.x", _int(THREADS), Seq((Alloc(LOCAL), bound, loop)))
    tensor = Tensor(kind_of("float32"), 8 * THREADS, lambda seed, numbers: numbers)
    function = Function("main", (A.data,), (A,), (), Thread(block, "blockIdx.x", _int(4), body))
    worlds = [World(0, (n, 0, 0)) for n in range(3)]
    machine = Machine(function, (THREADS, 1, 1), worlds, {"A": tensor}, {}, Options(False, plain=False))
    machine.run()
    left = machine.state.memory[LOCAL.data.uid].flat.reshape(-1, 3, THREADS)[0]
    np.testing.assert_array_equal(left, (np.arange(3)[:, None] + 2) * THREADS + np.arange(THREADS))
