"""Kernels whose lowered form gives other results, on inputs or in blocks that do not run: none is proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.cpu.execute.ops.thread.test_hardware import FORMS
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.diagnosis import Diagnosis
from tlcheck.execute.request import Request
from tlcheck.execute.worlds.budget import Budget
from tlcheck.scope.block_scope import limit_of, missing, representatives
from tlcheck.snapshot.ir import Bind, Buffer, Evaluate, Expr, For, Function, Seq, Stmt, Store, Thread
from tlcheck.verdicts.execution_claims import claims_of

THREADS, BLOCKS = 32, 8
Make = Callable[[Expr], Expr]


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _float(value: float, dtype: str = "float32") -> Expr:
    return Expr("float", dtype, (), value)


def _var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


def _op(op: str, *args: Expr) -> Expr:
    return Expr(op, args[0].dtype, args)


def _cast(e: Expr, *dtypes: str) -> Expr:
    for dtype in dtypes:
        e = Expr("cast", dtype, (e,))
    return e


def _called(name: str, *args: Expr, dtype: str = "float32") -> Expr:
    return Expr("call", dtype, args, name)


def _tensor(name: str, uid: int, dtype: str = "float32", blocks: int = BLOCKS) -> Buffer:
    return Buffer(name, dtype, (_int(blocks * THREADS),), "global", _var(name, uid, "handle"))


def _load(buffer: Buffer, *indices: Expr) -> Expr:
    return Expr("load", buffer.dtype, indices, None, 0, buffer)


BX, TX, STEP = _var("bx", 1), _var("tx", 2), _var("i", 3)
PLACE = _op("add", _op("mul", BX, _int(THREADS)), TX)
# the block's own number in blocks 0, 3 and 7, which run; 3 in those between 3 and 7
WRONG = _op("add", _op("min", BX, _int(3)), _op("mul", _op("floordiv", BX, _int(7)), _int(4)))
RAN = ((0, 0, 0), (3, 0, 0), (7, 0, 0))


def _kernel(*body: Stmt, buffers: tuple[Buffer, ...], blocks: int = BLOCKS) -> Function:
    inner = Thread(TX, "threadIdx.x", _int(THREADS), Seq(body))
    params = tuple([buffer.data for buffer in buffers])
    return Function("main", params, buffers, (), Thread(BX, "blockIdx.x", _int(blocks), inner))


def _verdict(source: Function, lowered: Function, release: str = "0.1.15") -> str:
    """The verdict on C."""
    base = FORMS["gemm_store_fp32"]
    toolchain = {**base.toolchain, "tilelang": release}
    snapshot = replace(base, checkpoints={"source": source, "device-tir": lowered}, toolchain=toolchain, inputs="")
    request = Request(representatives=representatives)
    claims = claims_of(snapshot, Diagnosis(execute(snapshot, request), {}, None), request)
    return next(claim.verdict for claim in claims if claim.kind == "output")


def _elementwise(given: str, made: str, source: Make, lowered: Make, release: str = "0.1.15") -> str:
    a, c = _tensor("A", 11, given), _tensor("C", 12, made)
    first, second = (
        _kernel(Store(c, (PLACE,), make(_load(a, PLACE)), line=7), buffers=(a, c)) for make in (source, lowered)
    )
    return _verdict(first, second, release)


@pytest.mark.parametrize("made", ["float16", "float32"])
@pytest.mark.parametrize(
    ("given", "narrow"),
    [
        ("float8_e5m2", "float8_e4m3fn"),  # 1024 becomes 448
        ("float8_e4m3fn", "float4_e2m1fn"),  # 7 becomes 6
        ("float8_e4m3fn", "float6_e2m3fn"),  # 9 becomes 7.5
        ("float8_e5m2", "float8_e8m0fnu"),  # 1.25 becomes 1
    ],
)
def test_a_cast_between_narrow_types_is_no_identity(given: str, narrow: str, made: str) -> None:
    assert _elementwise(given, made, lambda a: _cast(a, narrow, made), lambda a: _cast(a, made)) != "proved"


def test_an_integer_of_a_narrow_type_is_rounded() -> None:
    """37 * 31 becomes 448."""
    number = _op("mul", TX, _int(37))

    def with_number(*dtypes: str) -> Make:
        return lambda a: _op("add", a, _cast(number, *dtypes))

    found = _elementwise("float32", "float32", with_number("float8_e4m3fn", "float32"), with_number("float32"))
    assert found != "proved"


def test_products_in_a_narrow_type_are_rounded() -> None:
    """1.25 * 1.25 becomes 1.5."""
    found = _elementwise(
        "float8_e5m2",
        "float32",
        lambda a: _cast(_op("mul", a, a), "float32"),
        lambda a: _op("mul", _cast(a, "float32"), _cast(a, "float32")),
    )
    assert found != "proved"


def test_a_constant_of_a_narrow_type_is_rounded() -> None:
    found = _elementwise(
        "float32",
        "float32",
        lambda a: _op("add", a, _cast(_float(1000.3, "float8_e4m3fn"), "float32")),
        lambda a: _op("add", a, _float(1000.3)),
    )
    assert found != "proved"


def test_a_round_that_means_two_things_is_no_formula() -> None:
    """0.5 becomes 0 as T.nearbyint, 1 as CUDA's round."""

    def make(a: Expr) -> Expr:
        return _called("round", a)

    assert _elementwise("float32", "float32", make, make, "0.1.7") != "proved"


