"""A T.tma_copy that inputs place: its alignment is the author's, and drawn inputs say nothing about it."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, region
from tlcheck.execute.compare.faults import Faults
from tlcheck.execute.stops import Illegal, Unaligned

UNALIGNED = Unaligned("bulk copy of a box of A whose innermost coordinate is no multiple of 16 bytes", 0, 0, 0, "A")


@pytest.mark.parametrize(
    ("copy", "placed", "given", "illegal", "is_open"),
    [
        ("tma_copy", True, False, UNALIGNED, True),
        ("tma_copy", False, False, UNALIGNED, False),  # it begins there on all inputs
        ("copy", True, False, UNALIGNED, False),  # TileLang chose the bulk copy
        ("tma_copy", True, True, UNALIGNED, False),  # the case's own inputs
        ("tma_copy", True, False, Illegal("bulk copy of A out of bounds", 0, 0, 0, "A"), False),
    ],
)
def test_what_depends_on_drawn_inputs_is_open(
    copy: str, placed: bool, given: bool, illegal: Illegal, is_open: bool
) -> None:
    kernel = Kernel(threads=32)
    a, at = kernel.tensor("A", "float32", range(64)), kernel.tensor("O", "int32", [5])
    tile = kernel.tile("s", "float32", [16])
    function = kernel.function(call(copy, region(a, [load(at, 0) if placed else number(5)], [16]), region(tile)))
    fault = Faults(function, {}, 32, given).of_unaligned(illegal)
    assert (fault is not None and "declare `inputs`" in fault.open) is is_open
