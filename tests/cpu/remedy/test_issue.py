"""An issue names the cause, shows it with a script of its own, and fits on a page."""

from __future__ import annotations

import ast
import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.cpu.checking import make_atomic, make_finding, make_result, make_run
from tlcheck.cli.main import main
from tlcheck.cli.reduce import _nothing
from tlcheck.lower.selection import Variation
from tlcheck.lower.session import Settings
from tlcheck.remedy.issue import (
    CudaChange,
    Issue,
    IssueSearch,
    SharedBytes,
    ShownElement,
    difference,
    overlap,
    readable,
)
from tlcheck.remedy.kernel_changes import PASS_CONFIG, KernelChange
from tlcheck.remedy.reducing import Reduced
from tlcheck.remedy.reproduction import FORMULAS, Reproduction, tensors_of
from tlcheck.remedy.search import MENDS, Attempt, Workarounds, WrongKernel
from tlcheck.report import issue_markdown
from tlcheck.report.fix_text import paste
from tlcheck.report.issue_markdown import LONGEST, _sentence, quoted
from tlcheck.snapshot import codec
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Expr
from tlcheck.verdicts.claim import Excerpt, FindingHistory, FindingOrigin, PassRole
from tlcheck.verdicts.results import Result
from tlcheck.witness import Element

KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[1], pass_configs={'tl.disable_wgmma': True})
def sums():

    @T.prim_func
    def main(A: T.Tensor((64, 8), 'float16'), O: T.Tensor((64,), 'float16')):
        with T.Kernel(1, threads=64):
            T.copy(A, O)
    return main
