"""mma, ldmatrix and cp.async against the formulas of the PTX manual, written down here once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import Array, is_poison, kind_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Alloc, Buffer, Evaluate, Expr, For, Function, Seq, Stmt, Store, Thread

registry.load()
WARPS = 2
THREADS = 32 * WARPS


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


TX, STEP = _var("tx", 1), _var("i", 2)


def _op(op: str, a: Expr, b: Expr) -> Expr:
    return Expr(op, "int32", (a, b))


def _buffer(name: str, uid: int, dtype: str, size: int, scope: str) -> Buffer:
    return Buffer(name, dtype, (_int(size),), scope, _var(name, uid, "handle"))


def _load(buffer: Buffer, index: Expr) -> Expr:
    return Expr("load", buffer.dtype, (index,), None, 0, buffer)


def _address(buffer: Buffer, index: Expr) -> Expr:
    return Expr("call", "handle", (_load(buffer, index),), "address_of")


def _text(value: str) -> Expr:
    return Expr("str", "handle", (), value)


def _call(name: str, *args: Expr) -> Stmt:
    return Evaluate(Expr("call", "handle", args, name))


def _copied(target: Buffer, source: Buffer, count: int, to_registers: bool) -> Stmt:
    """Each thread's `count` elements, between registers and a global tensor of (threads, count)."""
    place = _op("add", _op("mul", TX, _int(count)), STEP)
    at, of = (STEP, place) if to_registers else (place, STEP)
    return For(STEP, _int(0), _int(count), "serial", Store(target, (at,), _load(source, of)))


def _run(body: list[Stmt], tensors: Mapping[Buffer, Array | None], late: bool = True) -> Machine:
    """Run one block of `THREADS` threads."""
    inputs = {}
    for buffer, values in tensors.items():
        size, kind = int(buffer.shape[0].value or 0), kind_of(buffer.dtype)

        def contents(seed: int, numbers: Array, values: Array | None = values) -> Array | None:
            return None if values is None else values.reshape(-1)[numbers]

        inputs[str(buffer.data.value)] = Tensor(kind, size, contents)
    params = tuple(buffer.data for buffer in tensors)
    function = Function("main", params, tuple(tensors), (), Thread(TX, "threadIdx.x", _int(THREADS), Seq(tuple(body))))
    machine = Machine(function, (THREADS, 1, 1), [World(0)], inputs, {}, Options(False, late=late))
    machine.run()
    return machine


# PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", and the others of that section. For thread
# group g and place t in it: row and column of the i-th element.
Where = Callable[[int, int, int], tuple[int, int]]
FRAGMENTS: dict[str, tuple[str, str, int, tuple[int, int], Where, Where]] = {
    "m16n8k16 fp16": (
        "float16",
        "fp32",
        16,
        (8, 4),
        lambda g, t, i: (g if i < 2 or 4 <= i < 6 else g + 8, t * 2 + (i & 1) + (8 if i >= 4 else 0)),
        lambda g, t, i: (t * 2 + (i & 1) + (8 if i >= 2 else 0), g),
    ),
    "m16n8k8 bf16": (
        "bfloat16",
        "fp32",
        8,
        (4, 2),
        lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
        lambda g, t, i: (t * 2 + i, g),
    ),
    "m16n8k8 tf32": (
        "float32",
        "fp32",
        8,
        (4, 2),
        lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
        lambda g, t, i: (t if i == 0 else t + 4, g),
    ),
    "m16n8k4 tf32": (
        "float32",
        "fp32",
        4,
        (2, 1),
        lambda g, t, i: (g if i == 0 else g + 8, t),
        lambda g, t, i: (t, g),
    ),
    "m16n8k32 int8": (
        "int8",
        "int32",
        32,
        (16, 8),
        lambda g, t, i: (g if i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) + (16 if i >= 8 else 0)),
        lambda g, t, i: (t * 4 + (i & 3) + (16 if i >= 4 else 0), g),
    ),
    "m16n8k16 int8": (
        "int8",
        "int32",
        16,
        (8, 4),
        lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
        lambda g, t, i: (t * 4 + i, g),
    ),
    "m16n8k32 e5m2": (
        "float8_e5m2",
        "fp32",
        32,
        (16, 8),
        lambda g, t, i: (g if i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) + (16 if i >= 8 else 0)),
        lambda g, t, i: (t * 4 + (i & 3) + (16 if i >= 4 else 0), g),
    ),
    "m16n8k8 fp64": (
        "float64",
        "fp64",
        8,
        (4, 2),
        lambda g, t, i: (g if i % 2 == 0 else g + 8, t if i < 2 else t + 4),
        lambda g, t, i: (t + 4 * i, g),
    ),
    "m8n8k4 fp64": ("float64", "fp64", 4, (1, 1), lambda g, t, i: (g, t), lambda g, t, i: (t, g)),
}


