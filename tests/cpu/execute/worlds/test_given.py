"""A case's own inputs: read from a file, held against the parameters, and laid out as the kernel declares them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.fixtures.index import FOLDER
from tlcheck.errors import UsageError
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.memory.values import Array
from tlcheck.execute.request import GivenInputs, Request
from tlcheck.execute.worlds import given, stored_inputs
from tlcheck.execute.worlds.inputs import known
from tlcheck.snapshot.codec import loads
from tlcheck.snapshot.ir import Expr

LOOP = loads((FOLDER / "wrong/loop-0.1.15.snapshot.json").read_text())  # C = A + 1, and 5 more for the first 100
SOURCE = LOOP.checkpoints["source"]


def written(folder: Path, *sets: tuple[Array, ...]) -> GivenInputs:
    places: list[list[int]] = []
    with (folder / "inputs").open("wb") as file:
        for arrays in sets:
            places.append([])
            for array in arrays:
                places[-1].append(file.tell())
                np.save(file, array)
    return GivenInputs(str(folder / "inputs"), tuple((s, tuple(p)) for s, p in enumerate(places)), "kernel.py:7")


def tensor(first: float) -> Array:
    return np.arange(first, first + 256, dtype=np.float32)


def test_each_seed_has_its_own(tmp_path: Path) -> None:
    sets = given.tensors(SOURCE, written(tmp_path, (tensor(0), tensor(0)), (tensor(1000), tensor(0))))
    request = Request(given=sets, seeds=given.alike(sets), poisoned=given.poisoned(SOURCE, None))
    source_alone = replace(LOOP, checkpoints={"source": SOURCE, "device-tir": SOURCE})
    execution = execute(source_alone, request)
    assert [o.verdict for o in execution.outputs] == ["agreed"]
    assert execution.seeds == (0, 1)
    expected = np.arange(256) + 1.0 + 5.0 * (np.arange(256) < 100)
    assert np.array_equal(next(iter(execution.left.values())).values, expected)
    (output,) = execute(LOOP, replace(request, seeds=(1,))).outputs
    assert output.difference is not None
    assert float(output.difference.expected) == 1000 + output.difference.index[0] + 1


def test_sets_of_other_shapes_are_left_out(tmp_path: Path) -> None:
    sets = given.tensors(SOURCE, written(tmp_path, (tensor(0), tensor(0)), (tensor(0)[:8], tensor(0))))
    assert given.alike(sets) == (0,)


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="inputs gives 1 values, the kernel takes 2: A, C"):
        given.tensors(SOURCE, written(tmp_path, (tensor(0),)))
    (arrays,) = given.tensors(SOURCE, written(tmp_path, (tensor(0).reshape(2, 128), tensor(0)))).values()
    with pytest.raises(UsageError, match=r"inputs gives A of shape \[2, 128\], the kernel takes \[256\]"):
        given.require_shapes(SOURCE, arrays, {})


N, HEADS = (Expr("var", "int32", (), name, uid) for uid, name in enumerate(("n", "heads"), -9))


def binary(op: str, a: Expr, b: Expr | int) -> Expr:
    return Expr(op, "int32", (a, b if isinstance(b, Expr) else Expr("int", "int32", (), b)))


@pytest.mark.parametrize(
    ("axes", "lengths", "expected"),
    [
        ((binary("add", N, 1),), (33,), {"n": 32}),
        ((binary("sub", N, 1),), (33,), {"n": 34}),
        ((binary("mul", N, 4),), (12,), {"n": 3}),
        ((binary("mul", N, 4),), (13,), {}),
        ((binary("mul", binary("add", N, 1), HEADS), HEADS), (12, 3), {"heads": 3, "n": 3}),
        ((binary("mul", N, HEADS), binary("add", HEADS, 1)), (12, 4), {"heads": 3, "n": 4}),
        ((binary("mul", N, HEADS),), (12,), {}),
        ((binary("mul", N, 0),), (0,), {}),
        ((binary("add", N, 8),), (3,), {}),
        ((binary("mul", N, N),), (9,), {}),
        ((binary("floordiv", N, 2),), (9,), {}),
    ],
)
def test_sizes_are_solved_from_shapes(
    axes: tuple[Expr, ...], lengths: tuple[int, ...], expected: dict[str, int]
) -> None:
    buffer = replace(SOURCE.buffers[0], shape=axes)
    function = replace(SOURCE, buffers=(buffer,), params=(buffer.data,))
    assert known(function, {str(buffer.data.value): np.zeros(lengths)}) == expected


def test_elements_lie_apart_where_the_kernel_has_strides() -> None:
    two, three = (Expr("int", "int32", (), n) for n in (2, 3))
    buffer = replace(SOURCE.buffers[0], shape=(two, two), strides=(three, two))
    memory = given.arranged(np.array([[1.0, 2.0], [3.0, 4.0]]), buffer, {})
    assert memory.tolist() == [1.0, 0.0, 2.0, 3.0, 0.0, 4.0]


def test_calls_of_a_script_are_its_word_where_all_is_known(tmp_path: Path) -> None:
    calls = replace(written(tmp_path, (tensor(0), tensor(0)), (tensor(0)[:8], tensor(0))), captured=True)
    (asked,) = given.called(SOURCE, replace(calls, unknown=((), ())), Request())
    assert (asked.seeds, asked.drawn) == ((0, 1), {0: frozenset(), 1: frozenset("A")})
    assert (asked.inputs, asked.is_own, replace(asked, seeds=(0,)).is_own) == ("the script's", False, True)
    expected = np.arange(256) + 1.0 + 5.0 * (np.arange(256) < 100)
    assert np.array_equal(execute(LOOP, asked).left["C"].values, expected)
    (asked,) = given.called(SOURCE, replace(calls, unknown=((0,), ())), Request())
    assert (asked.inputs, asked.is_own) == ("the script's, A random", False)
    drawn = execute(LOOP, asked).left["C"].values
    assert set(np.unique(drawn)) <= set(range(-3 + 1, 3 + 7))


def test_inputs_are_kept_as_text(tmp_path: Path) -> None:
    made = replace(written(tmp_path, (tensor(0), tensor(5))), captured=True, unknown=((1,),), updates=("C",))
    text = stored_inputs.packed(made)
    with stored_inputs.unpacked(text) as found:
        assert replace(found, file=made.file) == made
        assert Path(found.file).read_bytes() == Path(made.file).read_bytes()
    assert not Path(found.file).exists()
    for damaged in ("?", text[:40], text[4:]):
        with pytest.raises(UsageError, match="damaged"), stored_inputs.unpacked(damaged):
            pass