"""
ELEMENT = Element((3,), "3.0", "21.0", "the case's of seed 0")
SUMS = Path("tests/fixtures/wrong/sums-0.1.9.snapshot.json")


def script() -> Reproduction:
    tensors = tensors_of(codec.loads(SUMS.read_text()).checkpoints[Checkpoint.SOURCE], FORMULAS[0])
    return replace(Reproduction.of(KERNEL, "sums", "sm_80", {"tl.disable_wgmma": "True"}), tensors=tensors)


def issue(hunks: tuple[tuple[str, ...], ...] = ((" }", "-wait<2>();", "+wait<1>();"),)) -> Issue:
    origin = FindingOrigin("early", 11, 0, ("O",), "O[0] is read at line 11 (thread 0, TIR line 7) before the store")
    history = FindingHistory(("0.1.14",), ("0.1.10", "0.1.9"), pass_name="tl.VectorizeLoop")
    finding = replace(make_finding("TLO001"), origin=origin, history=history)
    claim = replace(make_atomic("refuted", "O"), kind="output", finding=finding)
    result = Result(make_run("0.1.13", "sm_80"), (claim,), pass_configs={})
    change = KernelChange(PASS_CONFIG, Variation(pass_configs=(("TIR_DISABLE_VECTORIZE", "True"),)))
    found = Workarounds(WrongKernel(result, cast(Any, None)), [Attempt(change, MENDS)])
    reduced = Reduced(KERNEL, "sums", (100, 5), result, result, 1, 0)
    cuda = CudaChange("0.1.14", hunks)
    return Issue(reduced, claim, KERNEL, script().written("O", ELEMENT), ShownElement("O", ELEMENT), found, cuda)


def markdown(about: Issue) -> str:
    file = io.StringIO()
    issue_markdown.write(file, about)
    return file.getvalue()


def test_a_maintainer_finds_what_they_need() -> None:
    text = markdown(issue())
    for line in (
        "# [Bug] tl.VectorizeLoop: `O` is read before it is written (sm_80, 0.1.13)",
        "`O[0]` is read in `T.copy(A, O)` (thread 0) before the store.",
        "**Releases**: wrong in 0.1.9, 0.1.10, 0.1.13; right in 0.1.14.",
        "tilelang.PassConfigKey.TIR_DISABLE_VECTORIZE: True",
        "-wait<2>();",
    ):
        assert line in text
    assert "TIR line" not in text
    about = issue()
    assert about.claim.finding is not None
    history = FindingHistory(("0.1.14",), ("0.1.10", "0.1.9", "0.1.11", "0.1.12"))
    claim = replace(about.claim, finding=replace(about.claim.finding, history=history))
    assert "**Releases**: wrong in 0.1.9 to 0.1.13; right in 0.1.14." in markdown(replace(about, claim=claim))
    history = FindingHistory((), ("0.1.6.post2", "0.1.9"))
    claim = replace(about.claim, finding=replace(about.claim.finding, history=history))
    assert "**Releases**: wrong in all 3 that were tried, 0.1.6.post2 to 0.1.13." in markdown(
        replace(about, claim=claim)
    )


def test_an_undefined_element_says_why() -> None:
    unset = Element((3,), "poison: never written", "21.0", "seed 0")
    text = markdown(replace(issue(), shown=ShownElement("O", unset)))
    assert (
        "should be 21.0. In the lowered kernel, executed on the CPU, the element is undefined (never written)." in text
    )
    assert "the element is 3.0." in markdown(issue())


def test_an_amd_gpu_has_hip() -> None:
    about = issue()
    result = replace(about.reduced.result, run=make_run("0.1.13", "gfx942"))
    text = markdown(replace(about, reduced=replace(about.reduced, result=result)))
    assert "Without a GPU, this prints the HIP source." in text
    assert "**HIP**: 0.1.13 (`-`) against" in text
    alone = replace(about, reduced=replace(about.reduced, result=result), cuda=None, generated=("f0();",))
    assert "**HIP** of 0.1.13, without declarations:\n```cpp\nf0();\n```\n" in markdown(alone)


def test_a_pass_of_which_it_is_not_sure_is_no_title() -> None:
    about = issue()
    finding = about.claim.finding
    assert finding is not None

    def noted(note: str, role: PassRole) -> str:
        history = FindingHistory((), pass_name="tl.VectorizeLoop", role=role, note=note)
        return markdown(replace(about, claim=replace(about.claim, finding=replace(finding, history=history))))

    unsure = noted("or an earlier one: orders are watched from tl.VectorizeLoop on", "may-break")
    assert unsure.startswith("# [Bug] `O` is read before it is written (sm_80, 0.1.13)\n")
    assert "to blame is this pass, or an earlier one: orders are watched from tl.VectorizeLoop on." in unsure
    sure = noted("it gives f a layout for 100 of its 256 elements", "breaks")
    assert sure.startswith("# [Bug] tl.VectorizeLoop: ")
    assert "and wrong after it (it gives f a layout for 100 of its 256 elements)." in sure


def test_a_pass_that_nobody_examined_is_not_accused() -> None:
    """Ctrl-C may come before: the finding knows only after which checkpoint it is there."""
    about = issue()
    assert about.claim.finding is not None
    history = replace(about.claim.finding.history or FindingHistory(()), pass_name="")
    claim = replace(about.claim, finding=replace(about.claim.finding, history=history, pass_name="tl.VectorizeLoop"))
    result = replace(about.reduced.result, claims=(claim,))
    text = markdown(replace(about, claim=claim, reduced=replace(about.reduced, result=result, after=None)))
    assert text.startswith("# [Bug] `O` is read before it is written (sm_80, 0.1.13)\n")
    assert "It is there after `tl.VectorizeLoop`; which pass is to blame was not examined.\n" in text
    assert "The TIR is right" not in text


def test_a_pass_that_leaves_a_barrier_out_has_changed_nothing() -> None:
    about = issue()
    finding = about.claim.finding
    assert finding is not None
    claim = replace(
        about.claim, finding=replace(finding, history=FindingHistory((), pass_name="tl.ThreadSync", role="orders"))
    )
    result = replace(about.reduced.result, claims=(claim,))
    text = markdown(replace(about, claim=claim, reduced=replace(about.reduced, result=result, after=result)))
    assert "`tl.ThreadSync` should have ordered them.\n" in text
    assert "The TIR is right" not in text


def test_where_the_line_is_not_known_the_tir_is_shown() -> None:
    about = issue()
    finding = about.claim.finding
    assert finding is not None
    assert finding.origin is not None
    excerpt = Excerpt(5, 6, ("for k in range(64):", "  s[tx, k] = f[0]"))
    origin = replace(finding.origin, line=0, words="access of s out of bounds (thread 4, TIR line 6)")
    unknown = replace(about.claim, finding=replace(finding, origin=origin, excerpt=excerpt))
    said = "Access of s out of bounds (thread 4). In the TIR that is `s[tx, k] = f[0]`."
    assert said in markdown(replace(about, claim=unknown))
    known = replace(about.claim, finding=replace(finding, excerpt=excerpt))
    assert "In the TIR" not in markdown(replace(about, claim=known))


def test_a_configuration_of_the_kernel_that_is_flipped_is_told() -> None:
    about = issue()
    assert about.workarounds is not None
    own = replace(
        about.workarounds.kernel.result, pass_configs={"tir.disable_vectorize": "False", "tl.disable_wgmma": "1"}
    )
    found = replace(about.workarounds, kernel=WrongKernel(own, cast(Any, None)))
    text = markdown(replace(about, workarounds=found))
    assert "`tilelang.PassConfigKey.TIR_DISABLE_VECTORIZE: True`, which `configs` has at False.\n" in text
    kept = "{tilelang.PassConfigKey.TIR_DISABLE_VECTORIZE: True, tilelang.PassConfigKey.TL_DISABLE_WGMMA: 1}"
    assert f"@tilelang.jit(pass_configs={kept})" in paste(found.found[0].change, own)


def test_it_fits_on_a_page_whatever_the_cuda_is() -> None:
    about = [(f"-O[{n}]", *(f"+{n}.{m}" for m in range(30))) for n in range(40)]
    many = (("-if (x)",), ("-cp_async_gs(x)",), *about)
    text = markdown(issue(many))
    assert len(text.splitlines()) <= LONGEST
    assert "+0.0" in text
    assert "-if (x)" not in text, "what is not about the finding says nothing where it is not all there is"
    assert ", in part:" in text
    assert "in part" not in markdown(issue())


def test_a_kernel_of_25_lines_leaves_room_for_its_cuda() -> None:
    lines = KERNEL.strip().splitlines()
    text = "\n".join((*lines[:-2], *["            T.copy(A, O)"] * (25 - len(lines)), *lines[-2:]))
    tensors = (*script().tensors, *script().tensors)
    written = replace(Reproduction.of(text, "sums", "sm_80", {"tl.x": "1"}), tensors=tensors).written("O", ELEMENT)
    about = replace(issue(), script=written, cuda=None, generated=("f();",) * 50)
    assert markdown(about).count("f();\n") >= 4
    assert len(markdown(about).splitlines()) == LONGEST


@pytest.mark.parametrize("generated", [None, ("O[0] = f();", "g();")])
def test_a_large_kernel_has_an_issue_too(generated: tuple[str, ...] | None) -> None:
    """Ctrl-C may come before it is small: what is known is told, whatever its length."""
    large = "\n".join(f"x{n} = {n}" for n in range(100))
    text = markdown(replace(issue(), script=large, cuda=None, generated=generated, shown=None, workarounds=None))
    assert "x99 = 99\n```\n" in text
    assert "**Environment**" in text


def test_the_lines_of_a_kernel_that_is_not_reduced_are_those_of_its_own_file(tmp_path: Path) -> None:
    """A captured case declares a kernel of another file."""
    kernel, case = tmp_path / "kernels.py", tmp_path / "cases.py"
    kernel.write_text("the kernel")
    case.write_text("its case")
    result = make_result("refuted")
    (claim,) = result.claims
    claim = replace(claim, source=replace(claim.source, file=str(kernel)))
    result = replace(result, run=replace(result.run, file=str(case)), claims=(claim,))
    stopped = cast(Any, SimpleNamespace(stopped=lambda: True))
    search = IssueSearch(stopped, Reduced("", "f", (1, 1), result, None, 0, 0), script(), Settings())
    assert search.issue().text == "the kernel"
    kernel.unlink()
    assert search.issue().text == ""


CUDA = """
  f();
  for (int i = 0; i < 4; ++i) {
    g();
    if (((int)threadIdx.x) < 128) {
      h();
    } else {
      *(float4*)(O + ((((((int)threadIdx.x) >> 5) * 1024) + ((i & 1) * 512)) + ((((int)threadIdx.x) & 31) * 8))) = X[i];
      h();
    }
    __syncthreads();
  }