def _held(matrices: Array, where: Where, count: int) -> Array:
    """Return what the threads hold of one matrix for each warp: (threads, count)."""
    held = [[matrices[w][where(t // 4, t % 4, i)] for i in range(count)] for w in range(WARPS) for t in range(32)]
    return np.array(held)


@pytest.mark.parametrize("name", FRAGMENTS)
def test_mma_multiplies_what_the_fragments_hold(name: str) -> None:
    """D = A B + C, with A, B and C spread over the threads as the manual says."""
    dtype, total, k, (a_count, b_count), a_where, b_where = FRAGMENTS[name]
    shape, kind = name.split()
    rows, c_dtype = int(shape[1 : shape.index("n")]), {"fp32": "float32", "fp64": "float64", "int32": "int32"}[total]
    c_count = rows // 4

    def c_where(g: int, t: int, i: int) -> tuple[int, int]:
        return (g if i < 2 else g + 8), t * 2 + (i & 1)

    random = np.random.default_rng(7)
    a, b, c = (random.integers(-5, 6, (WARPS, m, n)) for m, n in ((rows, k), (k, 8), (rows, 8)))
    held = {
        "A": (_held(a, a_where, a_count), dtype, a_count),
        "B": (_held(b, b_where, b_count), dtype, b_count),
        "C": (_held(c, c_where, c_count), c_dtype, c_count),
    }
    tensors: dict[Buffer, Array | None] = {}
    body: list[Stmt] = []
    registers = {}
    for number, (letter, (values, of, count)) in enumerate(held.items()):
        tensor = _buffer(letter, 10 + number, of, values.size, "global")
        registers[letter] = _buffer(f"{letter}_local", 20 + number, of, count, "local")
        tensors[tensor] = values.astype(kind_of(of).array)
        body += [Alloc(registers[letter]), _copied(registers[letter], tensor, count, True)]
    out = _buffer("D", 30, c_dtype, THREADS * c_count, "global")
    tensors[out] = None
    operands = [x for letter in "ABC" for x in (registers[letter].data, _int(0))]
    words = [_text(x) for x in (shape, "row", "col", kind, kind, total)]
    body += [_call("ptx_mma", *words, *operands, _int(0)), _copied(out, registers["C"], c_count, False)]
    _, values = _run(body, tensors).pages("D").outcome(0)
    expected = _held(np.matmul(a, b) + c, c_where, c_count)
    np.testing.assert_array_equal(values.reshape(THREADS, c_count), expected)


def test_mma_of_an_unknown_shape_is_named() -> None:
    registers = _buffer("r", 40, "float16", 64, "local")
    words = [_text(x) for x in ("m16n8k64", "row", "col", "fp16", "fp16", "fp32")]
    operands = [x for _ in range(3) for x in (registers.data, _int(0))]
    with pytest.raises(NotModelled, match="m16n8k64"):
        _run([Alloc(registers), _call("ptx_mma", *words, *operands, _int(0))], {})


@pytest.mark.parametrize(
    ("shape", "kinds", "said"),
    [
        ("m16n8k8", ("int32", "int32", "int32"), "int32 by int32 into int32"),
        ("m16n8k32", ("int8", "int8", "fp32"), "int8 by int8 into float32"),
        ("m16n8k16", ("bf16", "bf16", "bf16"), "bfloat16 by bfloat16 into bfloat16"),
        ("m16n8k16", ("fp16", "bf16", "fp32"), "float16 by bfloat16 into float32"),
    ],
)
def test_mma_of_types_that_no_instruction_has_is_named(shape: str, kinds: tuple[str, str, str], said: str) -> None:
    """Nvcc refuses them: `tl::mma_sync: unsupported configuration`."""
    registers = _buffer("r", 40, "int32", 64, "local")
    words = [_text(x) for x in (shape, "row", "col", *kinds)]
    operands = [x for _ in range(3) for x in (registers.data, _int(0))]
    with pytest.raises(NotModelled, match=said):
        _run([Alloc(registers), _call("ptx_mma", *words, *operands, _int(0))], {})


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize(
    ("dtype", "transposed", "old"),
    [("float16", False, False), ("float16", True, False), ("float16", True, True), ("int8", False, False)],
)
def test_ldmatrix_spreads_rows(dtype: str, transposed: bool, old: bool, number: int) -> None:
    """Thread t gets of matrix i the units 2 (t % 4) and 2 (t % 4) + 1 of row t / 4, or of its transpose (PTX ISA)."""
    per_row = 16 // (kind_of(dtype).bits // 8)
    per_register = per_row // 4
    source = np.random.default_rng(3).permutation(WARPS * 8 * number * per_row) % 127
    a = _buffer("A", 10, dtype, source.size, "global")
    shared = _buffer("S", 11, dtype, source.size, "shared")
    registers = _buffer("r", 12, dtype, number * per_register, "local")
    out = _buffer("D", 13, dtype, THREADS * number * per_register, "global")
    each = -(-source.size // THREADS)
    fill = Store(
        shared, (_op("add", _op("mul", TX, _int(each)), STEP),), _load(a, _op("add", _op("mul", TX, _int(each)), STEP))
    )
    warp, lane = _op("floordiv", TX, _int(32)), _op("floormod", TX, _int(8 * number))
    row = _op("mul", _op("add", _op("mul", warp, _int(8 * number)), lane), _int(per_row))
    flags = (Expr("int", "bool", (), int(transposed)), _int(number))
    if old:
        load = _call("ptx_ldmatrix", *flags, _text(".b16"), registers.data, _int(0), _address(shared, row), _int(0))
    else:
        load = _call("ptx_ldmatrix", *flags, _address(shared, row), _address(registers, _int(0)))
    body = [Alloc(shared), Alloc(registers), For(STEP, _int(0), _int(each), "serial", fill), load]
    body.append(_copied(out, registers, number * per_register, False))
    machine = _run(body, {a: source.astype(kind_of(dtype).array), out: None})
    matrices = source.reshape(WARPS, number, 8, per_row)
    expected = []
    for thread in range(THREADS):
        for i in range(number):
            matrix = matrices[thread // 32, i].T if transposed else matrices[thread // 32, i]
            t = thread % 32
            expected += matrix[t // 4, (t % 4) * per_register :][:per_register].tolist()
    assert machine.pages("D").outcome(0)[1].tolist() == expected


def _pipeline(wait: int) -> list[Stmt]:
    """Two groups of copies from A to S, a wait, then both halves of S to D."""
    a, shared, out = (_buffer(n, u, "float32", 2 * THREADS, s) for n, u, s in COPIES)
    body: list[Stmt] = [Alloc(shared)]
    for half in range(2):
        at = _op("add", TX, _int(half * THREADS))
        body += [_call("ptx_cp_async", _address(shared, at), _address(a, at), _int(1)), _call("ptx_commit_group")]
    body.append(_call("ptx_wait_group", _int(wait)))
    for half in range(2):
        at = _op("add", TX, _int(half * THREADS))
        body.append(Store(out, (at,), _load(shared, at)))
    return body


COPIES = (("A", 10, "global"), ("S", 11, "shared"), ("D", 12, "global"))


@pytest.mark.parametrize(
    ("wait", "late", "poisoned"), [(0, True, ()), (1, True, (1,)), (2, True, (0, 1)), (2, False, ())]
)
def test_a_copy_is_there_when_its_group_was_waited_for(wait: int, late: bool, poisoned: tuple[int, ...]) -> None:
    """cp.async.wait_group n leaves the newest n groups under way: what they copy is poison, where copies are late."""
    values = np.arange(2.0 * THREADS) + 1
    a, _, out = (_buffer(n, u, "float32", 2 * THREADS, s) for n, u, s in COPIES)
    machine = _run(_pipeline(wait), {a: values, out: None}, late)
    found = machine.pages("D").outcome(0)[1].reshape(2, THREADS)
    for half in range(2):
        if half in poisoned:
            assert is_poison(found[half]).all()
        else:
            np.testing.assert_array_equal(found[half], values.reshape(2, THREADS)[half])


def test_a_predicated_copy_brings_zeros() -> None:
    """Nothing is read and zeros arrive if the predicate is false (cp.async with a source size of 0)."""
    a, shared, out = (_buffer(n, u, "float32", THREADS, s) for n, u, s in COPIES)
    holds = Expr("lt", "bool", (TX, _int(10)))
    beyond = Expr("select", "int32", (holds, TX, _int(10**6)))
    body = [
        Alloc(shared),
        _call("ptx_cp_async", _address(shared, TX), _address(a, beyond), _int(1), holds),
        _call("ptx_commit_group"),
        _call("ptx_wait_group", _int(0)),
        Store(out, (TX,), _load(shared, TX)),
    ]
    found = _run(body, {a: np.ones(THREADS), out: None}).pages("D").outcome(0)[1]
    assert found.tolist() == [1.0] * 10 + [0.0] * (THREADS - 10)
