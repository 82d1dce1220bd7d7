"""The examples of docs/cases.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cpu.checking import installed, published
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

PAGE = (Path(__file__).parents[3] / "docs" / "cases.md").read_text(encoding="utf-8")


@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
def test_the_case_of_the_page_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(PINNED)
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    (tmp_path / "scale.py").write_text(example[1])
    monkeypatch.chdir(tmp_path)
    assert main(["check", "scale.py", "--format", "json"]) == 0
    (run,) = published(capsys.readouterr().out, "check")["runs"]
    assert (run["case"], run["target"]) == ("scale.py::small", "sm_90")
    assert {claim["verdict"] for claim in run["claims"]} == {"agreed"}