def test_a_fast_power_has_no_negative_base() -> None:
    found = _elementwise(
        "float32",
        "float32",
        lambda a: _called("pow", a, _float(2.0)),
        lambda a: _called("__powf", a, _float(2.0)),
    )
    assert found != "proved"


def test_a_pointer_to_a_strided_tensor_is_seen_through() -> None:
    c, p = _tensor("C", 12), _var("p", 40, "handle")
    a = replace(_tensor("A", 11), shape=(_int(BLOCKS), _int(THREADS)), strides=(_int(33), _int(1)))
    view = Buffer("view", "float32", (_int(264),), "global", p)
    source = _kernel(Store(c, (PLACE,), _load(a, BX, TX), line=7), buffers=(a, c))
    wrong = _load(view, _op("add", _op("mul", WRONG, _int(33)), TX))
    assert _verdict(source, _kernel(Bind(p, a.data), Store(c, (PLACE,), wrong, line=7), buffers=(a, c))) != "proved"


@pytest.mark.parametrize("make", [lambda a: _called("address_of", _load(a, _int(0)), dtype="handle"), lambda a: a.data])
def test_the_map_of_an_address_is_of_its_tensor(make: Callable[[Buffer], Expr]) -> None:
    a, c = _tensor("A", 11), _tensor("C", 12)
    s = Buffer("S", "float32", (_int(THREADS),), "shared", _var("S", 30, "handle"))
    map_, barrier = _var("A_desc", 50, "handle"), _var("barrier", 51, "handle")
    #         type, rank, base, size, stride in bytes, box, element stride, interleave, swizzle, promotion, fill
    fields = (_int(7), _int(1), make(a), *map(_int, (256, 4, THREADS, 1, 0, 0, 0, 0)))
    to = _called("address_of", _load(s, _int(0)), dtype="handle")
    load = _called("tma_load", map_, barrier, to, _op("mul", WRONG, _int(THREADS)), _int(0), dtype="handle")
    source = _kernel(Store(c, (PLACE,), _load(a, PLACE), line=7), buffers=(a, c))
    lowered = _kernel(Evaluate(load, line=3), Store(c, (PLACE,), _load(s, TX), line=7), buffers=(a, c))
    described = replace(lowered, descriptors=((map_, _called("create_tma_descriptor", *fields, dtype="handle")),))
    assert limit_of(source, described, {}, RAN) is not None


def _vectors() -> Stmt:
    """`C[base + i : base + i + 8 : 2] = A[...] * (i + 1)` for i < 4."""
    a, c = _tensor("A", 11), _tensor("C", 12, blocks=16 * BLOCKS)
    at = Expr("ramp", "int32x4", (_op("add", _op("mul", PLACE, _int(16)), STEP), _int(2)), 4)
    value = _op("mul", _load(a, PLACE), _cast(_op("add", STEP, _int(1)), "float32"))
    return For(STEP, _int(0), _int(4), "serial", Store(c, (at,), Expr("broadcast", "float32x4", (value,), 4), line=7))


@pytest.mark.parametrize("first", [False, True])
def test_of_vectors_that_overlap_the_last_one_stays(first: bool) -> None:
    """Element k is written by each i of its parity up to k, from k - 6 on."""
    a, c = _tensor("A", 11), _tensor("C", 12, blocks=16 * BLOCKS)
    odd, half = _op("floormod", STEP, _int(2)), _op("floordiv", STEP, _int(8 if first else 2))
    by = _op("add", odd, _op("mul", _op("min", _int(1), half), _int(2)))
    value = _op("mul", _load(a, PLACE), _cast(_op("add", by, _int(1)), "float32"))
    store = Store(c, (_op("add", _op("mul", PLACE, _int(16)), STEP),), value, line=7)
    source = _kernel(For(STEP, _int(0), _int(10), "serial", store), buffers=(a, c))
    assert (_verdict(source, _kernel(_vectors(), buffers=(a, c))) == "proved") is not first


def test_a_tensor_that_only_the_lowered_kernel_writes_is_told() -> None:
    a, c = (_tensor(name, uid, blocks=2) for name, uid in (("A", 11), ("C", 12)))
    copy = Store(c, (PLACE,), _load(a, PLACE), line=7)
    source = _kernel(copy, buffers=(a, c), blocks=2)
    assert _verdict(source, _kernel(copy, Store(a, (PLACE,), _float(0.0)), buffers=(a, c), blocks=2)) != "proved"


@pytest.mark.parametrize(
    ("request_", "blocks"),
    [
        (Request(), [0, 1, 2, 3, 7]),
        (Request(blocks=3), [0, 3, 7]),
        (Request(budget=replace(Budget(), work=8 * THREADS)), [0, 3, 7]),
    ],
)
def test_more_blocks_run_if_then_one_of_each_class_does(request_: Request, blocks: list[int]) -> None:
    """Four classes by bx % 4, of which those that run anyhow have two."""
    a, c = _tensor("A", 11), _tensor("C", 12)
    value = _op("mul", _load(a, PLACE), _cast(_op("floormod", BX, _int(4)), "float32"))
    kernel = _kernel(Store(c, (PLACE,), value, line=7), buffers=(a, c))
    snapshot = replace(FORMS["gemm_store_fp32"], checkpoints={"source": kernel, "device-tir": kernel}, inputs="")
    found = execute(snapshot, replace(request_, representatives=representatives, missing=missing))
    assert [block[0] for block in found.blocks] == blocks
    assert (limit_of(kernel, kernel, {}, found.blocks) is None) is (len(blocks) > 3)
