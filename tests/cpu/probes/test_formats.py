from __future__ import annotations

import numpy as np
import pytest

from tlcheck.probes.formats import decode, encode, holds

AWKWARD = [
    0.0,
    -0.0,
    1.0,
    -2.25,
    1 + 2**-11,
    1 + 2**-11 + 2**-30,
    65504.0,
    65519.9,
    65520.0,
    2**-24,
    2**-25,
    3e-45,
    1e39,
]


@pytest.mark.parametrize("number", AWKWARD)
@pytest.mark.parametrize(
    ("dtype", "peer", "raw"), [("float16", np.float16, np.uint16), ("float32", np.float32, np.uint32)]
)
def test_floats_are_rounded_as_numpy_rounds_them(dtype: str, peer: type, raw: type, number: float) -> None:
    with np.errstate(over="ignore"):
        assert encode(dtype, number) == int(np.array(number).astype(peer).view(raw))


@pytest.mark.parametrize(
    ("number", "bits"),
    [
        (1.0, 0x3F80),
        (-2.25, 0xC010),
        (1 + 2**-8, 0x3F80),
        (1 + 3 * 2**-8, 0x3F82),
        (1 + 2**-8 + 2**-40, 0x3F81),  # ml_dtypes alone rounds to float32 first, and then to even
        (-1 - 3 * 2**-8 + 2**-40, 0xBF81),
        (3.4e38, 0x7F80),
    ],
)
def test_bfloat16_is_rounded_once_to_nearest_even(number: float, bits: int) -> None:
    assert encode("bfloat16", number) == bits


def test_integers_are_cut_toward_zero_and_to_their_width() -> None:
    assert (encode("int8", -2.75), decode("int8", 0xFE)) == (0xFE, -2)
    assert encode("uint16", 65536 + 5) == 5
    assert decode("int64", 1 << 63) == -(2**63)
    assert holds("float16", 40000) == holds("int32", 40000) == True  # noqa: E712
    assert not holds("int16", 40000)
