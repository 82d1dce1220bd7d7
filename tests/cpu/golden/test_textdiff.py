"""Aligning texts: what is only renamed or moved is told from what changed."""

from __future__ import annotations

import random
import re
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import randoms

from tests.cpu.golden.goldens import snapshot
from tlcheck.golden.comparison import compare_goldens, text_in_words
from tlcheck.golden.diff_sides import of_snapshot
from tlcheck.golden.indices import simpler
from tlcheck.golden.normal import normal_lines
from tlcheck.golden.textdiff import (
    ADDED,
    CHANGED,
    MOVED,
    NESTED,
    REMOVED,
    RENAMED,
    SAME,
    Row,
    TextDiff,
    compare_texts,
    differing_words,
)

KERNEL = """\
def main(A: T.Buffer([64], "float32"), B: T.Buffer([64], "float32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 128)
    s = T.alloc_buffer([64], "float32", scope="shared.dyn")
    # layout s: (i, j) -> (i * 8 + j)
    for k in T.serial(4):
        for i in T.unroll(8):
            s[i * 8 + tx] = A[k]
        T.tvm_storage_sync("shared.dyn")
        for i in T.unroll(8):
            B[i] = s[i * 8 + k]
    T.tvm_storage_sync("shared")
"""


def diff(after: str, before: str = KERNEL) -> TextDiff:
    return compare_texts(before.splitlines(), after.splitlines())


def changed(kernel: str, *replacements: tuple[str, str]) -> str:
    for old, new in replacements:
        assert old in kernel
        kernel = kernel.replace(old, new)
    return kernel


def rows(found: TextDiff, *kinds: str) -> list[Row]:
    return [row for row in found.rows if row.kind in kinds]


def sides(row: Row) -> tuple[str, str]:
    return tuple("" if side is None else side.text.strip() for side in (row.left, row.right))  # type: ignore[return-value]


def test_equal_texts_are_the_same() -> None:
    assert diff(KERNEL).verdict == "same"


@pytest.mark.parametrize(
    "names",
    [
        [("tx", "thread_binding")],
        [("A", "Q"), ("B", "dQ"), ("s", "q_shared"), ("k", "ko"), ("bx", "b"), ("tx", "t"), ("main", "kernel")],
        [("k", "i_1")],
    ],
)
def test_other_names_are_no_change(names: list[tuple[str, str]]) -> None:
    text = KERNEL
    for old, new in names:
        text = re.sub(rf"(?<![\w.\"]){old}(?![\w\"])", new, text)
    found = diff(text)
    assert found.verdict == "names"
    assert found.renamed.items() >= dict(names).items()
    assert rows(found, RENAMED)


def test_the_other_of_two_buffers_that_were_alike_is_not_renamed() -> None:
    """Of `a` and `w` the first grows: now `w` alone is declared as `a` was."""
    before = """\
def main(A: T.Buffer([1024], "float32")):
    bx = T.launch_thread("blockIdx.x", 1)
    a = T.alloc_buffer([64], "float32", scope="shared.dyn")
    w = T.alloc_buffer([64], "float32", scope="shared.dyn")
    c = T.alloc_buffer([64], "float32", scope="local.fragment")
    T.gemm(a[64], w[64], c[64])
"""
    grown = [
        ("a = T.alloc_buffer([64]", "a = T.alloc_buffer([128]"),
        ("c = T.alloc_buffer([64]", "c = T.alloc_buffer([128]"),
    ]
    assert diff(changed(before, *grown, ("a[64]", "a[128]"), ("c[64]", "c[128]")), before).renamed == {}


def test_equal_indices_in_other_terms_are_no_change() -> None:
    """Nor do they hide what is: they are quiet rows beside it."""
    respelled = ("s[i * 8 + tx] = A[k]", "s[i * 8 + tx] = A[k % 2 % 2 // 1]")
    before = changed(KERNEL, ("s[i * 8 + tx] = A[k]", "s[i * 8 + tx] = A[k % 2]"))
    after = changed(KERNEL, respelled)
    found = diff(after, before)
    assert (found.verdict, found.respelled) == ("names", 1)
    assert text_in_words(found) == "only the terms of equal indices differ"
    assert sides(rows(found, "renamed")[0]) == ("s[i * 8 + tx] = A[k % 2]", "s[i * 8 + tx] = A[k % 2 % 2 // 1]")
    both = diff(changed(after, ("bx =", "by =")), before)
    assert text_in_words(both) == "only names and the terms of equal indices differ"
    assert diff(changed(after, ("A[k % 2 % 2 // 1]", "A[k % 2 % 2 // 2]")), before).verdict == "changed"


