"""Test what is known of atomics on HIP, against what clang 19 said of the header of 0.1.15 for gfx942."""

from __future__ import annotations

import pytest

from tlcheck.program.device_library import LibraryCall
from tlcheck.program.hip_library import behaviour

# Operation, type, form -> the instructions of gfx942 that clang made of it, in global memory and in LDS.
COMPILED = {
    "add int32": "global_atomic_add ds_add_u32",
    "add int32 returned": "global_atomic_add ds_add_rtn_u32",
    "add uint32": "global_atomic_add ds_add_u32",
    "add uint64": "global_atomic_add_x2 ds_add_u64",
    "add float32": "global_atomic_add_f32 ds_add_f32",
    "add float32 returned": "global_atomic_add_f32 ds_add_rtn_f32",
    "add float64": "global_atomic_add_f64 ds_add_f64",
    "max int32": "global_atomic_smax ds_max_i32",
    "max uint32": "global_atomic_umax ds_max_u32",
    "max uint64": "global_atomic_umax_x2 ds_max_u64",
    "max float32": "global_atomic_cmpswap ds_max_f32",
    "max float64": "global_atomic_cmpswap_x2 ds_max_f64",
    "min int32": "global_atomic_smin ds_min_i32",
    "min uint64": "global_atomic_umin_x2 ds_min_u64",
    "min float32": "global_atomic_cmpswap ds_min_f32",
    "or int32": "global_atomic_or ds_or_b32",
    "or uint32": "global_atomic_or ds_or_b32",
    "or uint64": "global_atomic_or_x2 ds_or_b64",
}
REFUSED = ("add int64", "add int8", "add int16", "max int64", "min int64", "or int64", "or float32", "or float64")
NO_FUNCTION = ("max int32 returned", "min int32 returned", "or int32 returned")


def call(text: str, shared: bool = False, order: int = 0) -> LibraryCall:
    operation, kind, *returned = text.split()
    return LibraryCall(operation, kind, kind, order=order, returns=bool(returned), shared=shared)


@pytest.mark.parametrize("text", COMPILED)
def test_instructions_are_those_that_the_compiler_made(text: str) -> None:
    for shared, instruction in enumerate(COMPILED[text].split()):
        found = behaviour("0.1.15", call(text, shared=bool(shared)))
        assert found is not None
        assert (found.verdict, found.instructions) == ("ok", (instruction,))


@pytest.mark.parametrize("text", REFUSED + NO_FUNCTION)
def test_what_the_compiler_refuses(text: str) -> None:
    for shared in (False, True):
        found = behaviour("0.1.15", call(text, shared))
        assert found is not None
        assert found.verdict == "does not compile"


def test_an_order_is_lost_where_the_function_does_not_use_it() -> None:
    for order, verdict in ((0, "ok"), (2, "order lost"), (5, "order lost")):
        found = behaviour("0.1.15", call("add int32", order=order))
        assert found is not None
        assert found.verdict == verdict
    for text, order in (("load int32", 2), ("store int32", 3)):
        found = behaviour("0.1.15", call(text, order=order))
        assert found is not None
        assert found.verdict == "ok"
    assert behaviour("0.1.15", call("load int32", order=3)) is None  # a load cannot release


def test_functions_come_with_releases() -> None:
    for text, first, before in (("or int32", "0.1.12", "0.1.11"), ("load int32", "0.1.14", "0.1.12")):
        verdicts = [found.verdict for r in (first, before) if (found := behaviour(r, call(text))) is not None]
        assert verdicts == ["ok", "does not compile"]


def test_vectors_are_added_float_by_float() -> None:
    for width in (2, 4):
        found = behaviour("0.1.15", LibraryCall("add", "float32", "float32", width, pointer=True))
        assert found is not None
        assert (found.verdict, found.aligned) == ("ok", (4, 4 * width))
    for kind, pointer in (("float16", True), ("bfloat16", False), ("float32", False)):
        refused = behaviour("0.1.15", LibraryCall("add", kind, kind, 2, pointer))
        assert refused is not None
        assert refused.verdict == "does not compile"


@pytest.mark.parametrize("text", ["add float16", "add bfloat16", "xor int32", "max bfloat16"])
def test_what_was_not_looked_at_is_not_known(text: str) -> None:
    assert behaviour("0.1.15", call(text)) is None
