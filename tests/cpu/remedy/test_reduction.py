"""A reduction ends with what its finding needs, in Python that a person can read."""

from __future__ import annotations

import ast
import io
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.cpu.checking import make_atomic, make_finding, make_result, make_run
from tlcheck.cli.main import main
from tlcheck.gate.verdict_outcomes import wrong_claim
from tlcheck.lower.runs import Lowered
from tlcheck.remedy import python_edits as edits
from tlcheck.remedy import reduction
from tlcheck.remedy.kernel_source import source_of
from tlcheck.remedy.python_buffers import dangling, read_first, without_dangling
from tlcheck.remedy.python_folding import without_parameters
from tlcheck.remedy.python_merging import copies, factors
from tlcheck.remedy.reducing import Reduced, _seeds_of
from tlcheck.remedy.reduction import KernelReduction, bound, is_sound, lines_of, written
from tlcheck.remedy.reduction_trials import WantedFinding
from tlcheck.report import reduce_text
from tlcheck.verdicts.claim import Claim, FindingOrigin, OriginKind
from tlcheck.verdicts.kept import Verdicts

BUILDER = """
import tilelang
import tilelang.language as T
import torch

@tilelang.jit(out_idx=[-1])
def product(n=256, block=128, dtype=T.float16, scale=None):
    assert dtype == T.float16
    if scale is None:
        scale = block ** 0.5
    shape = [1, n, n]

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype), unused: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, block), 1, threads=128) as (bx, by):
            a = T.alloc_shared((block, block), dtype)
            other = T.alloc_shared((block, block), dtype)
            for k in T.Pipelined(n // block, num_stages=2):
                T.copy(A[0, bx * block, k * block], a)
                T.copy(unused, other)
            T.copy(a, B[0, bx * block, by])
    return main

def helper():
    return product()
"""


class Benches:
    """Says at once what shows the finding; all of it is the fault of one pass while `blamed` holds."""

    def __init__(self, shows: Callable[[str], bool], blamed: Callable[[str], bool] = lambda text: True) -> None:
        self.shows, self._blamed, self.count = shows, blamed, 1

    def blames(self, text: str, pass_name: str) -> bool:
        return self._blamed(text)


def reduced(benches: Benches, pass_name: str = "") -> str:
    reduction = KernelReduction(cast(Any, benches), 60.0, pass_name)
    assert reduction.begin(bound(BUILDER, "product", {"n": "512"}))
    reduction.run("product")
    return reduction.best


def test_what_the_finding_needs_is_left() -> None:
    text = reduced(Benches(lambda text: "T.copy(A" in text and "T.Kernel" in text))
    assert is_sound(text)
    assert lines_of(text) <= 10
    for gone in ("torch", "unused", "other", "Pipelined", "def helper", "scale", "out_idx", "threads", "512"):
        assert gone not in text
    assert "T.Tensor" in text, "the parameter that is copied is still one"


def test_the_time_is_that_of_the_clock_from_the_first_trial_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]

    def shows(text: str) -> bool:
        clock[0] += 1
        return "T.copy(A" in text

    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    reduction = KernelReduction(cast(Any, Benches(shows)), 5.0)
    assert reduction.begin(bound(BUILDER, "product", {}))
    reduction.run("product")
    assert clock[0] == 1006.0
    assert "T.copy(A" in reduction.best


def test_ctrl_c_leaves_the_smallest_kernel_so_far() -> None:
    """It has the finding, and the file says that it may become smaller."""
    tried: list[str] = []

    def shows(text: str) -> bool:
        tried.append(text)
        return "T.copy(A" in text

    whole = bound(BUILDER, "product", {})
    reduction = KernelReduction(cast(Any, Benches(shows)), 60.0, stopped=lambda: len(tried) > 20)
    assert reduction.begin(whole)
    reduction.run("product")
    assert len(tried) < 40
    assert "T.copy(A" in reduction.best
    assert lines_of(reduction.best) < lines_of(whole)
    assert "out_idx" in reduction.best, "what would go last is still there"
    result = make_result("refuted")
    found = Reduced(reduction.best, "product", (lines_of(whole), lines_of(reduction.best)), result, None, 1, 0)
    file = io.StringIO()
    reduce_text.write(file, found)
    comment = f"# from {result.run.case}: {lines_of(whole)} -> {lines_of(reduction.best)} lines (interrupted)\n"
    assert comment in file.getvalue()
    assert file.getvalue().endswith(reduction.best)


def test_a_step_after_which_another_pass_is_to_blame_is_taken_back() -> None:
    needs = "Pipelined"
    text = reduced(Benches(lambda text: "T.copy(A" in text, lambda text: needs in text), "tl.InjectSoftwarePipeline")
    assert needs in text
    assert "other" not in text


