"""Deliberately wrong kernels: each fault is caught and has its own name, and the right kernel passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gpu.conftest import Runner, tlcheck_run

FAULTS = "tests/gpu/kernels/faults.py"
# Case -> kinds of findings by the inputs that show them; the usual inputs have no name.
EXPECTED: dict[str, dict[str, set[str]]] = {
    "right": {},
    "one_lane_off": {"inputs": {"wrong"}},
    "unwritten_tile": {"inputs": {"unwritten"}},
    "out_of_bounds": {"inputs": {"stray-write"}},
    "race": {"inputs": {"wrong", "nondeterministic"}},
    "shared_race": {"inputs": {"wrong", "nondeterministic"}},
    "not_a_number": {"inputs": {"nan"}},
    "one_size": {"size 1000": {"unwritten"}},
    "large_values": {"large": {"wrong"}},
    "unaligned_vector": {"": {"fault"}},
    "illegal_address": {"": {"fault"}},
    "hang": {"": {"timeout"}},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of all cases, by name: one that faults or hangs does not keep the others from running."""
    output = tmp_path_factory.mktemp("faults") / "report.json"
    code, report = tlcheck_run(output, FAULTS, "--seeds", "1", "--limit", "8")
    assert code == 1
    return {run["case"].partition("::")[2]: run for run in report["examinations"][0]["runs"]}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_fault_has_its_name(runs: dict[str, Any], name: str) -> None:
    found: dict[str, set[str]] = {}
    for finding in runs[name]["findings"]:
        found.setdefault(finding["inputs"].partition(" of seed")[0], set()).add(finding["kind"])
    assert found == EXPECTED[name]
    assert runs[name]["status"] == ("failed" if EXPECTED[name] else "passed")


def test_faults_of_the_device_are_told_apart(runs: dict[str, Any]) -> None:
    message = {name: runs[name]["findings"][0]["message"] for name in ("unaligned_vector", "illegal_address")}
    assert message["unaligned_vector"].startswith("misaligned address")
    assert message["illegal_address"].startswith("illegal memory access")
    assert [claim["finding"]["rule"] for claim in runs["unaligned_vector"]["refuted"]] == ["TLA002"]


def test_findings_say_where(runs: dict[str, Any]) -> None:
    elements = runs["one_lane_off"]["findings"][0]["elements"]
    assert {element["index"][0] % 64 for element in elements} == {5}
    assert runs["out_of_bounds"]["findings"][0]["message"].startswith("128 bytes outside of C are written")
    assert runs["unwritten_tile"]["findings"][0]["message"].endswith("the first at [3584]")


@pytest.mark.parametrize(
    ("case", "tool", "message"),
    [
        ("out_of_bounds", "memcheck", "Invalid __global__ write of size 4 bytes"),
        ("shared_race", "racecheck", "Race reported between Write access"),
        ("right", "memcheck", ""),
    ],
)
def test_the_sanitizer_names_the_kernel(run: Runner, tmp_path: Path, case: str, tool: str, message: str) -> None:
    _, report = run(f"{FAULTS}::{case}", "--seeds", "1", "--sanitize", tool)
    ((found,),) = [r["sanitized"] for r in report["examinations"][0]["runs"]]
    assert found["tool"] == tool
    assert bool(found["errors"]) == bool(message)
    assert all(message in text and kernel == "main_kernel" for text, kernel in found["messages"])
