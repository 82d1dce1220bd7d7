"""The advice of a rule's page mends its bad example: the kernel breaks the rule, and with the advice it breaks none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

pytestmark = pytest.mark.slow
FIXTURES = Path(__file__).parents[3] / "fixtures"
RELEASES = {"advice": PINNED, "old_advice": "0.1.9"}


@pytest.mark.parametrize("name", RELEASES)
def test_advice_mends_what_breaks_the_rule(name: str, tmp_path: Path) -> None:
    file, report = FIXTURES / f"{name}.py", tmp_path / "report.json"
    kernels = re.findall(r"^def (\w+)\(", file.read_text(), re.MULTILINE)
    installed(RELEASES[name])
    options = ["--toolchain", RELEASES[name], "--arch", "sm_90", "--format", "json", "-o", str(report), "-q"]
    assert main(["check", *(f"{file}::{kernel}" for kernel in kernels), *options]) == 1
    broken = {run["name"]: broken_rules(run) for run in json.loads(report.read_text())["runs"]}
    assert broken == {kernel: {kernel[:6].upper()} if kernel.endswith("_bad") else set() for kernel in kernels}


def broken_rules(run: Mapping[str, object]) -> set[str]:
    """The rules that a kernel breaks, and the codes of what is not decided of it."""
    claims = run["claims"]
    assert isinstance(claims, list)
    assert claims
    return {c["finding"]["rule"] if c["verdict"] == "refuted" else c["code"] for c in claims} - {""}