def test_after_a_round_that_ends_with_another_pass_each_kind_is_looked_at() -> None:
    calm, careful = list[str](), list[str]()

    def shows(text: str) -> bool:
        return "T.copy(A" in text

    def blamed(asked: list[str], needs: str, text: str) -> bool:
        asked.append(text)
        return needs in text

    reduced(Benches(shows, partial(blamed, calm, "")), "tl.InjectSoftwarePipeline")
    text = reduced(Benches(shows, partial(blamed, careful, "Pipelined")), "tl.InjectSoftwarePipeline")
    assert "Pipelined" in text
    assert "other" not in text
    assert len(calm) < len(careful)


def test_what_the_finding_does_not_depend_on_goes_first() -> None:
    tried: list[str] = []

    def shows(text: str) -> bool:
        tried.append(text)
        return "T.copy(A" in text

    reduction = KernelReduction(cast(Any, Benches(shows)), 60.0, buffers=["B"])
    assert reduction.begin(bound(BUILDER, "product", {}))
    reduction.run("product")
    assert "unused" not in tried[0]
    assert "assert" not in tried[0], "smaller parameters are tried next"
    assert "T.copy(a, B" in tried[0]


def test_a_part_that_another_pass_has_wrong_is_not_begun_with() -> None:
    shows = Benches(lambda text: "T.copy(A" in text, lambda text: "unused" in text)
    reduction = KernelReduction(cast(Any, shows), 60.0, "tl.LowerTileOp", buffers=["B"])
    text = bound(BUILDER, "product", {})
    assert reduction.begin(text)
    assert reduction.best == text


def test_a_kernel_is_tried_with_a_seed_that_makes_its_output_wrong() -> None:
    def broken(kind: str, rule: str, *seeds: int) -> Claim:
        finding = replace(make_finding(rule), seeds=seeds)
        return replace(make_atomic("refuted"), kind=cast(Any, kind), finding=finding)

    race = broken("order", "TLR001", 0, 1, 2)
    output = broken("output", "TLO001", 2, 5)
    assert _seeds_of(race, replace(make_result(), claims=(race, output))) == (0, 2)
    assert _seeds_of(output, replace(make_result(), claims=(output, race))) == (2,)
    assert _seeds_of(race, replace(make_result(), claims=(race,))) == (0,)


def lowered(file: Path, name: str) -> Lowered:
    return cast(Lowered, SimpleNamespace(run=replace(make_run(), file=str(file), name=name), origin=None, saved=False))


@pytest.mark.parametrize(
    ("name", "by"), [("product", "product"), ("main", "product"), ("declared", "declared"), ("imported", "imported")]
)
def test_a_kernel_is_made_by_a_function(tmp_path: Path, name: str, by: str) -> None:
    """A script compiles what has the name of the PrimFunc; a captured case imports the script."""
    (tmp_path / "cases").mkdir()
    script, case = tmp_path / "script.py", tmp_path / "cases" / "script_cases.py"
    script.write_text(BUILDER + "\ndeclared = Case(product, args={'n': 4})")
    case.write_text("sys.path[:0] = [folder for folder in ('..',)]\nimported = Case(script.product)")
    source = source_of(lowered(case if name == "imported" else script, name))
    assert (source.file.resolve(), source.function, source.name) == (script, "product", by)


def test_a_kernel_stands_alone_with_its_arguments() -> None:
    text = bound(BUILDER, "product", {"n": "512", "dtype": "'float32'"})
    assert "helper" not in text
    assert "torch" not in text
    assert "def product(n=512, block=128, dtype='float32', scale=None):" in text
    with pytest.raises(ValueError, match="no value for n"):
        bound(BUILDER.replace("n=256, ", "n, ").replace("block=128, dtype=T.float16, scale=None", "m"), "product", {})


def test_parameters_are_folded_into_the_kernel() -> None:
    tree = ast.parse(bound(BUILDER, "product", {}))
    without_parameters(tree, next(f for f in edits.nodes(tree, ast.FunctionDef) if f.name == "product"))
    text = written(tree)
    assert "T.Tensor([1, 256, 256], T.float16)" in text
    assert "T.Kernel(2, 1, threads=128)" in text
    for gone in ("assert", "scale", "block"):
        assert gone not in text


