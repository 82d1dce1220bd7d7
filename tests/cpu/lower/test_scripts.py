"""Notes tell what of scripts and test files did not run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import make_run
from tlcheck.lower.runs import near
from tlcheck.lower.scripts import Captured, CapturedKernel, End, Script, Scripts, left_out_tests
from tlcheck.worker.protocol import Failure


def end(release: str = "0.1.15", **tests: int) -> End:
    return End(make_run(release), 1, None, (), tests)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ([end()], ""),
        ([end(all=10)], ""),
        ([end(all=10, skipped=3, failed=2)], ""),
        ([end(all=10, skipped=3, failed=3)], "of 10, 3 skipped, 3 failed;"),
        ([end(all=10, skipped=9), end(all=90)], ""),
        ([end(all=90, skipped=80), end(all=1, failed=1)], "of 91, 80 skipped, 1 failed;"),
        ([end("0.1.14", all=10, failed=8), end(all=10, failed=8)], "with TileLang 0.1.15 (sm_90): of 10, 8 failed;"),
        ([end("0.1.14", all=10), end(all=10, failed=8)], "with TileLang 0.1.15 (sm_90): of 10, 8 failed;"),
    ],
)
def test_most_tests_have_to_be_left_out(ends: list[End], words: str) -> None:
    said = list(left_out_tests(ends))
    assert len(said) == bool(words)
    assert words in "".join(said)


def test_a_script_that_ended_early_shows_its_traceback_and_its_last_lines() -> None:
    failure = Failure("exception", "run", "ValueError", trace="Traceback (most recent call last):\nValueError")
    printed = "".join(f"line {number}\n" for number in range(200))
    head, error, title, first, *_, last = replace(end(), ended=failure, printed=printed).trouble.splitlines()
    assert (head, error) == ("Traceback (most recent call last):", "ValueError")
    assert title == "last lines that k.py (sm_90, TileLang 0.1.15) printed:"
    assert (first, last) == ("line 100", "line 199")
    assert replace(end(), ended=failure).trouble == failure.trace
    assert replace(end(), printed=printed).trouble == ""


def test_a_remark_on_an_early_end_says_how_to_mend_it() -> None:
    script = Script(make_run(), found=False, how=Scripts())
    ended = Failure("exception", "run", "einops is not installed", "a line\nname it", advice="name it")
    (remark,) = script.remarks(Captured((CapturedKernel("sizes", {}),), ended=ended))
    assert remark.endswith("einops is not installed; name it")
    (remark,) = script.remarks(Captured((CapturedKernel("sizes", {}),), ended=replace(ended, advice="")))
    assert remark.endswith("einops is not installed")


def test_what_a_script_makes_is_captured_also_without_arguments() -> None:
    script = Script(make_run(), found=False, how=Scripts())
    ended = Failure("exception", "run", "ValueError")
    (kernel,) = script.results(Captured((CapturedKernel("sizes", {}),)), kept=False)
    (failed,) = script.results(Captured(ended=ended), kept=False)
    assert (kernel.run.name, kernel.run.is_captured) == ("sizes", True)
    assert not failed.run.is_captured


def test_a_kernel_is_wanted_by_the_name_that_reports_give_it() -> None:
    made = Captured(tuple(CapturedKernel(f"add[n={n}]", {}) for n in (64, 128)))
    script = Script(make_run(), found=False, how=Scripts(), name="add[n=128]")
    (kernel,) = script.results(made, kept=False)
    assert (kernel.run.name, kernel.failure) == ("add[n=128]", None)
    (missing,) = replace(script, name="add[n=12]").results(made, kept=False)
    assert missing.failure is not None
    what = "run as a script it compiles no add[n=12], but add[n=128] and 1 kernel more"
    assert (missing.failure.kind, missing.failure.message) == ("usage", what)


def test_a_path_is_told_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert near(f"{tmp_path}/kernels/gemm.py") == "kernels/gemm.py"
    assert [near(path) for path in ("./gemm.py", "../gemm.py", "")] == ["./gemm.py", "../gemm.py", ""]
