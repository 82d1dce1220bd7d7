"""A node without Ray: what it does with inputs that are too large to travel, and with its own paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

import tlcheck
from tlcheck.cluster import node as nodes
from tlcheck.cluster.folder import Folder
from tlcheck.cluster.node import Arrays, Node, NoInputsError, Order
from tlcheck.cluster.paths import MachinePaths
from tlcheck.execute.request import GivenInputs
from tlcheck.toolchain import environment
from tlcheck.toolchain.environment import release_recipe
from tlcheck.worker.jobs import InputsJob, Job, LowerJob, output_of
from tlcheck.worker.protocol import Answer, Failure

NEW = "0.1.15"
ASKER = MachinePaths("/home/me/project", "/opt/tlcheck", "/home/me/cache")
LARGE = b"x" * (9 << 20)
INPUTS = InputsJob("/home/me/project/k.py", "k", output="/tmp/session/0.inputs", seeds=())
ORDER = Order((INPUTS,), release_recipe(NEW), fork=True)
GIVEN = GivenInputs(INPUTS.output, ((0, (0,)),), "k.py:1")


class Worker:
    """Writes what it is asked for, and fails in tlcheck's own code."""

    made: ClassVar[list[bytes]] = []

    def __init__(self, *_: object, **__: object) -> None:
        self.users, self.broken, self.versions = 0, False, {"tilelang": NEW}

    def answers(self, jobs: Sequence[Job]) -> list[Answer]:
        for job in jobs:
            Path(output_of(job)).write_bytes(self.made.pop(0))
        trace = f"File {Path(tlcheck.__file__).parent}/worker/lowering.py, {jobs[0].file}"
        return [Answer({"sets": []}, Failure("exception", "lower", "no", "", "", trace), 0.0, 0.0, "") for _ in jobs]

    def close(self) -> None: ...


class Judging:
    """Says how large the inputs are, and where they lie."""

    def verdicts(self, snapshot: Path, request: object, inputs: GivenInputs) -> bytes:
        return f"{Path(inputs.file).stat().st_size} of {Path.cwd()}".encode()


@pytest.fixture
def node(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    (tmp_path / "k.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nodes, "SharedWorker", Worker)
    monkeypatch.setattr(nodes, "JudgingProcess", Judging)
    monkeypatch.setattr(environment, "find", lambda recipe: SimpleNamespace(python=Path("python")))
    return Node(Folder(tmp_path, frozenset([Path("k.py")])).packed(), ASKER)


def judged(node: Node, arrays: Arrays) -> bytes:
    return node.judge(b"{}", None, GIVEN, arrays)


def will_make(monkeypatch: pytest.MonkeyPatch, *contents: bytes) -> None:
    monkeypatch.setattr(Worker, "made", [*contents])


def test_large_inputs_stay_and_are_made_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    will_make(monkeypatch, LARGE)
    assert node.do(ORDER).outputs == (b"",)
    for _ in range(2):  # several kernels have the same
        assert judged(node, Arrays(order=ORDER)) == b"%d of /home/me/project" % len(LARGE)


def test_the_last_ones_stay(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = [replace(ORDER, jobs=(replace(INPUTS, output=f"/tmp/session/{n}.inputs"),)) for n in range(5)]
    will_make(monkeypatch, *[LARGE] * 6)
    for order in [*orders, orders[-1]]:
        node.do(order)
    assert len([*node._staying.iterdir()]) == 4
    will_make(monkeypatch, LARGE)
    for order in orders[::-1]:
        judged(node, Arrays(order=order))
    assert not Worker.made


def test_those_of_a_node_that_is_gone_are_made_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    will_make(monkeypatch, LARGE)
    assert judged(node, Arrays(order=ORDER)).startswith(b"%d of" % len(LARGE))
    will_make(monkeypatch, b"small: it could have travelled, and does not")
    with pytest.raises(NoInputsError):
        judged(node, Arrays(order=replace(ORDER, jobs=(replace(INPUTS, output="/tmp/session/1.inputs"),))))


def test_small_inputs_travel(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    will_make(monkeypatch, b"small")
    (written,) = node.do(ORDER).outputs
    assert judged(node, Arrays(written)).startswith(b"5 of")


def test_a_kernel_file_travels_with_its_order(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def answers(_: Worker, jobs: Sequence[Job]) -> list[Answer]:
        read.extend(Path(job.file).read_text() for job in jobs)
        return [Answer({}, None, 0.0, 0.0, "") for _ in jobs]

    monkeypatch.setattr(Worker, "answers", answers)
    job = LowerJob("/tmp/tlcheck-x/kernel.py", "k", output="/tmp/tlcheck-x/0.snapshot.json")
    node.do(Order((job,), release_recipe(NEW), fork=True, text="a kernel"))
    assert read == ["a kernel"]


def test_a_failure_names_the_places_of_who_asks(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    will_make(monkeypatch, b"")
    (answer,) = node.do(ORDER).answers
    assert answer.failure is not None
    assert answer.failure.trace == "File /opt/tlcheck/worker/lowering.py, /home/me/project/k.py"
