"""What a finding does not depend on goes at once, and macros are taken apart before."""

from __future__ import annotations

import ast

import pytest

from tlcheck.remedy.python_edits import drop_names, tidy
from tlcheck.remedy.python_macros import inline
from tlcheck.remedy.python_slicing import slices

KERNEL = """
@T.macro
def doubled(a, b):
    for i in T.Parallel(8):
        b[i] = a[i] * 2

def builder():
    @T.prim_func
    def main(A: T.Tensor((8,)), B: T.Tensor((8,)), C: T.Tensor((8,)), D: T.Tensor((8,))):
        with T.Kernel(1) as bx:
            s = T.alloc_shared((8,), 'int32')
            t = T.alloc_shared((8,), 'int32')
            row = T.alloc_var('int32')
            row = A[0]
            doubled(A, s)
            for i in T.Parallel(row):
                C[i] = s[i]
            doubled(B, t)
            T.copy(t, D)
    return main
"""


def left(names: frozenset[str]) -> str:
    tree = ast.parse(KERNEL)
    drop_names(tree, names)
    return ast.unparse(tree)


@pytest.mark.parametrize(("buffer", "kept", "gone"), [("C", "A: s row C", "B: t D"), ("D", "B: t D", "A: s row C")])
def test_a_slice_keeps_what_an_output_depends_on(buffer: str, kept: str, gone: str) -> None:
    (names,) = slices(ast.parse(KERNEL), [buffer])
    assert names == set(gone.replace(":", "").split())
    text = left(names)
    for name in kept.replace(":", "").split():
        assert f"{name} =" in text or f"{name}:" in text


def test_a_buffer_is_shown_by_an_output() -> None:
    found = [*slices(ast.parse(KERNEL), ["s"])]
    assert found[0] == {"B", "t", "D"}, "C alone shows it"
    assert [*slices(ast.parse(KERNEL), ["buf_dyn_shmem"])] == []


def test_macros_are_replaced_by_their_statements() -> None:
    tree = ast.parse(KERNEL)
    inline(tree)
    text = ast.unparse(tree)
    assert "doubled" not in text
    assert "s[i] = A[i] * 2" in text
    assert "t[i] = B[i] * 2" in text


@pytest.mark.parametrize("line", ["return a[0]", "c = T.alloc_local((1,), 'int32')"])
def test_a_macro_that_needs_names_of_its_own_stays(line: str) -> None:
    tree = ast.parse(KERNEL.replace("b[i] = a[i] * 2", f"b[i] = a[i] * 2\n    {line}"))
    inline(tree)
    tidy(tree)
    assert ast.unparse(tree).count("doubled(") == 3
