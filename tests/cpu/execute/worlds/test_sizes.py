"""Kernels of symbolic shapes that agree are executed with further sizes: of tails, odd ones, 1, and large ones."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, variable
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.executions import executed
from tlcheck.execute.request import Request
from tlcheck.execute.stops import Unaligned
from tlcheck.execute.worlds.sizes import others
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Expr, For, Function, Snapshot, Stmt, Store, Thread
from tlcheck.verdicts.judging import verdicts_of

KERNELS = zipfile.ZipFile(Path(__file__).parent / "dynamic-0.1.15.zip")
N = variable("n")
MOST = 1 << 30, 65_535, 65_535
ALL = [{"n": 80}, {"n": 65}, {"n": 63}, {"n": 1}]


def _multiple(of: int) -> Expr:
    return Expr("eq", "bool", (Expr("floormod", "int32", (N, number(of))), number(0)))


def _function(*body: Stmt, columns: int = 1) -> Function:
    kernel = Kernel()
    kernel.tensor("A", "float16", (), (N, columns))
    return kernel.function(*body)


def _executed(arch: str) -> Execution:
    text = KERNELS.read(f"dyn-mm-{arch}-0.1.15.snapshot.json").decode()
    return executed(codec.loads(text), Request())[0]


def test_sizes_lie_around_a_tile() -> None:
    assert list(others(_function(), {"n": 64}, MOST)) == ALL
    tail = call("use", Expr("floordiv", "int32", (N, number(128))))
    assert [sizes["n"] for sizes in others(_function(tail), {"n": 64}, MOST)] == [144, 129, 127, 1]


def test_there_is_none_where_the_kernel_ran_without_a_size() -> None:
    assert list(others(_function(), {}, MOST)) == []


def test_a_promise_is_kept() -> None:
    assert list(others(_function(call("assume", _multiple(8))), {"n": 64}, MOST)) == [{"n": 24}, {"n": 16}]


def test_one_leads_beyond_32_bits_unless_a_loop_goes_by_it() -> None:
    *_, large = others(_function(columns=4096), {"n": 64}, MOST)
    assert large["n"] * 4096 > 2**31
    loop = For(variable("i"), number(0), N, "serial", call("use"))
    assert list(others(_function(loop, columns=4096), {"n": 64}, MOST)) == ALL


def _wrong_in_a_tail() -> Snapshot:
    kernel = Kernel()
    a, b, i = kernel.tensor("A", "int32", (), (N,)), kernel.tensor("B", "int32", (), (N,)), variable("i")
    whole = Expr("mul", "int32", (Expr("floordiv", "int32", (N, number(32))), number(32)))
    one = Store(b, (i,), load(a, i))
    source, lowered = (For(i, number(0), n, "serial", one) for n in (N, whole))
    assert executed(kernel.snapshot((source,), (source,)), Request())[0].is_settled
    return kernel.snapshot((source,), (lowered,))


def test_what_is_wrong_in_a_tail_alone_is_found() -> None:
    found, _ = executed(_wrong_in_a_tail(), Request())
    assert [(o.name, o.verdict) for o in found.outputs] == [("B", "refuted")]
    assert found.sizes == (("n", 80),)


def test_what_is_wrong_in_a_tail_alone_names_the_size() -> None:
    (finding,) = [claim.finding for claim in verdicts_of(_wrong_in_a_tail(), Request()).claims if claim.finding]
    assert finding.advice == "exclude n = 80 by `T.assume` or `inputs`, if no caller passes these sizes"


def test_a_tensor_map_of_odd_rows_is_refused() -> None:
    found = _executed("sm_90")
    assert isinstance(found.illegal, Unaligned)
    assert str(found.illegal) == "a tensor map of A with a stride of 66 bytes, no multiple of 16"
    assert dict(found.sizes) == {"m": 65, "k": 33, "n": 67}


def test_its_claim_names_the_sizes_and_what_to_do() -> None:
    snapshot = codec.loads(KERNELS.read("dyn-mm-sm_90-0.1.15.snapshot.json").decode())
    (finding,) = [claim.finding for claim in verdicts_of(snapshot, Request()).claims if claim.finding is not None]
    assert finding.advice.startswith("exclude m = 65, k = 33, n = 67 by `T.assume` or `inputs`")


def test_copies_by_threads_take_odd_rows() -> None:
    found = _executed("sm_80")
    assert found.is_settled
    assert [dict(sizes) for sizes in found.also][1:3] == [{"m": 65, "k": 33, "n": 67}, {"m": 63, "k": 31, "n": 65}]


def test_no_grid_is_larger_than_the_targets() -> None:
    kernel = Kernel()
    kernel.tensor("A", "float16", (), (N, 4096))
    by = Thread(variable("by"), "blockIdx.y", N, call("use"))
    assert list(others(kernel.function(by), {"n": 64}, MOST)) == ALL
    assert len(list(others(kernel.function(by), {"n": 64}, (1, 1 << 30, 1)))) == len(ALL) + 1


def test_there_is_none_where_a_snapshot_has_no_source() -> None:
    empty = replace(_wrong_in_a_tail(), checkpoints={})
    found, _ = executed(empty, Request())
    assert (found.outputs, found.also) == ((), ())
