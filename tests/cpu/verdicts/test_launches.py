"""A kernel for AMD that asks for more LDS than there is gets a note; what it computes is judged all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, text
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Snapshot, Store
from tlcheck.verdicts.judging import verdicts_of


def using(floats: int, arch: str) -> Snapshot:
    kernel = Kernel(threads=64)
    source, out = kernel.tensor("A", "float32", (64,)), kernel.tensor("B", "float32", (64,))
    shared, tx = kernel.tile("s", "float32", (floats,), "shared"), kernel.tx
    barrier = call("tvm_storage_sync", text("shared"))
    body = (Store(shared, (tx,), load(source, tx)), barrier, Store(out, (tx,), load(shared, tx)))
    return replace(kernel.snapshot(body, body), target=arch)


@pytest.mark.parametrize(
    ("arch", "floats", "room"),
    [("gfx942", 16384, 0), ("gfx942", 16385, 65536), ("gfx950", 40960, 0), ("sm_90", 99999, 0)],
)
def test_more_lds_than_there_is(arch: str, floats: int, room: int) -> None:
    found = verdicts_of(using(floats, arch), Request())
    assert {claim.verdict for claim in found.claims} == {"agreed"}
    words = f"cannot be launched: s has {4 * floats} bytes, and LDS of {arch} {room}"
    assert found.notes == ((words,) if room else ())