def test_another_builder_of_the_file_may_take_arguments_without_defaults() -> None:
    text = bound(BUILDER, "product", {})
    further = "def further(m, n=64):\n    def main(A):\n        pass\n    return main\n"
    assert reduction._left(f"{further}\n{text}") == reduction._left(text)


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        (edits.axes, "A = T.alloc_shared((1, 8), 'int8')\nA[0, 3] = 1", "A = T.alloc_shared([8], 'int8')\nA[3] = 1"),
        (edits.wrappers, "for i, j in T.Parallel(4, 4):\n    T.f(i, j)", "T.f(0, 0)"),
        (edits.grids, "with T.Kernel(4, 2) as (x, y):\n    T.f(x, y)", "with T.Kernel(2) as y:\n    T.f(0, y)"),
        (edits.operands("last"), "T.f(a + b)", "T.f(b)"),
        (edits.sequences, "for k in T.Pipelined(4, num_stages=2):\n    T.f(k)", "for k in range(4):\n    T.f(k)"),
        (edits.keywords, "T.gemm(a, b, transpose_A=True)", "T.gemm(a, b)"),
        (
            copies,
            "for i in T.Parallel(8):\n    c[i] = c[i] + 1\nT.copy(c, C)",
            "for i in T.Parallel(8):\n    C[i] = c[i] + 1",
        ),
    ],
)
def test_an_edit_leaves_what_it_does_not_touch(kind: edits.Edits, before: str, after: str) -> None:
    tree = ast.parse(before)
    kind(tree)[0]()
    assert ast.unparse(tree).replace("(8,)", "[8]") == after


def test_one_buffer_stands_for_both_sides_of_a_copy() -> None:
    before = "a = T.alloc_shared((8,), 'int8')\nT.copy(A, a)\nb = T.alloc_fragment((8,), 'int8')\nT.copy(a, b)\nT.f(b)"
    found = set[str]()
    for number in range(len(copies(ast.parse(before)))):
        tree = ast.parse(before)
        copies(tree)[number]()
        found.add(ast.unparse(tree))
    assert (
        before.replace("T.copy(a, b)\n", "").replace("b = T.alloc_fragment((8,), 'int8')\n", "").replace("f(b", "f(a")
        in found
    )
    assert len(found - {before}) == 3, "either buffer, or the parameter"


def test_a_product_of_one_buffer_needs_no_other() -> None:
    tree = ast.parse(UNSET.replace("T.gemm(a, b, c)", "T.copy(A, b)\nT.gemm(a, b, c)"))
    factors(tree)[1]()
    without_dangling(tree, {"d"})
    assert "T.gemm(a, a, c)" in ast.unparse(tree)
    assert "b = " not in ast.unparse(tree)


def test_edits_leave_what_is_python() -> None:
    for kind in (
        copies,
        factors,
        edits.names,
        edits.statements,
        edits.wrappers,
        edits.grids,
        edits.keywords,
        edits.axes,
    ):
        for number in range(len(kind(ast.parse(BUILDER)))):
            tree = ast.parse(BUILDER)
            kind(tree)[number]()
            compile(written(tree), "kernel.py", "exec")


def test_a_grid_keeps_an_axis() -> None:
    tree = ast.parse("with T.Kernel(4, 2) as (x, y):\n    T.f(x, y)")
    for edit in edits.grids(tree):
        edit()
    assert ast.unparse(tree) == "with T.Kernel(2) as y:\n    T.f(0, y)"


UNSET = """
a = T.alloc_shared((8,), "int8")
b = T.alloc_fragment((8,), "int8")
c = T.alloc_fragment((8,), "int8")
d = T.alloc_fragment((8,), "int8")
T.copy(A, a)
T.clear(c)
T.gemm(a, b, c)
for i in T.Parallel(8):
    d[i] += c[i]
"""


def test_what_nobody_sets_or_reads_goes_with_all_that_mentions_it() -> None:
    tree = ast.parse(UNSET)
    assert dangling(tree) == {"b", "d"}
    without_dangling(tree, set())
    edits.tidy(tree)
    assert ast.unparse(tree) == ""
    whole = UNSET.replace("d[i] +=", "C[d[i]] =").replace("T.clear(c)", "T.reduce_sum(b, d)\nT.f(b)")
    assert dangling(ast.parse(whole)) == set()
    assert dangling(ast.parse(UNSET.replace("T.gemm", "b[0] = b[0] + 1\nT.gemm"))) == {"b", "d"}


def test_a_buffer_that_is_read_first_is_not_set_by_what_comes_later() -> None:
    loop = "a = T.alloc_shared((8,))\n{}for k in T.serial(2):\n    B[k] = a[k]\n    T.copy(A[k], a)\nT.copy(a, B)"
    assert dangling(ast.parse(loop.format(""))) == set()
    assert read_first(ast.parse(loop.format(""))) == {"a"}
    assert read_first(ast.parse(loop.format("T.copy(A[0], a)\n"))) == set()


