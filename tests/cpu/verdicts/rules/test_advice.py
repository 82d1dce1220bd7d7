"""The advice of a rule's page mends its bad example: the kernel breaks the rule, and with the advice it breaks none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import installed
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

pytestmark = pytest.mark.toolchain
FIXTURES = Path(__file__).parents[3] / "fixtures"
KERNELS = {  # file -> release, arch
    "advice": (PINNED, "sm_90"),
    "old_advice": ("0.1.9", "sm_90"),
    "pipeline_advice": ("0.1.9", "sm_80"),
    "library_advice": ("0.1.7.post3", "sm_90"),
    "older_advice": ("0.1.7", "sm_90"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xdist_group(release)) for name, (release, _) in KERNELS.items()]
)
def test_advice_mends_what_breaks_the_rule(name: str, tmp_path: Path) -> None:
    """As cases of one file, which is imported once for each processor, not for each kernel."""
    file, report = FIXTURES / f"{name}.py", tmp_path / "report.json"
    kernels = re.findall(r"^def ([a-z]\w+)\(", file.read_text(), re.MULTILINE)
    release, arch = KERNELS[name]
    installed(release)
    cases = "".join(f"{kernel} = Case({kernel})\n" for kernel in kernels)
    (tmp_path / file.name).write_text(f"{file.read_text()}\n\nfrom tlcheck import Case\n\n{cases}")
    options = ["--toolchain", release, "--arch", arch, "--format", "json", "-o", str(report), "-q"]
    assert main(["check", str(tmp_path / file.name), *options]) == 1
    found = {run["name"]: run["claims"] for run in json.loads(report.read_text())["runs"]}
    named = {kernel: re.findall(r"TL\w\d{3}", kernel.upper()) if kernel.endswith("_bad") else [] for kernel in kernels}
    assert {kernel: broken_rules(claims) for kernel, claims in found.items()} == {k: {*named[k][:1]} for k in kernels}
    for kernel, rules in named.items():
        assert broken_rules([other for claim in found[kernel] for other in claim["also"]]) >= {*rules[1:]}


def broken_rules(claims: Sequence[Mapping[str, Any]]) -> set[str]:
    """The rules that claims break, and the codes of what is not decided. What they explain is in `also` of each."""
    return {c["finding"]["rule"] if c["verdict"] == "refuted" else c["code"] for c in claims} - {""}
