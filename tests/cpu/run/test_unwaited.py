"""What a kernel waits for too late itself is its author's, and what TileLang waits for too late is TileLang's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import checked_runs, explained, installed, line_of, raced
from tests.cpu.client import Client
from tests.warm import WarmWorker
from tlcheck.execute.compare.both_levels import execute
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Evaluate, Seq, Snapshot, Stmt
from tlcheck.snapshot.walk import rebuild, statements
from tlcheck.toolchain.releases import PINNED
from tlcheck.worker.jobs import LowerJob

CASES = Path(__file__).with_name("unwaited_cases.py")
COPIES, PRODUCTS = "asynchronous copies", "asynchronous products"
THREADS, BRANCHES = "iterations or threads", "branches that run side by side"
REFILLED = "T.tma_copy(A[k, 0:64, 0:64], s[k % 2, :, :], barrier=full[k % 2])"
LATE = {  # who races, for what, in which line, and what hangs on it
    "loaded_too_late": (COPIES, "s", "C[i, j] = s[j, i]", "C"),
    "other_barrier": (COPIES, "a", "B[i, j] = a[j, i]", "BC"),
    "announced_too_late": (COPIES, "w", "C[i, j] = a[j, i] + w[i, j]", "C"),
    "announced_unsynced": (THREADS, "w", "C[i, j] = a[j, i] + w[i, j]", "C"),
    "stored_too_late": (COPIES, "s", "s[i, j] = A[j, i] + T.float16(k)", "B"),
    "released_by_a_warp": (BRANCHES, "s", REFILLED, "B"),
    "released_by_a_thread": (BRANCHES, "s", REFILLED, "B"),
    "other_stage": (COPIES, "s", "B[k, j, i] = s[k % 2, i, j]", "B"),
    "one_group": (COPIES, "b", "B[i] = a[511 - i] * 2.0 + b[511 - i]", "B"),
    "multiplied_too_late": (PRODUCTS, "a", "a[i, j] = T.float16(1)", "C"),
}
IN_TIME = (
    "loaded",
    "own_barrier",
    "announced",
    "own_stage",
    "released_by_all",
    "filled_by_a_thread",
    "stored",
    "both_groups",
    "multiplied",
)
WAITS = {  # what is taken out of what is lowered, the first one or a later one, and what is then raced for
    "loaded": ("mbarrier_wait_parity", 0, "s"),
    "own_barrier": ("mbarrier_wait_parity", 0, "a"),
    "own_stage": ("tvm_storage_sync", 2, "s"),
    "filled_by_a_thread": ("mbarrier_wait_parity", 1, "s"),
    "both_groups": ("ptx_wait_group", 0, "a"),
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The runs of the report, by case."""
    return checked_runs(CASES, tmp_path_factory.mktemp("unwaited"), 1)


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize("case", LATE)
def test_what_is_the_authors(checked: dict[str, Any], case: str) -> None:
    who, buffer, statement, outputs = LATE[case]
    line = line_of(statement, CASES)
    assert raced(checked[case]["claims"]) == [(buffer, line)]
    claims = explained(checked[case]["claims"])
    undecided = {claim["buffer"]: claim["reason"] for claim in claims if claim["verdict"] == "undecided"}
    reason = f"{who} race for {buffer} (line {line}) in the source"
    ordered = {buffer: reason} if buffer in undecided else {}
    assert undecided == ordered | dict.fromkeys(outputs, reason)
    assert {claim["verdict"] for claim in claims} <= {"agreed", "proved", "undecided"}


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize("case", IN_TIME)
def test_what_is_right(checked: dict[str, Any], case: str) -> None:
    assert {claim["verdict"] for claim in checked[case]["claims"]} <= {"agreed", "proved"}


@pytest.mark.toolchain
@pytest.mark.parametrize("case", WAITS)
def test_what_is_tilelangs(case: str, tmp_path: Path) -> None:
    """A wait that the kernel has as written and not as lowered."""
    wait, which, buffer = WAITS[case]
    toolchain = installed(PINNED)
    with Client(WarmWorker(toolchain.python, toolchain.env)) as worker:
        (made,) = worker.lower([LowerJob(str(CASES), case, output=str(tmp_path / "snapshot"))])
    assert made.snapshot is not None
    found = execute(without(codec.loads(made.snapshot.read_text()), wait, which))
    assert buffer in {race.buffer for race in found.races}
    assert not found.contested
    assert {outcome.verdict for outcome in found.outputs} <= {"agreed", "refuted"}


def without(snapshot: Snapshot, call: str, which: int) -> Snapshot:
    """The snapshot with a kernel as lowered that lacks one call."""
    lowered = snapshot.checkpoints["device-tir"]
    calls = [s for s in statements(lowered.body) if isinstance(s, Evaluate) and s.value.value == call]

    def change(old: Stmt, new: Stmt) -> Stmt:
        return Seq(()) if old is calls[which] else new

    less = replace(lowered, body=rebuild(lowered.body, change))
    return replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": less})