def test_a_product_adds_to_what_has_to_be_set_before() -> None:
    product = "c = T.alloc_fragment((8, 8))\n{}T.gemm(A, B, c{})\nT.copy(c, C)"
    assert read_first(ast.parse(product.format("", ""))) == {"c"}
    assert read_first(ast.parse(product.format("T.clear(c)\n", ""))) == set()
    assert read_first(ast.parse(product.format("", ", clear_accum=True"))) == set()
    assert read_first(ast.parse("c = T.alloc_fragment((8,))\nc[0] += 1\nT.copy(c, C)")) == {"c"}


def test_what_is_set_to_itself_is_not_read() -> None:
    tree = ast.parse("c = T.alloc_fragment((8,))\nT.clear(c)\nc[0] = c[0]")
    edits.tidy(tree)
    assert dangling(tree) == {"c"}
    assert "c[0]" not in ast.unparse(tree)


def test_an_empty_part_of_a_buffer_is_no_kernel() -> None:
    assert is_sound("import T\nT.copy(T[0:16, 16:17])")
    assert not is_sound("import T\nT.copy(T[0:16, 16:16])")


def test_a_smaller_kernel_sets_what_it_reads() -> None:
    text = reduced(Benches(lambda text: "T.copy(a" in text))
    assert "T.copy(A[0" in text
    assert "other" not in text


def test_a_smaller_kernel_has_no_other_finding() -> None:
    def broken(rule: str) -> Claim:
        return replace(make_atomic("refuted", rule=rule), kind="output")

    wanted = WantedFinding.of(broken("TLO001"), [broken("TLO001"), broken("TLR001")])
    for rules, is_shown in ((["TLO001"], True), (["TLR001", "TLO001"], True), (["TLO001", "TLA004"], False)):
        assert wanted.is_shown(Verdicts(tuple(map(broken, rules)))) == is_shown
    assert not wanted.is_shown(Verdicts((broken("TLR001"),)))
    order = WantedFinding.of(broken("TLR001"), [broken("TLR001"), broken("TLO002")])
    assert not order.is_shown(Verdicts((broken("TLR001"),))), "nothing shows what the race does"
    assert order.is_shown(Verdicts((broken("TLR001"), broken("TLO002"))))


@pytest.mark.parametrize(("kind", "is_shown"), [("early", True), ("unwritten", False), ("other-value", True)])
def test_a_smaller_kernel_begins_to_be_wrong_in_the_same_way(kind: OriginKind, is_shown: bool) -> None:
    def broken(kind: OriginKind) -> Claim:
        finding = replace(make_finding("TLO001"), origin=FindingOrigin(kind, 1, 0, ("A",), "it begins"))
        return replace(make_atomic("refuted"), kind="output", finding=finding)

    assert WantedFinding.of(broken(kind)).is_shown(Verdicts((broken("early"),))) == is_shown


@pytest.mark.parametrize(
    ("what", "is_shown"),
    [("64 threads reach barrier 4, which counts 32", True), ("64 threads reach a barrier that counts 128", False)],
)
def test_a_smaller_kernel_stops_for_the_same_reason(what: str, is_shown: bool) -> None:
    def broken(what: str) -> Claim:
        finding = replace(make_finding("TLL001"), words=f"{what}, in block (0, 0, 0), thread 8 (TIR line 60)")
        return replace(make_atomic("refuted"), kind="legality", buffer="?", finding=finding)

    wanted = WantedFinding.of(broken("128 threads reach barrier 3, which counts 64"))
    assert wanted.is_shown(Verdicts((broken(what),))) == is_shown


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("fix", "a saved snapshot cannot be lowered with a change: name its kernel, FILE::NAME"),
        ("reduce", "a saved snapshot has no source to reduce: name its kernel, FILE::NAME"),
        ("report", "a saved snapshot has no source to reduce: name its kernel, FILE::NAME"),
    ],
)
def test_a_snapshot_has_no_source(capsys: pytest.CaptureFixture[str], command: str, why: str) -> None:
    assert main([command, "tests/fixtures/wrong/wait-0.1.9.snapshot.json"]) == 2
    assert capsys.readouterr().err == f"tlcheck: error: {why}\n"


def test_an_error_is_made_small_before_a_hazard() -> None:
    result = make_result("refuted", "refuted")
    first, second = result.claims
    assert first.finding is not None
    hazard = replace(first, key="hazard", finding=replace(first.finding, weight="hazard"))
    assert wrong_claim(replace(result, claims=(hazard, second))) == second
    assert wrong_claim(replace(result, claims=(hazard,))) == hazard