def test_names_that_change_places_are_a_change() -> None:
    """The same names are used; which of them means what is not the same."""
    found = diff(changed(KERNEL, ("B[i] = s[i * 8 + k]", "B[k] = s[k * 8 + i]")))
    assert [sides(row) for row in rows(found, CHANGED)] == [("B[i] = s[i * 8 + k]", "B[k] = s[k * 8 + i]")]


def test_a_layout_names_its_variables_itself() -> None:
    assert diff(changed(KERNEL, ("(i, j) -> (i * 8 + j)", "(a, b) -> (a * 8 + b)"))).verdict == "names"
    assert diff(changed(KERNEL, ("(i, j) -> (i * 8 + j)", "(i, j) -> (j * 8 + i)"))).verdict == "changed"


def test_statements_in_another_order() -> None:
    lines = KERNEL.splitlines(keepends=True)
    found = diff("".join([*lines[:5], lines[11], *lines[5:11]]))
    assert found.verdict == "order"
    assert [sides(row) for row in rows(found, MOVED)] == [
        ("", 'T.tvm_storage_sync("shared")'),
        ('T.tvm_storage_sync("shared")', ""),
    ]


def test_a_statement_that_leaves_its_loop_is_not_the_same() -> None:
    text = changed(KERNEL, ('        T.tvm_storage_sync("shared.dyn")\n', ""))
    lines = text.splitlines()
    found = diff("\n".join([*lines[:-1], '    T.tvm_storage_sync("shared.dyn")', lines[-1]]))
    assert found.verdict == "changed"
    before = KERNEL.replace('        T.tvm_storage_sync("shared.dyn")\n        for', "        for")
    inner = before.replace("s[i * 8 + k]\n", 's[i * 8 + k]\n        T.tvm_storage_sync("shared.dyn")\n')
    outer = before.replace("s[i * 8 + k]\n", 's[i * 8 + k]\n    T.tvm_storage_sync("shared.dyn")\n')
    assert [sides(row)[0] for row in rows(diff(outer, inner), NESTED)] == ['T.tvm_storage_sync("shared.dyn")']


def test_a_branch_around_statements_is_one_line_more() -> None:
    lines = KERNEL.splitlines()
    wrapped = [*lines[:5], "    if tx < 64:", *("    " + line for line in lines[5:11]), lines[11]]
    found = diff("\n".join(wrapped))
    assert [(row.kind, *sides(row)) for row in found.rows if row.kind != SAME] == [(ADDED, "", "if tx < 64:")]


def test_a_removed_barrier_is_that_line() -> None:
    found = diff(changed(KERNEL, ('        T.tvm_storage_sync("shared.dyn")\n', "")))
    assert [(row.kind, *sides(row)) for row in found.rows if row.kind != SAME] == [
        (REMOVED, 'T.tvm_storage_sync("shared.dyn")', "")
    ]


def test_another_number_is_shown_in_its_word() -> None:
    found = diff(changed(KERNEL, ("T.serial(4)", "T.serial(12, num_stages=3)")))
    (row,) = rows(found, CHANGED)
    assert row.left is not None
    assert row.right is not None
    ours, theirs = row.spans()
    assert [row.left.text[start:end] for start, end in ours] == ["4"]
    assert [row.right.text[start:end] for start, end in theirs] == ["12, num_stages=3"]


def test_words_of_a_line_and_indentation() -> None:
    assert differing_words("    a[1] = b", "        a[1] = b") == ((), ())
    assert differing_words("    a[1] = b", "        a[21] = b") == (((6, 7),), ((10, 12),))
    assert differing_words("x", "x + 1") == ((), ((1, 5),))


@settings(max_examples=150)
@given(rng=randoms(use_true_random=False))
def test_every_line_of_both_texts_is_shown_once_and_in_order(rng: random.Random) -> None:
    lines = KERNEL.splitlines() * 3
    left, right = _edited(rng, lines), _edited(rng, lines)
    found = compare_texts(left, right)
    for side, text in (("left", left), ("right", right)):
        shown = [s for row in found.rows if (s := getattr(row, side)) is not None]
        assert [s.text for s in shown] == text
        assert [s.number for s in shown] == list(range(1, len(text) + 1))
    assert (found.verdict == "same") == (left == right)
    for row in rows(found, SAME):
        assert sides(row)[0] == sides(row)[1]


