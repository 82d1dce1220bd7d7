"""Every kind of fault is found in a kernel that has it, under its own name, and nothing in one that is right."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tests.cpu.worker.gpu import stand_ins
from tests.cpu.worker.gpu.stand_ins import CASE, COLUMNS, ROWS, Launch, compiled, right, subject, task
from tlcheck.case import Variant
from tlcheck.worker.failures import RequestError
from tlcheck.worker.gpu import draws, guarded_tensors, main, verification


def run(launch: Launch, case: Any = CASE, **changes: Any) -> list[dict[str, Any]]:
    t = task(**changes)
    of, kernel = subject(case), compiled(launch)
    return list(verification.verify(of, kernel, t, draws.draws(of, kernel.names, t), lambda phase: None))


def kinds(trials: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {(f["kind"], f["buffer"], trial["inputs"]) for trial in trials for f in trial["findings"]}


def memory_of(tensor: Any) -> Any:
    """The tensor with what lies around it, as one flat tensor; and where it begins."""
    start = tensor.storage_offset()
    flat = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    return flat, start


def test_a_right_kernel_has_no_findings() -> None:
    trials = run(right, seeds=(0, 1, 2), exact=True)
    assert kinds(trials) == set()
    assert {(t["seed"], t["inputs"]) for t in trials} == set(
        itertools.product((0, 1, 2), ("", "large", "longer", "exact"))
    )
    normal, exact = trials[0]["outputs"]["B"], trials[3]["outputs"]["B"]
    assert 0 < normal["error"] < normal["tolerance"] < 1e-5
    assert [what for what, _ in normal["tolerance_of"]] == [
        "result in float32",
        "reference in float32",
        f"sum of {ROWS} in float32",
    ]
    assert (exact["error"], exact["tolerance"]) == (0.0, 0.0)


def test_seeds_draw_different_inputs() -> None:
    first, second = (trial["outputs"]["S"]["worst"] for trial in run(right, seeds=(0, 1)) if not trial["inputs"])
    assert first["expected"] != second["expected"]


def one_lane_off(a: Any, s: Any, b: Any) -> None:
    right(a, s, b)
    b[3], b[4] = b[4].item(), b[3].item()


def unwritten_tile(a: Any, s: Any, b: Any) -> None:
    s[:16] = (2 * a + 1)[:16]
    b += a.sum(dim=0)


def stray_after(a: Any, s: Any, b: Any) -> None:
    right(a, s, b)
    flat, start = memory_of(b)
    flat[start + COLUMNS + 2] += 1


def stray_before(a: Any, s: Any, b: Any) -> None:
    right(a, s, b)
    flat, start = memory_of(s)
    flat[start - 5] = 1


def changed_input(a: Any, s: Any, b: Any) -> None:
    right(a, s, b)
    a[0, 0] += 1


def test_scratch_memory_is_no_input_that_is_changed() -> None:
    declared = main._declared(task(updated=("A", "B")), replace(CASE, updates=("B",)))
    assert (declared.updated, declared.scratch) == (("B",), ("A",))
    assert kinds(run(changed_input, scratch=("A",))) == set()
    assert {kind for kind, *_ in kinds(run(changed_input))} == {"changed-input"}


def one_nan(a: Any, s: Any, b: Any) -> None:
    right(a, s, b)
    s[7, 5] = torch.nan


def nothing(a: Any, s: Any, b: Any) -> None:
    s.copy_(2 * a + 1)


def overflow(a: Any, s: Any, b: Any) -> None:
    right(a.half().float() if bool((a.abs() > 1e4).any()) else a, s, b)


def only_even(a: Any, s: Any, b: Any) -> None:
    right(a, s, b)
    if len(a) % 2:
        s[-1] = 1.0


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        (one_lane_off, {("wrong", "B", name) for name in ("", "large", "longer")}),
        (unwritten_tile, {("unwritten", "S", name) for name in ("", "large", "longer")}),
        (stray_after, {("stray-write", "B", name) for name in ("", "large", "longer")}),
        (stray_before, {("stray-write", "S", name) for name in ("", "large", "longer")}),
        (changed_input, {("changed-input", "A", name) for name in ("", "large", "longer")}),
        (one_nan, {("nan", "S", name) for name in ("", "large", "longer")}),
        (nothing, {("zeros", "B", name) for name in ("", "large", "longer")}),
        (overflow, {("wrong", buffer, "large") for buffer in "SB"}),
        (only_even, {("wrong", "S", "longer")}),
    ],
)
def test_each_fault_is_named(launch: Launch, expected: set[tuple[str, str, str]]) -> None:
    assert kinds(run(launch)) == expected


def test_findings_say_where() -> None:
    (found,) = run(one_lane_off)[0]["findings"]
    assert [element["index"] for element in found["elements"]] == [[3], [4]]
    assert found["elements"][0]["got"] == pytest.approx(found["elements"][1]["expected"], abs=1e-4)
    (found,) = run(unwritten_tile)[0]["findings"]
    assert (found["count"], found["total"]) == (8 * COLUMNS, ROWS * COLUMNS)
    assert found["message"].endswith("the first at [16, 0]")
    (found,) = run(stray_after)[0]["findings"]
    assert found["message"].endswith(f"the first as element {COLUMNS + 2} of {COLUMNS}")
    (found,) = run(stray_before)[0]["findings"]
    assert found["message"].endswith(f"the first as element -5 of {ROWS * COLUMNS}")


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_a_number_that_happens_to_be_poison_is_written(dtype: Any) -> None:
    """Each number of eight bits is somewhere in S; of a tile that is left out each element is counted."""
    numbers = torch.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS).to(dtype)
    case = replace(
        CASE,
        inputs=lambda args, generator, device: (numbers, torch.zeros_like(numbers), torch.ones(1)),
        reference=lambda args, a, s, b: {"S": a},
        variants={},
    )
    assert run(lambda a, s, b: s.copy_(a), case)[0]["findings"] == []
    (found,) = run(lambda a, s, b: s[1:].copy_(a[1:]), case)[0]["findings"]
    assert (found["kind"], found["count"], found["total"]) == ("unwritten", COLUMNS, ROWS * COLUMNS)


def test_a_single_wrong_element_of_many_shows() -> None:
    """Its share of the norm is far below the tolerance."""

    def launch(a: Any, s: Any, b: Any) -> None:
        right(a, s, b)
        s[1000, 1] += 1e-2

    big = replace(CASE, args={"rows": 20_000}, variants={})
    (trial,) = run(launch, big, repeats=1)
    assert trial["outputs"]["S"]["error"] < trial["outputs"]["S"]["tolerance"] * 50
    assert kinds([trial]) == {("wrong", "S", "")}
    assert trial["outputs"]["S"]["worst"]["index"] == [1000, 1]


def test_a_race_is_nondeterministic() -> None:
    counter = itertools.count()

    def launch(a: Any, s: Any, b: Any) -> None:
        right(a, s, b)
        b[5] -= a[next(counter) % 3, 5]

    assert ("nondeterministic", "B", "") in kinds(run(launch))


def test_the_order_of_float_atomics_may_differ_but_nothing_else() -> None:
    counter = itertools.count()

    def launch(a: Any, s: Any, b: Any) -> None:
        s.copy_(2 * a + 1)
        for row in torch.randperm(len(a), generator=torch.Generator().manual_seed(next(counter))):
            b += a[row]

    assert kinds(run(launch)) == set()
    assert run(launch)[0]["outputs"]["B"]["moved"] > 0
    assert kinds(run(launch, float_atomics=False)) == {
        ("nondeterministic", "B", name) for name in ("", "large", "longer")
    }


def test_exact_inputs_leave_no_tolerance() -> None:
    def launch(a: Any, s: Any, b: Any) -> None:
        right(a, s, b)
        b[2] = b[2].nextafter(torch.tensor(torch.inf))

    assert kinds(run(launch, exact=True)) == {("wrong", "B", "exact")}


def test_inputs_that_are_not_exact_are_refused() -> None:
    case = replace(CASE, variants={}, exact=Variant(stand_ins.inputs))
    assert kinds(run(right, case, exact=True)) == {("inexact-inputs", name, "exact") for name in "SB"}


def test_watched_elements_are_reported() -> None:
    trial = run(one_lane_off, watched={"B": (3, 999)})[0]
    (element,) = trial["outputs"]["B"]["watched"]
    assert (element["offset"], element["index"]) == (3, [3])
    assert element["got"] != element["expected"]


def test_zeros_that_are_right_are_no_fault() -> None:
    case = replace(CASE, variants={}, reference=lambda args, a, s, b: {"B": torch.zeros(b.shape)})

    def zeros(a: Any, s: Any, b: Any) -> None:
        right(a, s, b)
        b.zero_()

    assert kinds(run(zeros, case, poisoned=("S", "B"))) == set()
    assert kinds(run(zeros, case, poisoned=("S",))) == {("unshown", "B", "")}
    assert kinds(run(right, case)) == {("wrong", "B", "")}


@pytest.mark.parametrize(("updated", "expected"), [(("B",), set()), ((), {("unshown", "B", "")})])
def test_a_counter_may_be_left_at_zero_where_another_output_is_not(updated: tuple[str, ...], expected: Any) -> None:
    assert CASE.reference is not None
    reference = CASE.reference
    case = replace(CASE, variants={}, reference=lambda *given: {**reference(*given), "B": torch.zeros(given[-1].shape)})

    def clears(a: Any, s: Any, b: Any) -> None:
        right(a, s, b)
        b.zero_()

    assert kinds(run(clears, case, poisoned=("S",), updated=updated)) == expected


@pytest.mark.parametrize(("terms", "expected"), [(1, {"wrong"}), (None, set())])
def test_the_longest_axis_is_summed_where_the_case_does_not_say(terms: int | None, expected: set[str]) -> None:
    def summed_in_another_order(a: Any, s: Any, b: Any) -> None:
        right(a, s, b)
        for out in (s, b):
            out *= 1 + 3e-7

    found = kinds(run(summed_in_another_order, replace(CASE, variants={}, terms=terms)))
    assert {kind for kind, *_ in found} == expected


def test_an_outcome_is_compared_instead() -> None:
    case = replace(
        CASE,
        variants={},
        outcome=lambda args, a, s, b: {"total": b.sum()[None]},
        reference=lambda args, a, s, b: {"total": a.double().sum()[None]},
    )
    assert kinds(run(one_lane_off, case)) == set()
    assert kinds(run(nothing, case)) == {("zeros", "total", "")}


def test_a_trace_is_replayed(tmp_path: Path) -> None:
    places = {"file": "kernels.py", "name": "case"}
    run(right, record=str(tmp_path), seeds=(0, 1), **places)
    again = run(right, replace(CASE, reference=None, inputs=None), replay=str(tmp_path), **places)
    assert len(again) == 6
    assert kinds(again) == set()
    assert again[0]["outputs"]["B"]["error"] == 0.0
    assert ("wrong", "B", "") in kinds(run(one_lane_off, replay=str(tmp_path), **places))
    with pytest.raises(RequestError, match="no trace of this case"):
        run(right, replay=str(tmp_path), file="kernels.py", name="another")


def test_a_reference_for_something_else_is_an_error() -> None:
    case = replace(CASE, reference=lambda args, a, s, b: {"C": a})
    with pytest.raises(RequestError, match="'C', which is no parameter; the kernel has A, S, B"):
        run(right, case)
    case = replace(CASE, reference=lambda args, a, s, b: {"B": a})
    with pytest.raises(RequestError, match="has shape"):
        run(right, case)
    with pytest.raises(RequestError, match="no inputs and reference"):
        run(right, replace(CASE, inputs=None))


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8"])
def test_poison_and_guards_work_for_every_dtype(dtype: str, other: bool) -> None:
    guarded = guarded_tensors.Guarded(torch.ones((3, 5), dtype=getattr(torch, dtype)))
    guarded.reset(True, other)
    assert bool(guarded.unwritten(other).all())
    assert not bool(guarded.unwritten(not other).any())
    if guarded.tensor.is_floating_point():
        assert bool(guarded.tensor.isnan().all())
    guarded.tensor[1, 2] = 3
    assert int(guarded.unwritten(other).sum()) == 14
    guarded.reset(poisoned=False)
    assert not guarded.changed()
    assert guarded.stray() is None
    flat, start = memory_of(guarded.tensor)
    before = flat[start - 1].item()
    flat[start - 1] += 1
    assert flat[start - 1].item() != before
    stray = guarded.stray()
    assert stray is not None
    assert stray.offset == -1


def nan_in_both(a: Any, s: Any, b: Any) -> None:
    right(a, s, b)
    s[7, 5] = torch.nan
    b[:] = torch.nan


def nan_of(args: Any, a: Any, s: Any, b: Any) -> dict[str, Any]:
    """The reference has NaN in one element of S, and in all of B."""
    assert CASE.reference is not None
    found = dict(CASE.reference(args, a, s, b))
    found["S"][7, 5] = torch.nan
    found["B"][:] = torch.nan
    return found


def test_nan_is_right_where_the_reference_has_it() -> None:
    """An output of nothing else shows nothing; another run with the same NaN is the same run."""
    assert kinds(run(nan_in_both, replace(CASE, reference=nan_of), repeats=2)) == {
        ("unshown", "B", name) for name in ("", "large", "longer")
    }
    assert {kind for kind, *_ in kinds(run(right, replace(CASE, reference=nan_of)))} == {"wrong"}
