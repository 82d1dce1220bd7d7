"""Claims of executions: each rule refutes a kernel that lost what it is about, and accepts the kernel as it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.cpu.checking import executed
from tests.cpu.execute.observe.test_order import without
from tests.cpu.execute.ops.thread.test_hardware import FORMS
from tests.cpu.execute.ops.tile.building import Kernel, buffer, call, load, number, text
from tests.fixtures.index import read
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.diagnosis import diagnose
from tlcheck.execute.compare.origin import OriginAccess
from tlcheck.execute.machine import Machine
from tlcheck.execute.memory.state import NOWHERE, Origin
from tlcheck.execute.request import Request
from tlcheck.execute.stops import Illegal
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Bind, Evaluate, Expr, For, Function, If, Snapshot, Stmt, Store
from tlcheck.snapshot.walk import rebuild, statements
from tlcheck.verdicts import origins
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.execution_claims import claims_of
from tlcheck.verdicts.judging import verdicts_of
from tlcheck.verdicts.words import content_in_words
from tlcheck.witness import Element

Change = Callable[[Function], Function]


def changed(name: str, change: Change | None = None) -> Snapshot:
    """A form, with its lowered side changed."""
    snapshot = FORMS[name]
    if change is None:
        return snapshot
    lowered = change(snapshot.checkpoints["device-tir"])
    return replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": lowered})


def claims(name: str, change: Change | None = None) -> tuple[Claim, ...]:
    return executed(changed(name, change), Request())


def dropping(call: str, number: int = 0) -> Change:
    return lambda function: without(function, call, number)


def _shorter(function: Function) -> Function:
    """The first loop that holds a wgmma makes a turn less."""
    loops = [s for s in statements(function.body) if isinstance(s, For) and _calls(s.body, "ptx_wgmma_ss")]

    def shorten(old: Stmt, new: Stmt) -> Stmt:
        if old is not loops[-1]:
            return new
        assert isinstance(new, For)
        return replace(new, extent=Expr("int", "int32", (), int(new.extent.value or 0) - 1))

    return replace(function, body=rebuild(function.body, shorten))


def _calls(stmt: Stmt, name: str) -> bool:
    return any(isinstance(s, Evaluate) and s.value.value == name for s in statements(stmt))


def _beyond(function: Function) -> Function:
    """The first wait for a copy is for another parity: it passes at once."""
    found = [s for s in statements(function.body) if _waits(s)]

    def flip(old: Stmt, new: Stmt) -> Stmt:
        if old is not found[-1]:
            return new
        assert isinstance(new, Evaluate)
        call = new.value
        return replace(new, value=replace(call, args=(call.args[0], Expr("int", "int32", (), 1))))

    return replace(function, body=rebuild(function.body, flip))


def _waits(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and stmt.value.value == "mbarrier_wait_parity"


BAD = {
    "TLO001": ("gemm_nt", _shorter),
    "TLO002": ("gemm_nt", dropping("warpgroup_wait")),
    "TLR001": ("gemm_stmatrix", dropping("tvm_storage_sync", 2)),
    "TLR002": ("gemm_stmatrix", dropping("fence_proxy_async")),
    "TLL001": ("gemm_three_stages", dropping("mbarrier_wait_parity")),
    "TLL002": ("tma_2d", dropping("ptx_arrive_barrier")),
}


@pytest.mark.parametrize("rule", BAD)
def test_a_rule_refutes_its_bad_example(rule: str) -> None:
    name, change = BAD[rule]
    found = claims(name, change)
    findings = [claim.finding for claim in found if claim.finding is not None]
    assert rule in {finding.rule for finding in findings}
    for finding in findings:
        assert finding.words
        assert finding.what


@pytest.mark.parametrize("name", sorted({name for name, _ in BAD.values()}))
def test_the_kernel_as_it_was_is_agreed(name: str) -> None:
    found = claims(name)
    assert {claim.kind: claim.verdict for claim in found} == {
        "output": "proved",
        "order": "agreed",
        "legality": "agreed",
    }
    for claim in found:
        assert claim.executed is not None
        assert claim.executed.seeds == (0, 1)


def test_a_wait_that_passes_at_once_is_seen() -> None:
    """The accumulation reads what is still under way: the output is poison, and nothing orders copy and read."""
    found = claims("gemm_nt", _beyond)
    assert {"TLR001", "TLO002"} & {claim.finding.rule for claim in found if claim.finding is not None}


def test_the_witness_names_the_element_the_inputs_and_the_last_write() -> None:
    (output,) = [c for c in claims("gemm_nt", _shorter) if c.kind == "output"]
    assert output.finding is not None
    assert output.finding.words.startswith("C[0, ")
    assert "inputs of seed" in output.finding.words
    assert "; last is the write of block (0, 0, 0), thread " in output.finding.words
    assert re.search(rf"\(TIR line \d+ at {output.finding.checkpoint}\)$", output.finding.words)


def test_the_witness_of_a_deadlock_names_the_barrier_and_the_line_that_waits() -> None:
    (claim,) = [c for c in claims(*BAD["TLL002"]) if c.finding is not None and c.finding.rule == "TLL002"]
    assert claim.finding is not None
    assert claim.finding.excerpt is not None
    assert claim.buffer.startswith("mbar")
    excerpt = claim.finding.excerpt
    assert "mbarrier_wait_parity" in excerpt.lines[excerpt.marked - excerpt.first]
    assert claim.finding.words.endswith(f"(TIR line {excerpt.marked} at device-tir)")


@pytest.mark.parametrize(("rule", "guilty"), [("TLR001", "tl.ThreadSync"), ("TLR002", "tl.InjectFenceProxy")])
def test_the_pass_that_places_what_is_missing_is_blamed_for_a_race(rule: str, guilty: str) -> None:
    """A race is sought at the last checkpoint alone."""
    found = [c.finding for c in claims(*BAD[rule]) if c.finding is not None and c.finding.rule == rule]
    assert {(finding.pass_name, finding.place) for finding in found} == {(guilty, "at device-tir")}


def test_a_snapshot_without_source_has_no_such_claims() -> None:
    snapshot = FORMS["tma_1d"]
    old = replace(snapshot, checkpoints={"device-tir": snapshot.checkpoints["device-tir"]})
    assert executed(old, Request()) == ()


def test_without_execution_there_are_proofs_only() -> None:
    assert verdicts_of(FORMS["tma_1d"]).claims == ()


def test_an_atomic_that_was_executed_says_so_and_one_that_was_not_does_too() -> None:
    snapshot = next(f for f in read().fixtures if f.path == "mutations/scatter_guarded-0.1.15").snapshot()
    proved, ran = (verdicts_of(snapshot, request).claims[0] for request in (None, Request()))
    assert (proved.verdict, proved.executed, content_in_words(proved)) == (
        "proved",
        None,
        "additions proved, content not examined",
    )
    assert content_in_words(ran) == "additions proved, content agreed in 1 of 1 blocks, 2 inputs"


def test_claims_are_worded_without_an_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Onsets and steps come with the diagnosis, and a clean execution needs no further one for it."""
    request = Request()
    wrong, right = changed(*BAD["TLO001"]), changed("gemm_nt")
    diagnosis, clean = diagnose(wrong, request, execute(wrong, request)), execute(right, request)
    expected = claims_of(wrong, diagnosis, request)
    monkeypatch.setattr(Machine, "run", lambda machine: pytest.fail("a kernel is executed"))
    found = [claim.finding.witness for claim in expected if claim.finding is not None]
    assert any(witness.steps for witness in found if isinstance(witness, Element))
    assert claims_of(wrong, diagnosis, request) == expected
    assert all(claim.is_clean for claim in claims_of(right, diagnose(right, request, clean), request))


