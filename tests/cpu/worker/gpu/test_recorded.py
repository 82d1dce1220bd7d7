"""A call of a kernel is kept, and repeated: by the same kernel it passes, by one that differs it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tests.cpu.worker.gpu.stand_ins import compiled, subject, task
from tlcheck.case import Case
from tlcheck.worker.capture.observation import Keeper, Parameters
from tlcheck.worker.failures import RequestError
from tlcheck.worker.gpu import draws, stored, verification

PARAMETERS = Parameters(("A", "S", "B"), made=(1,))
IN_PLACE = Parameters(("A", "S", "B"), made=())
LIMIT = 2**20


def launch(a: Any, b: Any) -> Any:
    """Makes S = 2 A + 1 itself, and adds the rows of A to B."""
    b += a.sum(dim=0)
    return 2 * a + 1


def in_place(a: Any, s: Any, b: Any) -> None:
    s.copy_(launch(a, b))


def inputs() -> tuple[Any, Any]:
    a = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    return a, torch.ones(6)


def keep(folder: Path, kernel: Callable[..., Any], *args: Any, of: Parameters = PARAMETERS, limit: int = LIMIT) -> Any:
    """The fields that are said of the kept call."""
    _, settled = Keeper(str(folder / "call"), limit).call("0001", of, kernel, args)
    assert settled
    return json.loads((folder / "call-0001.json").read_text())


def repeat(folder: Path, kernel: Callable[..., None], **changes: Any) -> set[str]:
    """Return what `tlcheck run` finds when it repeats the call."""
    case = Case(None, recorded="call-0001.pt", updates=("B",))
    t = replace(task(poisoned=("S",), updated=("B",)), file=str(folder / "cases.py"), **changes)
    of, runnable = subject(case), compiled(kernel)
    (trial,) = verification.verify(of, runnable, t, draws.draws(of, runnable.names, t), lambda phase: None)
    assert trial["inputs"] == "recorded inputs"
    return {found["kind"] + " " + found["buffer"] for found in trial["findings"]}


def test_a_call_is_repeated(tmp_path: Path) -> None:
    a, b = inputs()
    assert keep(tmp_path, launch, a, b) == {"updates": ["B"], "size": 4 * (24 + 6 + 24 + 6)}
    assert not torch.equal(b, torch.ones(6))
    assert repeat(tmp_path, in_place) == set()
    recorded = stored.recorded(str(tmp_path / "cases.py"), "call-0001.pt", "cpu").inputs
    in_place(*recorded)  # also where there is no arena, to be timed: what the kernel makes has room for all elements
    assert torch.equal(recorded[1], 2 * a + 1)

    def one_off(a: Any, s: Any, b: Any) -> None:
        in_place(a, s, b)
        s[3, 5] += 0.001

    def not_added(a: Any, s: Any, b: Any) -> None:
        in_place(a, s, torch.zeros(6))

    def not_written(a: Any, s: Any, b: Any) -> None:
        in_place(a, torch.empty_like(a), b)

    assert repeat(tmp_path, one_off) == {"wrong S"}
    assert repeat(tmp_path, not_added) == {"wrong B"}
    assert repeat(tmp_path, not_written) == {"unwritten S"}


def test_tensors_keep_their_bits(tmp_path: Path) -> None:
    """Slices, NaN, numbers; and a tensor that had its result already is compared too."""
    wide = torch.arange(48.0).reshape(4, 12)
    wide[0, 0] = torch.nan
    s, b = torch.full((4, 6), 3.0), torch.zeros(6)
    fields = keep(tmp_path, lambda a, s, b, k: s.fill_(k), wide[:, ::2], s, b, 3.0, of=Parameters(tuple("ASBk"), ()))
    assert fields["updates"] == []
    trace = torch.load(tmp_path / "call-0001.pt", weights_only=True)
    assert trace["inputs"][3] == 3.0
    assert torch.equal(trace["inputs"][0][1:], wide[1:, ::2])
    assert trace["inputs"][0].is_contiguous()
    assert trace["outputs"] == {}
    written = replace(task(poisoned=("S",), updated=()), file=str(tmp_path / "cases.py"))
    (draw,) = draws.draws(subject(Case(None, recorded="call-0001.pt")), tuple("ASBk"), written)
    assert [(name, value.tolist()) for name, value in draw.expected.items()] == [("S", s.tolist())]
    with pytest.raises(RequestError, match="nothing to compare"):
        list(draws.draws(subject(Case(None, recorded="call-0001.pt")), tuple("ASBk"), replace(written, poisoned=())))
    with pytest.raises(RequestError, match="has 4 arguments, and the kernel takes 3"):
        list(draws.draws(subject(Case(None, recorded="call-0001.pt")), tuple("ASB"), written))


def test_zeros_are_what_was_recorded(tmp_path: Path) -> None:
    a, b = torch.zeros(4, 6) - 0.5, torch.ones(6)
    keep(tmp_path, launch, a, b)
    assert repeat(tmp_path, in_place) == set()


@pytest.mark.parametrize(
    ("arguments", "limit", "missing"),
    [
        (lambda a, b: (torch.empty(4, 2**40, device="meta"), 0, b), LIMIT, "16777216.0 MiB, more than the 1 MiB of"),
        (lambda a, b: (a, torch.empty_like(a), b), 4 * (2 * 24 + 6), "more than the"),  # with what it leaves
        (lambda a, b: (a, torch.empty_like(a), a[1]), LIMIT, "A, which it changes, shares memory with its argument B"),
        (lambda a, b: (a, {}, b), LIMIT, "its argument S is a dict"),
    ],
)
def test_what_is_not_kept(tmp_path: Path, arguments: Any, limit: int, missing: str) -> None:
    called = []

    def kernel(a: Any, s: Any, b: Any) -> None:
        called.append(len(a))
        if torch.is_tensor(s):
            in_place(a, s, b)

    assert missing in keep(tmp_path, kernel, *arguments(*inputs()), of=IN_PLACE, limit=limit)["missing"]
    assert called == [4]
    assert not (tmp_path / "call-0001.pt").exists()


def test_tensors_that_are_only_read_may_share_memory(tmp_path: Path) -> None:
    a, _ = inputs()
    fields = keep(tmp_path, lambda q, k, out: out.copy_(q + k), a, a, torch.empty_like(a), of=IN_PLACE)
    assert fields["updates"] == ["B"]


def test_the_next_call_is_kept_where_this_one_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = inputs()
    keeper = Keeper(str(tmp_path / "call"), LIMIT)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert not keeper.call("0001", PARAMETERS, launch, (a, b))[1]
    monkeypatch.undo()
    with pytest.raises(TypeError):  # of the kernel, for the wrong number of arguments
        keeper.call("0001", PARAMETERS, launch, (a,))
    with pytest.raises(ZeroDivisionError):
        keeper.call("0001", PARAMETERS, lambda a, b: 1 // 0, (a, b))
    assert not list(tmp_path.iterdir())
    assert keeper.call("0001", PARAMETERS, launch, (a, b))[1]
    assert (tmp_path / "call-0001.pt").exists()


def test_what_cannot_be_kept_does_not_end_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = keep(tmp_path, lambda a, b: torch.empty(4, device="meta"), *inputs())
    assert nowhere["missing"].startswith("it could not be kept: Cannot copy out of meta tensor")

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    assert "could not be kept: [Errno 28]" in keep(tmp_path, launch, *inputs())["missing"]


def test_a_recorded_call_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="names a recorded call that is not there"):
        repeat(tmp_path, in_place)
