"""What a device left is held against the execution as lowered, without a device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.hardware import captured, cuda_source
from tests.hardware.captured import Execution, Octets, on_device
from tests.hardware.cuda_source import Parameter, UnusableError, kernels, only_blocks
from tests.hardware.snapshots import unpack
from tlcheck.execute.compile import registry
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.stops import Stopped
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Evaluate, Expr

registry.load()
FIXTURE = Path(__file__).parents[3] / "fixtures" / "era" / "annotated_gemm-0.1.15.snapshot.json"
FORMS = Path(__file__).parents[3] / "hardware" / "forms-0.1.15.zip"
PARAMETERS = "__grid_constant__ const CUtensorMap A_desc, half_t* __restrict__ C, int m"
SWIZZLED = f"""extern "C" __global__ void __launch_bounds__(128, 1) main_kernel({PARAMETERS}) {{
  extern __shared__ uchar buf[];
  const dim3 blockIdx = tl::rasterization2DRow<10>();
  C[m] = 0;
}}
"""


class Double:
    """A device that leaves what the execution left, changed by `spoil`."""

    def __init__(self, execution: Execution, spoil: Any) -> None:
        self._execution, self._spoil, self._runs = execution, spoil, 0
        self._tensors: dict[str, Octets] = {}

    def module(self, cubin: bytes) -> str:
        return "module"

    def put(self, name: str, octets: Octets) -> None:
        self._tensors[name] = octets.copy()

    def get(self, name: str) -> Octets:
        return self._tensors[name]

    def launch(self, module: Any, kernel: str, grid: Any, threads: Any, arguments: Any) -> None:
        assert (kernel, grid, threads, arguments) == ("main_kernel", (2, 1, 1), (128, 1, 1), ["A", "B", "W"])
        pages = self._execution.invocation.left["B"]
        indices, values = pages.outcome(captured.SEEDS[self._runs])
        self._tensors["B"].view(pages.kind.memory)[indices] = values
        self._spoil(self._tensors)
        self._runs += 1


@pytest.fixture(scope="module")
def execution() -> Execution:
    return Execution(codec.loads(FIXTURE.read_text()))


def ran(execution: Execution, monkeypatch: pytest.MonkeyPatch, spoil: Any) -> captured.Result:
    monkeypatch.setattr(cuda_source, "compiled", lambda text, headers, configs: text.encode())
    return on_device(execution, Double(execution, spoil), Path())


def test_what_the_execution_left_is_equal(execution: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ran(execution, monkeypatch, lambda tensors: None)
    assert (found.status, found.elements, found.blocks, found.of) == ("equal", found.equal, 2, 2)
    assert found.elements > 8000


def test_one_wrong_element_differs(execution: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(tensors: dict[str, Octets]) -> None:
        tensors["B"].view(np.float32)[7] += 100.0

    found = ran(execution, monkeypatch, spoil)
    assert (found.status, found.beyond, found.stray) == ("differs", 2, 0)
    assert found.first.startswith("element 7 of B of seed")


def test_a_change_of_what_nothing_writes_is_stray(execution: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(tensors: dict[str, Octets]) -> None:
        tensors["A"][5] ^= 1

    found = ran(execution, monkeypatch, spoil)
    assert (found.status, found.beyond, found.stray) == ("differs", 0, 2)


def test_parameters_are_read_from_the_text() -> None:
    (kernel,) = kernels(SWIZZLED)
    assert kernel.name == "main_kernel"
    assert kernel.parameters == (Parameter("A_desc", "map"), Parameter("C", "tensor"), Parameter("m", "int"))


def test_other_blocks_end_after_blocks_are_renamed() -> None:
    (kernel,) = kernels(SWIZZLED)
    lines = only_blocks(SWIZZLED, kernel, [(1, 2, 0)]).splitlines()
    assert lines[2].strip().startswith("const dim3 blockIdx")
    assert lines[3].strip() == "if (!((blockIdx.x == 1 && blockIdx.y == 2 && blockIdx.z == 0))) return;"


@pytest.mark.parametrize("text", ["", "__cluster_dims__(2, 1, 1) " + SWIZZLED])
def test_what_cannot_be_launched_is_said(text: str) -> None:
    with pytest.raises(UnusableError):
        kernels(text)


def test_sums_that_rounding_moves_are_not_told_from_each_other(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device may be as far off as rounding on the CPU; a wrong element is further off."""
    monkeypatch.setattr(captured, "_bound", lambda execution, kind: 0.0)
    monkeypatch.setattr(captured, "_lost", lambda *of: 0.25)

    def spoil(by: float) -> Any:
        return lambda tensors: np.multiply(tensors["B"].view(np.float32), by, out=tensors["B"].view(np.float32))

    assert ran(execution, monkeypatch, spoil(1.5)).status == "rounds"
    assert ran(execution, monkeypatch, spoil(9.0)).status == "differs"


def test_where_rounding_is_as_large_as_an_element_nothing_is_said(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captured, "_bound", lambda execution, kind: 0.0)
    monkeypatch.setattr(captured, "_lost", lambda *of: 1.25)

    def spoil(tensors: dict[str, Octets]) -> None:
        np.multiply(tensors["B"].view(np.float32), 90.0, out=tensors["B"].view(np.float32))

    assert ran(execution, monkeypatch, spoil).status == "rounds"


def test_what_tensor_cores_round_is_allowed() -> None:
    """A product in TF32 may be further off than one that is done in float32 throughout, in the same types."""
    forms, kind = unpack(FORMS), kind_of("float32")
    bounds = [captured._bound(Execution(forms[name]), kind) for name in ("gemm_tf32", "gemm_e4m3")]
    assert bounds == [16 * 2.0**-10, 16 * 2.0**-13]


def test_random_numbers_are_not_compared() -> None:
    draw = Evaluate(Expr("call", "uint32", value="rng_rand"))
    snapshot = codec.loads(FIXTURE.read_text())
    lowered = replace(snapshot.checkpoints["device-tir"], body=draw)
    with pytest.raises(Stopped, match="random numbers"):
        Execution(replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": lowered}))