def test_an_access_of_another_buffer_in_the_same_memory_has_that_buffers_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan writes `d` where a product reads `x`: the line of that read is the product's, not one that reads d."""
    snapshot = codec.loads(Path("tests/fixtures/wrong/wait-0.1.9.snapshot.json").read_text())
    lines = {("x", False): 11, ("d", False): 22, ("d", True): 33}
    monkeypatch.setattr(origins, "line_of_use", lambda source, buffer, writes: lines[buffer, writes])
    monkeypatch.setattr(
        origins._Places, "other_buffer", lambda self, access, buffer: "x" if access.kind == "read" else ""
    )
    read, write = (SimpleNamespace(kind=kind, thread=0, origin=NOWHERE) for kind in ("read", "write"))
    race = SimpleNamespace(first=read, second=write, buffer="d", missing="a barrier")
    origin = origins.race_in_words(snapshot, cast(Any, race), "d")
    assert (origin.line, origin.other_line) == (33, 11)
    assert origin.words.startswith(
        "a barrier is missing between the read of x at line 11 (thread 0) and the write of d"
    )
    assert origin.words.endswith(", which lie in the same memory since tl.MergeSharedMemoryAllocations")
    assert origins.buffer_named(snapshot, cast(Any, read), "d") == "x"


def test_an_access_out_of_bounds_names_the_element_and_the_shape() -> None:
    snapshot = codec.loads(Path("tests/fixtures/wrong/store-0.1.7.post3.snapshot.json").read_text())
    (claim,) = [c for c in verdicts_of(snapshot, Request()).claims if c.kind == "legality" and c.finding]
    assert claim.finding is not None
    assert claim.finding.origin is not None
    assert claim.finding.origin.words == "s[256] is accessed (thread 4, TIR line 11); s has the shape [256]"