"""


def test_the_lines_about_a_finding_stand_in_their_blocks() -> None:
    """A release that differs in many places says less."""
    many = tuple((f"-g{n}(O);",) for n in range(LONGEST))
    about = replace(issue(many), generated=(*CUDA.strip("\n").splitlines(), *["  f();"] * LONGEST))
    lines = markdown(about).partition("**CUDA** of 0.1.13, the lines about `O`:\n```cuda\n")[2].partition("```")[0]
    assert lines.splitlines() == [
        "  for (int i = 0; i < 4; ++i) {",
        "    ...",
        "    if (((int)threadIdx.x) < 128) {",
        "      ...",
        "    } else {",
        "      *(float4*)(O + (...)) = X[i];",
    ]
    finding = about.claim.finding
    assert finding is not None
    assert finding.origin is not None
    unordered = replace(finding, origin=replace(finding.origin, kind="unordered", missing="a barrier"))
    assert "    __syncthreads();\n```" in markdown(replace(about, claim=replace(about.claim, finding=unordered)))


def test_the_cuda_is_shown_where_nothing_is_to_be_set_against_it() -> None:
    generated = tuple(f"  f{n}();" for n in range(8))
    alone = replace(issue(), cuda=None, generated=generated)
    assert "**CUDA** of 0.1.13, without declarations:\n```cuda\n  f0();\n" in markdown(alone)
    assert "f0" not in markdown(replace(issue(), generated=generated))
    text = markdown(replace(alone, generated=generated * 9))
    assert len(text.splitlines()) == LONGEST
    assert "**CUDA** of 0.1.13: the kernel does nothing.\n" in markdown(replace(alone, generated=()))
    shown = text.count("();")
    assert f"  // {len(generated * 9) - shown} lines more" in text


def test_where_buffers_overlap_is_told_where_the_cuda_does_not_name_them() -> None:
    """Such releases have one buffer for all of shared memory."""
    about = issue()
    assert about.claim.finding is not None
    assert about.claim.finding.origin is not None
    origin = replace(about.claim.finding.origin, kind="overwritten", buffers=("Q", "K"))
    claim = replace(about.claim, finding=replace(about.claim.finding, origin=origin))
    snapshot = codec.loads(SUMS.read_text())
    function = snapshot.checkpoints[Checkpoint.DEVICE_TIR]
    pointers = [(Expr("var", "handle", (), name), place) for name, place in (("Q", 0), ("K", 4096))]
    placed = replace(function, places=tuple(pointers))
    wrong = replace(snapshot, checkpoints={**snapshot.checkpoints, Checkpoint.DEVICE_TIR: placed})
    found = overlap(claim, wrong, {"TL_X=False": snapshot, "0.1.14": wrong})
    assert found == SharedBytes({"Q": 0, "K": 4096}, "TL_X=False")
    assert overlap(claim, wrong, {"0.1.14": wrong, "TL_X=False": snapshot}) == SharedBytes({"Q": 0, "K": 4096}, "")
    assert overlap(claim, snapshot, {}) is None
    generated = (*["  f();"] * 60, "  *(uint4*)(((half_t*)buf_dyn_shmem) + PLACE) = x;", "  g();")
    text = markdown(replace(about, claim=claim, cuda=None, overlap=found, generated=generated))
    assert "**Shared memory**: `Q` from byte 0, `K` from byte 4,096. They lie apart with TL_X=False.\n" in text
    assert "**CUDA** of 0.1.13, the lines about `buf_dyn_shmem`, where `Q` lies:\n```cuda\n  *(uint4*)" in text
    assert len(text.splitlines()) <= LONGEST


def test_the_script_needs_neither_tlcheck_nor_the_jit() -> None:
    text = script().written("O", ELEMENT)
    imported = {a.name.split(".")[0] for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import) for a in n.names}
    assert imported == {"tilelang", "torch"}
    assert "tilelang.jit" not in text
    assert "tilelang.PassConfigKey.TL_DISABLE_WGMMA: True" in text
    assert 'print("O[3] is", O[3].item(), "and should be 21.0")' in text
    assert "A = (torch.arange(512, device='cuda') % 7 - 3).reshape(64, 8).to(torch.float16)" in text
    assert "O = torch.zeros(64, dtype=torch.float16, device='cuda')" in text
    bare = script().written("", None)
    assert "is_available" not in bare
    assert "import torch" not in bare
    assert 'target="hip"' in replace(script(), target="gfx942").written("O", ELEMENT)
    assert 'print(lowered.kernel_source.split("__global__")[-1])' in bare


def test_tlcheck_executes_what_the_script_calls() -> None:
    declared, written = script().declared(), script().written("O", ELEMENT)
    assert "A = (torch.arange(512, device=device) % 7 - 3).reshape(64, 8).to(torch.float16)" in declared
    assert "shown = Case(sums, inputs=inputs)" in declared
    assert declared.splitlines()[:10] == written.splitlines()[:10], "lines of the finding are those of the script"
    compile(declared, "declared.py", "exec")


@pytest.mark.parametrize(("decorator", "kernel"), [("@T.prim_func", "main"), ("@tilelang.jit", "main.get_tir()")])
def test_a_kernel_without_a_builder(decorator: str, kernel: str) -> None:
    text = f"{decorator}\ndef main(A: T.Tensor((4,), 'int8')):\n    pass\n"
    assert Reproduction.of(text, "main", "sm_80", {}).kernel == kernel


def test_cuda_differs_where_other_functions_are_called() -> None:
    wrong = "__global__ k() {\n  int x = 1;\n  tl::copy<16>(&(((half_t*)buf_dyn_shmem)[i_2]));\n  tl::wait<2>();\n}"
    right = wrong.replace("buf_dyn_shmem", "a").replace("i_2", "i_7").replace("<2>", "<1>")
    right = right.replace("  int x", "  void* a = ((void*)((char*)buf_dyn_shmem + 0));\n  int x")
    ((before, old, new),) = difference(wrong, right)
    assert (old.strip("- "), new.strip("+ ")) == ("tl::wait<2>();", "tl::wait<1>();")
    assert "copy" in before
    moved = difference("__global__ {\n  a(x + 1);\n}", "__global__ {\n  a(x + 2);\n}")
    assert moved == (("-  a(x + 1);", "+  a(x + 2);"),)
    assert difference("\n".join(f"a{n}();" for n in range(40)), "\n".join(f"b{n}();" for n in range(40))) == ()
    assert difference(wrong, wrong) == ()
    again, once = "__global__ {\n  O[add(n)] = 1;\n}", "__global__ {\n  int p = add(n);\n  O[p] = 1;\n}"
    assert difference(again, once) == (("-  O[add(n)] = 1;", "+  int p = add(n);", "+  O[p] = 1;"),)


def test_a_kernel_is_read_without_what_it_declares() -> None:
    cuda = "__global__ void k(int* a);\n__global__ void k(int* a) {\n  int x;\n  for (;;) {\n    f();\n  }\n}\n"
    assert readable(cuda) == ("  for (;;) {", "    f();", "  }")


def test_names_at_the_beginning_of_a_sentence_keep_their_spelling() -> None:
    assert (
        _sentence("atomic_addx2_elem_op (add of 2), wrong value") == "`atomic_addx2_elem_op` (add of 2), wrong value."
    )
    assert _sentence("c[0, 1] is read") == "`c[0, 1]` is read."
    assert _sentence("fence.proxy.async is missing") == "`fence.proxy.async` is missing."
    assert _sentence("a barrier is missing", ["a"]) == "A barrier is missing."
    assert _sentence("dQ is wrong", ["dQ"]) == "`dQ` is wrong."


def test_lines_become_statements() -> None:
    assert quoted("the write of a at line 2 (thread 0, TIR line 4) and at line 9", ["", "  f(a)"]) == (
        "the write of a in `f(a)` (thread 0) and at line 9"
    )


def test_the_authors_own_finding_is_no_issue(capsys: pytest.CaptureFixture[str]) -> None:
    own = replace(make_atomic("refuted"), kind="source")
    assert "the finding is in the kernel itself, not in TileLang" in _nothing([replace(make_result(), claims=(own,))])
    assert main(["report", "tests/fixtures/wrong/wait-0.1.9.snapshot.json"]) == 2
    assert "a saved snapshot has no source" in capsys.readouterr().err
    assert main(["report", "golden", "--base", "HEAD", "-o", "r.html"]) == 2
    assert capsys.readouterr().err == "tlcheck: error: `tlcheck report golden` is called `tlcheck golden page` now\n"
