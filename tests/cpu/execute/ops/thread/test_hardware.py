"""Every form of wgmma and TMA: the execution as lowered leaves what an H200 left, element by element."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.hardware.snapshots import unpack
from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.snapshot.ir import Evaluate, Expr, Function, If, Snapshot, Stmt, Thread
from tlcheck.snapshot.walk import rebuild, statements

registry.load()
FOLDER = Path(__file__).parents[4] / "hardware"
RECORDED = np.load(FOLDER / "forms-0.1.15.npz")
FORMS = unpack(FOLDER / "forms-0.1.15.zip")
NAMES = sorted({name.split("/")[0] for name in RECORDED.files if name != "about"})


def _extents(function: Function) -> dict[str, int]:
    """Extents of the launch."""
    found = [s for s in statements(function.body) if isinstance(s, Thread)]
    return {s.tag: int(s.extent.value or 0) for s in found}


def machine_of(snapshot: Snapshot, name: str, late: bool, exact: bool, lowered: Function | None = None) -> Machine:
    """The machine for all blocks of a form as lowered, or of another function for it, on the recorded inputs."""
    lowered = lowered or snapshot.checkpoints["device-tir"]
    extents = _extents(lowered)
    x, y, z = (range(extents.get(f"blockIdx.{axis}", 1)) for axis in "xyz")
    worlds = [World(0, block) for block in product(x, y, z)]
    tensors = {}
    for place, buffer in enumerate(snapshot.checkpoints["source"].buffers):
        before = RECORDED[f"{name}/{place}"].reshape(-1)
        tensors[str(buffer.data.value)] = Tensor(kind_of(buffer.dtype), before.size, partial(_part, before))
    threads = extents["threadIdx.x"], extents.get("threadIdx.y", 1), extents.get("threadIdx.z", 1)
    return Machine(lowered, threads, worlds, tensors, {}, Options(source=False, late=late, exact=exact))


def run(snapshot: Snapshot, name: str, late: bool, exact: bool, lowered: Function | None = None) -> dict[int, Array]:
    """Return what each tensor holds after all blocks, by the place of its parameter as written."""
    machine = machine_of(snapshot, name, late, exact, lowered)
    machine.run()
    found = {}
    for place, buffer in enumerate(snapshot.checkpoints["source"].buffers):
        result = np.array(RECORDED[f"{name}/{place}"].reshape(-1), np.float64)
        indices, values = machine.pages(str(buffer.data.value)).outcome(0)
        result[indices] = values
        found[place] = result
    return found


def left_by_device(name: str, place: int) -> Array:
    """Return what the device left of a tensor."""
    after = f"{name}/{place}/after"
    return np.asarray(RECORDED[after if after in RECORDED.files else f"{name}/{place}"].reshape(-1))


def _part(whole: Array, seed: int, numbers: Array) -> Array:
    found: Array = whole[numbers]
    return found


@pytest.mark.parametrize("late", [True, False], ids=["late", "early"])
@pytest.mark.parametrize("name", NAMES)
def test_a_form_leaves_what_the_device_left(name: str, late: bool) -> None:
    """All elements are equal: late in the kernel's dtypes, early in float64 unless the kernel rounds."""
    rounds = name == "gemm_stmatrix_n128"  # sums beyond 256 in bfloat16
    for place, found in run(FORMS[name], name, late, exact=not late and not rounds).items():
        np.testing.assert_array_equal(found, left_by_device(name, place))


def with_idle_warp(function: Function) -> Function:
    """A kernel with 32 more threads that do nothing: the last warpgroup is one warp."""
    threads = Expr("int", "int32", (), _extents(function)["threadIdx.x"])

    def change(old: Stmt, new: Stmt) -> Stmt:
        if isinstance(new, Thread) and new.tag == "threadIdx.x":
            body = If(Expr("lt", "bool", (new.var, threads)), new.body)
            return replace(new, extent=replace(threads, value=int(threads.value or 0) + 32), body=body)
        if isinstance(new, Evaluate) and new.value.value == "tvm_storage_sync":
            return Evaluate(replace(new.value, args=(*new.value.args, replace(threads, value=3), threads)))
        return new

    return replace(function, body=rebuild(function.body, change))


@pytest.mark.parametrize("name", ["gemm_store_fp32", "rs_fp16"])
def test_a_block_may_end_with_part_of_a_warpgroup(name: str) -> None:
    lowered = FORMS[name].checkpoints["device-tir"]
    for place, found in run(FORMS[name], name, True, True, with_idle_warp(lowered)).items():
        np.testing.assert_array_equal(found, left_by_device(name, place))