def test_an_access_out_of_bounds_stands_where_alone_the_source_reads_the_buffer() -> None:
    """TileLang reads the buffer ahead, in a statement that has the line of the loop."""
    kernel = Kernel()
    s, r = kernel.tile("s", "int32", (32,)), kernel.tile("r", "int32", (1,), "local")
    b = kernel.tensor("B", "int32", (32,))
    clear, used = Store(s, (kernel.tx,), number(0), line=3), Store(b, (kernel.tx,), load(s, kernel.tx), line=5)
    ahead = Store(r, (number(0),), load(s, 32), line=4)
    found = executed(kernel.snapshot([clear, used], [clear, ahead, used]), Request())
    (claim,) = [c for c in found if c.kind == "legality" and c.finding]
    assert claim.source.line == 5
    assert claim.finding is not None
    assert claim.finding.origin is not None
    assert claim.finding.origin.line == 5


def test_an_access_within_the_shape_is_beyond_the_memory() -> None:
    """A pass has changed the shape of a buffer, but not its memory."""
    snapshot = codec.loads(Path("tests/fixtures/wrong/store-0.1.7.post3.snapshot.json").read_text())
    illegal = Illegal("access of s out of bounds", 0, 0, 4, "s", None, (256,), (512,))
    assert origins.access_in_words(snapshot, illegal, 7).words == (
        "s[256] is accessed at line 7 (thread 4), beyond the memory of s"
    )


def test_an_access_of_memory_that_tilelang_added_is_not_one_of_the_buffer_that_shares_it() -> None:
    """A reduction reads its workspace, which lies where `s` lies: the line that reads `s` is another one."""
    kernel = Kernel()
    s, workspace = kernel.tile("s", "int32", (32,)), buffer("workspace", "int32", (32,), "shared.dyn")
    b = kernel.tensor("B", "int32", (32,))
    reduced = Store(b, (kernel.tx,), load(workspace, 0), line=3)
    place = Bind(workspace.data, Expr("call", "handle", (s.data, number(0)), "handle_add_byte_offset"))
    used = Store(b, (kernel.tx,), load(s, kernel.tx), line=4)
    snapshot = kernel.snapshot([used], [place, reduced, used])
    for stmt, name in ((reduced, "workspace"), (used, "s")):
        read = SimpleNamespace(kind="read", thread=0, origin=Origin(stmt))
        assert origins.buffer_named(snapshot, cast(Any, read), "s") == name


def test_an_address_before_a_buffer_is_no_byte_of_it() -> None:
    snapshot = Kernel().snapshot([], [])
    words = origins._Words(snapshot, cast(Any, None), ())
    assert words._element(OriginAccess("s", octet=-4096)) == "s (at an address 4,096 bytes before it)"
    assert words._element(OriginAccess("s", octet=64)) == "s (byte 64)"


@pytest.mark.parametrize("parted", [True, False])
def test_a_deadlock_at_a_later_barrier_names_the_one_in_a_branch(parted: bool) -> None:
    """Half of the block meets the other half at the wrong barrier, and waits in vain at the next one."""
    kernel = Kernel(threads=64)
    b, barrier = kernel.tensor("B", "int32", (64,)), call("tvm_storage_sync", text("shared"))
    store, holds = Store(b, (kernel.tx,), number(1), line=2), Expr("lt", "bool", (kernel.tx, number(32)))
    last = replace(barrier)
    lowered = [If(holds, barrier), store, last] if parted else [store, If(holds, last)]
    claims = [claim.finding for claim in executed(kernel.snapshot([store], lowered), Request())]
    (words,) = [each.origin.words for each in claims if each is not None and each.origin is not None]
    assert ("the branch with the barrier of TIR line" in words) == parted
