"""Test what `tlcheck cost` prints of a kernel."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from tests.cpu.checking import make_run
from tests.cpu.cost.kernels import cost, line_of
from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.gate.compiled_cost import Costed
from tlcheck.report import cost_json, cost_text
from tlcheck.report.console import console

RUN = replace(make_run("0.1.15"), target="sm_80")


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the table do not wrap, wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "120")


def printed(found: KernelCost, *, everything: bool = False) -> str:
    file = io.StringIO()
    cost_text.write(console(file), Costed(RUN, "random", found), everything=everything)
    return file.getvalue()


def test_the_worst_comes_first_and_each_advice_once() -> None:
    lines = printed(cost("product_linear")).splitlines()
    head = next(number for number, line in enumerate(lines) if "TIR" in line)
    assert lines[head + 2].startswith(f"│{line_of('T.gemm(a, b, c)')} ")
    assert lines[head + 2].endswith("bank conflicts")
    advice = [line for line in lines if "8-way bank conflicts" in line]
    assert len(advice) == len(set(advice)) == 2
    assert "32 wavefronts (ideal: 4)" in lines[head + 2]


@pytest.mark.parametrize(
    ("limiter", "words"),
    [("shared memory", "limited by shared memory"), ("blocks", "the device's maximum")],
)
def test_the_limit_of_blocks_has_a_name(limiter: str, words: str) -> None:
    assert f"on a multiprocessor, {words}\n" in printed(replace(cost("product_linear"), limiter=limiter))


def test_sites_that_are_left_out_are_counted() -> None:
    found = cost("product_linear")
    assert f"{len(found.sites) - 20} sites more: --all" in printed(found)
    assert "--all" not in printed(found, everything=True)


def test_a_kernel_that_cannot_be_launched_is_told_first() -> None:
    found = replace(cost("product"), resident=0, shared_bytes=168_128)
    text = printed(found).splitlines()[1]
    assert "168,128 bytes of shared memory, and sm_80 has 166,912" in text


def test_blocks_that_stand_for_others_are_told() -> None:
    text = printed(replace(cost("apart"), blocks=3, of=32, like=30))
    assert "3 of 32 blocks counted, for 30 with the same guards and loop bounds; 2 more by the nearest ones" in text


def test_the_report_for_programs_has_all_of_it() -> None:
    report = json.loads(cost_json.render_json([Costed(RUN, "random", cost("apart"))], ["x: no"], 3))
    (run,) = report["runs"]
    assert (run["case"], run["target"], run["inputs"]) == (RUN.case, "sm_80", "random")
    assert (report["failures"], report["exit_code"]) == (["x: no"], 3)
    assert len(run["cost"]["sites"]) == len(cost("apart").sites)
    assert run["cost"]["sites"][0]["limit"] == "sectors"
