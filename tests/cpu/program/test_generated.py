"""Calls of which the generated CUDA makes something else."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import buffer, call, load, number, text
from tlcheck.program.generated import departures, is_never_false, lost_values, of_halves, refusals
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, Function, Store
from tlcheck.targets.lookup import target


@pytest.mark.parametrize(
    ("name", "lost"),
    [("atomic_max_elem_op", True), ("atomic_addx2_elem_op", True), ("atomic_max_ret_elem_op", False)],
)
def test_values_of_atomics_that_return_none(name: str, lost: bool) -> None:
    call = Expr("call", "int32", (), name)
    more = Expr("add", "int32", (call, Expr("int", "int32", (), 1)))
    target = Buffer("O", "int32", (), "global", Expr("var", "handle", (), "O", 1))
    assert [bool(list(lost_values(s))) for s in (Store(target, (), more), Evaluate(more))] == [lost, lost]
    assert not list(lost_values(Evaluate(call)))


SM_90, GFX942 = target("sm_90"), target("gfx942")


def function(value: Expr) -> Function:
    target = Buffer("O", value.dtype, (), "global", Expr("var", "handle", (), "O", 1))
    return Function("f", (), (target,), (), Store(target, (), value))


def given(dtype: str) -> Expr:
    return Expr("load", dtype, (), None, 0, Buffer("I", dtype, (), "global", Expr("var", "handle", (), "I", 2)))


@pytest.mark.parametrize(
    ("name", "dtype", "refused", "accepted"),
    [
        ("hexp2", "float16", Release.of("0.1.13"), Release.of("0.1.14")),
        ("hrsqrt", "bfloat16", Release.of("0.1.7"), Release.of("0.1.15")),
        ("htanh", "bfloat16", Release.of("0.1.14"), Release.of("0.1.15")),
        ("hrsqrt", "float16", None, Release.of("0.1.7")),
        ("hexp", "float16", Release.of("0.1.12"), Release.of("0.1.11")),
        ("hlog1p", "bfloat16", Release.of("0.1.15"), None),
    ],
)
def test_functions_that_nvcc_refuses_of_a_scalar(
    name: str, dtype: str, refused: Release | None, accepted: Release | None
) -> None:
    """A vector's lanes are CUDA's own types, which have them."""
    named, lanes = Expr("str", "", (), name), f"{dtype}x2"
    scalar = function(Expr("call", dtype, (named, given(dtype)), "call_pure_extern"))
    vector = function(Expr("call", lanes, (named, given(lanes)), "call_pure_extern"))
    if refused:
        assert list(refusals(scalar, refused, SM_90)) == [f"{name} of {dtype}, which nvcc refuses"]
        assert not list(refusals(vector, refused, SM_90))
    if accepted:
        assert not list(refusals(scalar, accepted, SM_90))


@pytest.mark.parametrize("lanes", ["", "x2", "x4"])
@pytest.mark.parametrize(("source", "refused"), [("int64", True), ("uint64", True), ("int32", False)])
@pytest.mark.parametrize("release", ["0.1.6.post2", "0.1.15"])
def test_casts_that_nvcc_refuses(source: str, lanes: str, refused: bool, release: str) -> None:
    cast = function(Expr("cast", f"float16{lanes}", (given(source + lanes),)))
    words = [f"a cast of {source}{lanes} to float16{lanes}, which nvcc refuses"] if refused else []
    assert list(refusals(cast, Release.of(release), SM_90)) == words


@pytest.mark.parametrize(
    ("lanes", "release", "refused"), [("x4", "0.1.13", True), ("x4", "0.1.14", False), ("", "0.1.13", False)]
)
def test_a_choice_by_a_vector_of_conditions(lanes: str, release: str, refused: bool) -> None:
    """`ushort4 ? float4 : float4`: nvcc 13.0 and hipcc want a truth value."""
    given_two = (given(f"float32{lanes}"), given(f"float32{lanes}"))
    chosen = function(Expr("select", f"float32{lanes}", (Expr("lt", f"bool{lanes}", given_two), *given_two)))
    for arch, compiler in ((SM_90, "nvcc"), (GFX942, "hipcc")):
        words = [f"a choice by a vector of conditions (float32x4), which {compiler} refuses"] if refused else []
        assert list(refusals(chosen, Release.of(release), arch)) == words


@pytest.mark.parametrize(
    ("dtype", "lanes", "release", "refused"),
    [
        ("uint8", 32, "0.1.12", True),
        ("uint8", 32, "0.1.13", False),
        ("uint8", 16, "0.1.12", False),
        ("int32", 8, "0.1.12", False),
    ],
)
def test_equal_bytes_of_256_bits(dtype: str, lanes: int, release: str, refused: bool) -> None:
    """`make_ulonglong4` of 32 arguments."""
    equal = function(Expr("broadcast", f"{dtype}x{lanes}", (given(dtype),), lanes))
    words = ["32 lanes of 8 bits that are no constant, which nvcc refuses"] if refused else []
    assert list(refusals(equal, Release.of(release), SM_90)) == words


@pytest.mark.parametrize(
    ("value", "release", "refused"),
    [
        (Expr("not", "boolx4", (given("boolx4"),)), "0.1.13", "nvcc hipcc"),
        (Expr("not", "boolx4", (given("boolx4"),)), "0.1.14", ""),
        (Expr("not", "bool", (given("bool"),)), "0.1.13", ""),
        (Expr("call", "int32x4", (given("int32x4"),), "bitwise_not"), "0.1.14", "nvcc"),
        (Expr("call", "int32x4", (given("int32x4"),), "bitwise_not"), "0.1.15", ""),
        (Expr("call", "int8x4", (given("int8x4"),), "bitwise_not"), "0.1.14", ""),
        (Expr("call", "int8x2", (given("int8x2"),), "bitwise_not"), "0.1.14", "nvcc"),
        (Expr("call", "boolx4", (given("boolx4"),), "bitwise_not"), "0.1.14", "nvcc"),
    ],
)
def test_vectors_that_are_turned_over(value: Expr, release: str, refused: str) -> None:
    """`!ushort4` (issue 3021, pull request 3117), `~int4` (issue 2993): a char4 is an int."""
    sign = "!" if value.op == "not" else "~"
    for arch, compiler in ((SM_90, "nvcc"), (GFX942, "hipcc")):
        words = [f"{sign} of a vector ({value.dtype}), which {compiler} refuses"] if compiler in refused else []
        assert list(refusals(function(value), Release.of(release), arch)) == words


def test_bools_that_hip_packs() -> None:
    """Eight and more: a bit for each, where the others are ints of 16 bits."""
    for lanes, words in (("x4", []), ("x8", ["~ of boolx8, of which HIP has bits or ints"])):
        turned = Expr("call", f"bool{lanes}", (given(f"bool{lanes}"),), "bitwise_not")
        assert list(refusals(function(turned), Release.of("0.1.15"), GFX942)) == words
        assert is_never_false(turned, Release.of("0.1.15"), GFX942) == (not words)


def test_what_c_makes_of_small_integers_and_of_bool_is_told_of_hip_too() -> None:
    place = Buffer("O", "int32", (), "global", Expr("var", "handle", (), "O", 1))
    wide = Store(place, (), Expr("cast", "int32", (Expr("add", "uint8", (given("uint8"), given("uint8"))),)))
    turned = Store(place, (), Expr("cast", "int32", (Expr("call", "bool", (given("bool"),), "bitwise_not"),)))
    told = [
        [found.words for stmt in (wide, turned) for found in departures(stmt, Release.of("0.1.15"), arch)]
        for arch in (GFX942, SM_90, None)
    ]
    assert told[0] == ["uint8 + uint8 is an int in HIP", "~ of a bool is an int in HIP, which is never 0"]
    assert told[1] == told[2] == ["uint8 + uint8 is an int in CUDA"]


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8", "int4x8"])
def test_a_single_integer_of_four_bits_on_hip_is_a_word(dtype: str) -> None:
    loaded = function(Expr("cast", "int32", (given(dtype),)))
    words = (
        [f"single {dtype} of I, which HIP loads and stores as a word of eight"] if dtype in ("int4", "uint4") else []
    )
    assert list(refusals(loaded, Release.of("0.1.15"), GFX942)) == words
    stored = function(given(dtype))
    assert len(list(refusals(stored, Release.of("0.1.15"), GFX942))) == 2 * len(words)
    assert not list(refusals(loaded, Release.of("0.1.15"), SM_90))


@pytest.mark.parametrize(
    ("source", "target", "lanes", "cut"),
    [
        ("int32", "bfloat16", "", True),
        ("uint8", "bfloat16", "", False),
        ("int32", "float16", "", False),
        ("float32", "bfloat16", "", False),
        ("int32", "bfloat16", "x4", True),
        ("uint8", "bfloat16", "x4", False),
    ],
)
def test_integers_that_are_cut_off_in_bfloat16(source: str, target: str, lanes: str, cut: bool) -> None:
    """259 becomes 258, and not 260."""
    cast = function(Expr("cast", target + lanes, (given(source + lanes),)))
    assert list(of_halves(cast, Release.of("0.1.15"))) == (
        [(f"a cast of int32{lanes} to bfloat16{lanes}", False)] if cut else []
    )


@pytest.mark.parametrize(
    ("arch", "dtype", "other"),
    [
        ("gfx942", "float8_e4m3fn", "float8_e4m3fnuz"),
        ("gfx950", "float8_e5m2fnuz", "float8_e5m2"),
        ("gfx950", "float8_e4m3fn", ""),
        ("sm_90", "float8_e4m3fn", ""),
    ],
)
def test_hip_takes_eight_bits_for_the_archs_format(arch: str, dtype: str, other: str) -> None:
    place = buffer("B", "float32", (4,))
    cast = Store(place, (number(0),), Expr("cast", "float32", (load(buffer("A", dtype, (4,)), 0),)))
    types = [text(f"{dtype}x8"), text(f"{dtype}x8"), text("float32x4")]
    product = call("tvm_mfma", text("f32_16x16x32_fp8_fp8"), text("row"), text("row"), *types)
    words = [f"{arch} takes the bits of {dtype} for {other}"] if other else []
    for stmt in (cast, product):
        assert [found.words for found in departures(stmt, Release.of("0.1.15"), target(arch))] == words
