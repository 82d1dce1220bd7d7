"""Test what a report comes to in the census of AMD, and which scripts are changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import amd

FILE = Path("examples/norm/rms_norm/rms_norm-f[n=1-2]-gfx942-0.1.15.snapshot.json")


def row(*claims: tuple[str, str]) -> amd.Row:
    """The row of a kernel with claims: verdict, and the rule or the code of its reason."""
    told: list[dict[str, Any]] = [{"verdict": v, "code": word, "finding": {"rule": word}} for v, word in claims]
    case = {"claims": told, "target": "gfx942", "case": "scripts/examples/norm/rms_norm.py::f[n=1-2]"}
    return amd.row_of(FILE, [case] if told else [], "3")


def test_a_row_says_whether_a_kernel_came_to_its_end() -> None:
    script = "examples/norm/rms_norm.py"
    assert row(("agreed", "")) == amd.Row("gfx942", script, "f[n=1-2]", "agreed", "yes", "", "", "3")
    assert row(("agreed", ""), ("undecided", "U005"))[3:7] == ("undecided", "no", "", "U005")
    assert row(("agreed", ""), ("undecided", "U038"))[3:7] == ("undecided", "yes", "", "U038")
    # an access that stops a kernel ends it
    assert row(("refuted", "TLL001"), ("undecided", "U017"))[3:7] == ("refuted", "yes", "TLL001", "U017")
    assert row()[0::3] == ("gfx942", "not judged", "")
    assert row()[4] == "no"


def test_shares_of_each_arch() -> None:
    rows = [row(("agreed", "")), row(("agreed", "")), row(("undecided", "U001")), row(("refuted", "TLS009"))]
    assert [*amd.summary(rows)] == ["gfx942: 3 of 4 executed to the end (75.0%): 2 agreed, 1 refuted, 1 undecided"]


def test_only_spellings_that_the_release_refuses_are_replaced() -> None:
    plain = "import tilelang.language as T\nT.gemm(a, b, c)\n"
    assert amd.adapted(plain) == plain
    assert amd.adapted(plain + "k_pack = 2").startswith("import tilelang.rocm.language as T\n")
    assert amd.adapted('target="hip -mcpu=gfx950"') == 'target={"kind": "hip", "mcpu": "gfx950"}'


def test_a_table_of_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the snapshots, which may lie elsewhere; a kernel that was cut off has no report."""
    folder = tmp_path / amd.SAVED / "examples" / "norm" / "rms_norm"
    folder.mkdir(parents=True)
    run = {"target": "gfx950", "case": "rms_norm.py::f", "claims": [{"verdict": "agreed", "code": "", "finding": None}]}
    for name in ("f-gfx950-0.1.15.snapshot", "g-gfx950-0.1.15.snapshot"):
        (folder / f"{name}.seconds").write_text("7")
    (folder / "f-gfx950-0.1.15.snapshot.report").write_text(json.dumps({"runs": [run]}))
    amd.main(["table", str(tmp_path), "-o", str(tmp_path / "census.csv")])
    rows = (tmp_path / "census.csv").read_text().splitlines()[1:]
    assert rows[0] == "gfx950,examples/norm/rms_norm.py,f,agreed,yes,,,7"
    assert rows[1] == "gfx950,examples/norm/rms_norm.py,g-gfx950-0.1.15.snapshot.report,not judged,no,,,7"
    assert capsys.readouterr().out == "gfx950: 1 of 2 executed to the end (50.0%): 1 agreed, 1 not judged\n"