def _edited(rng: random.Random, lines: list[str]) -> list[str]:
    text = [line for line in lines if rng.random() > 0.1]
    for _ in range(rng.randrange(4)):
        text.insert(rng.randrange(len(text) + 1), rng.choice(lines))
    if text:
        place = rng.randrange(len(text))
        text[place] = text[place].replace("8", "16")
    return text


@pytest.mark.parametrize("name", ["annotated_gemm", "loop_pipelined", "tail_tile_odd"])
def test_any_word_that_differs_in_a_real_kernel_is_noticed(name: str) -> None:
    lines = normal_lines(snapshot(name).checkpoints["lower-tile-op"])
    for place, line in list(enumerate(lines))[::2]:
        for found in re.finditer(r"\d+", line):
            other = line[: found.start()] + str(int(found[0]) + 1) + line[found.end() :]
            if not re.search(
                r"\.\d+", found.string[max(0, found.start() - 1) : found.end()]
            ):  # a view's number: a name
                expected = "names" if simpler(other) == simpler(line) else "changed"  # it stands for the same number
                assert compare_texts(lines, [*lines[:place], other, *lines[place + 1 :]]).verdict == expected, other


def test_the_work_grows_with_the_lines_only() -> None:
    """Edited here and there, with other numbers, or another kernel: four times the lines are four times the work."""
    short, long = _texts(250), _texts(1000)
    for few, many in zip(short[1:], long[1:], strict=True):
        assert _steps(long[0], many) < 5 * _steps(short[0], few)
        assert compare_texts(long[0], many).verdict == "changed"
    assert compare_texts(long[0], long[1]).counts[SAME] > 900


def _texts(lines: int) -> list[list[str]]:
    """A text of so many lines, and three others to compare it with."""
    kernel, foreign = (
        normal_lines(snapshot(name).checkpoints["lower-tile-op"]) for name in ("loop_pipelined", "tail_tile_odd")
    )
    text = (kernel[:1] + kernel[1:] * lines)[:lines]
    rng = random.Random(3)
    edited = [line for line in text if rng.random() > 0.01]
    others = [re.sub(r"\b\d+", lambda found: str(int(found[0]) * 2), line) for line in text]
    return [text, edited, others, (foreign[:1] + foreign[1:] * lines)[:lines]]


def _steps(left: list[str], right: list[str]) -> int:
    """Count the lines of Python that a comparison runs: unlike seconds, the same on every machine."""
    count = 0

    def step(*_: object) -> Any:
        nonlocal count
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        compare_texts(left, right)
    finally:
        sys.settrace(before)
    return count


def test_the_same_words_about_something_else_did_not_move() -> None:
    lines = KERNEL.splitlines()
    before = [*lines[:4], "    x = A[tx]", *lines[4:]]
    assert diff("\n".join([*lines, "    x = A[tx]"]), "\n".join(before)).verdict == "order"
    found = diff("\n".join([*lines, "    x = A[bx]"]), "\n".join(before))
    assert found.verdict == "changed"
    assert not found.counts[MOVED]


def test_a_loop_names_its_variable_within_it_only() -> None:
    """After its loop the name is another one, which nothing declares."""
    before = "def main(A: T.Buffer([8])):\n    for n in T.serial(8):\n        A[n] = 0\n    A[n] = 1\n"
    assert diff(before.replace("for n", "for m", 1).replace("A[n] = 0", "A[m] = 0"), before).verdict == "names"
    assert diff(re.sub(r"\bn\b", "m", before), before).verdict == "changed"


def test_long_insertions_leave_what_is_around_them_aligned() -> None:
    around = [f"    T.call_{number}()" for number in range(50)]
    new = [f"    T.other({number % 7}, {number % 11})" for number in range(900)]
    after = [*around[:20], *new[:600], *around[20:30], *new[600:], *around[30:]]
    found = compare_texts([*around[:20], *new[600:700], *around[20:]], after)
    assert found.counts[SAME] >= len(around)
    for row in rows(found, ADDED, REMOVED):
        assert "call_" not in "".join(sides(row))


def test_an_older_snapshot_without_source_is_the_same() -> None:
    saved = snapshot("loop_pipelined")
    older = {name: function for name, function in saved.checkpoints.items() if name != "source"}
    newer = {"source": older["intent"], **older}
    sides = [of_snapshot(replace(saved, checkpoints=c)) for c in (older, newer)]
    assert compare_goldens(*sides).is_same
    del older["intent"]
    assert compare_goldens(of_snapshot(replace(saved, checkpoints=older)), sides[1]).missing
