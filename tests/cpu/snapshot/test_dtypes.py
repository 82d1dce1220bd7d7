"""Types of elements, as TVM's releases spell them."""

from __future__ import annotations

import pytest

from tlcheck.snapshot.dtypes import DType, dtype_of


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("float16", DType("float16", "float", 16)),
        ("bfloat16x2", DType("bfloat16", "float", 16, 2)),
        ("int32x4", DType("int32", "int", 32, 4)),
        ("uint8", DType("uint8", "uint", 8)),
        ("bool", DType("bool", "bool", 8)),
        ("boolx2", DType("bool", "bool", 8, 2)),
        ("uint1", DType("uint1", "uint", 1)),
        ("handle", DType("handle", "handle", 64)),
        ("tfloat32", DType("tfloat32", "float", 32)),
        ("float8_e4m3", DType("float8_e4m3", "float", 8)),
        ("float8_e4m3fnx4", DType("float8_e4m3fn", "float", 8, 4)),
        ("float8_e5m2fnuzx16", DType("float8_e5m2fnuz", "float", 8, 16)),
        ("float4_e2m1fnx2", DType("float4_e2m1fn", "float", 4, 2)),
        ("custom[float8_e4m3]8x2", DType("float8_e4m3", "float", 8, 2)),
        ("", DType("", "", 0)),
        ("void", DType("void", "", 0)),
    ],
)
def test_each_spelling_is_read(text: str, dtype: DType) -> None:
    assert dtype_of(text) == dtype


@pytest.mark.parametrize(
    ("text", "size"), [("float32x4", 16), ("float4_e2m1fn", 0.5), ("float4_e2m1fnx2", 1), ("bool", 1), ("handle", 8)]
)
def test_sizes_count_all_lanes(text: str, size: float) -> None:
    assert dtype_of(text).bytes == size


def test_truth_values_are_integral_and_unknown_types_are_not() -> None:
    found = [dtype_of(text).is_integral for text in ("int64", "uint8x4", "bool", "float16", "handle", "void")]
    assert found == [True, True, True, False, False, False]
