"""The gate on scripts, with two real releases: the pinned one and 0.1.7, here as an upgrade to the older."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import installed
from tests.cpu.gate.test_gate import VALIDATOR
from tlcheck.cache.store import Cache
from tlcheck.cli import gate as command
from tlcheck.cli.main import main, parser_of
from tlcheck.gate import gate
from tlcheck.lower import session
from tlcheck.toolchain.releases import PINNED

pytestmark = [pytest.mark.toolchain, pytest.mark.xdist_group("0.1.7")]

OLD = "0.1.7"
KERNELS = '''
"""Kernels, which nothing in here compiles."""
import random
import sys

import tilelang
import tilelang.language as T
import torch

@tilelang.jit(out_idx=[1])
def add(n, dtype="float32", act=None):
    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                T.atomic_add(B[bx * 64 + i], A[bx * 64 + i])
    return main

@tilelang.jit
def tile(rows):
    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            staged = T.alloc_fragment((rows, 64), "float32")
            T.annotate_layout({B: T.Layout((rows, 64), lambda i, j: [j % 2, i * 32 + j // 2])})
            T.copy(A, staged)
            T.atomic_add(B, staged)
    return main
'''
SCRIPTS = {
    "tiles.py": "tile(int(sys.argv[1]))",
    "fails.py": f"add(64)\nif tilelang.__version__ == {OLD!r}:\n    raise TypeError('not there yet')\nadd(128)",
    "values.py": "x = add(64 * random.randint(1, 10**6), act=lambda x: x)(torch.empty(1).cuda())\nx.sum().item()",
    "test_add.py": "def test_one(): add(64, T.float32)\n\ndef test_two(): raise TypeError('no')",
}
NVCC = '#!/bin/sh\necho "release 13.0, V13.0.88"\necho "Used 40 registers" >&2\n'


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of scripts, and a cache of results."""
    for release in (OLD, PINNED):
        installed(release)
    monkeypatch.chdir(tmp_path)
    for module in (session, gate):
        monkeypatch.setattr(module, "open_cache", lambda wanted: Cache(tmp_path / "results" if wanted else None))
    Path("pyproject.toml").write_text("[tool.tlcheck]\n")
    Path("scripts").mkdir()
    Path("scripts", "kernels.py").write_text(KERNELS)
    for name, text in SCRIPTS.items():
        Path("scripts", name).write_text(f"from kernels import *  # of tilelang\n{textwrap.dedent(text)}\n")


def run(*argv: str, before: str = PINNED, after: str = OLD) -> tuple[int, Any]:
    """The exit code and the report in JSON; the others are in `out` too."""
    command = ["gate", "--from", before, "--to", after, "--format", "json,sarif,text", "-o", "out"]
    code = main([*command, *argv])
    report = json.loads(Path("out", "gate.json").read_text())
    VALIDATOR.validate(report)
    return code, report


def classes(report: Any) -> dict[str, str]:
    return {c["case"].removeprefix("scripts/"): c["class"] for c in report["comparisons"]}


def refuse(*args: object) -> None:
    raise AssertionError("started")


@pytest.mark.slow
def test_a_folder_of_scripts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel is broken that a script fails at now, wrong if it is refuted now, and a second run starts no worker."""
    code, report = run("scripts", "--", "64")
    assert (code, list(classes(report).values())) == (1, ["same", "broken", "wrong", "same"])
    assert list(classes(report))[:3] == ["fails.py::add[n=64]", "fails.py::add[n=128]", "tiles.py::tile[rows=64]"]
    _, broken, wrong, drawn = (c["outcomes"] for c in report["comparisons"])
    assert drawn == []  # the size that it draws is the same
    assert broken[0]["words"] == (
        "fails now, run: the script does not come to it: TypeError: not there yet (scripts/fails.py:4)"
    )
    refuted = next(outcome for outcome in wrong if outcome["class"] == "wrong")
    assert (refuted["subject"], refuted["rule"]) == ("B", "TLA001")
    assert all(c["captured"] and c["before"]["seconds"] > 0 for c in report["comparisons"])
    notes = report["notes"]
    assert notes[0] == "2 files without a case for these targets passed over"
    (ended,) = [note for note in notes if "values.py" in note]
    assert ended.startswith(
        "scripts/values.py (sm_90): 1 kernel captured until it ended at scripts/values.py:3: NoValuesError:"
        " `item` of a tensor whose values do not exist without a launch: its kernel is not executed: "
    )
    assert f"with {OLD}, scripts/fails.py (sm_90): 1 kernel captured until it ended" in "\n".join(notes)
    sarif = json.loads(Path("out/gate.sarif").read_text())
    places = [result["locations"][0]["physicalLocation"] for result in sarif["runs"][0]["results"]]
    lines = KERNELS.splitlines()
    found = {(p["artifactLocation"]["uri"], lines[p["region"]["startLine"] - 1].strip()) for p in places}
    assert ("scripts/kernels.py", "T.atomic_add(B, staged)") in found  # where it stands, whichever script compiles it
    shown = capsys.readouterr().out
    assert all(f"note: {note}" in shown for note in notes)

    monkeypatch.setattr("tlcheck.lower.session.Worker.start", refuse)
    assert run("scripts", "--", "64") == (1, report)
    for others in (["scripts", "--", "32"], ["scripts", "--max-configs", "2", "--", "64"]):
        with pytest.raises(AssertionError, match="started"):
            run(*others)


@pytest.mark.slow
def test_a_release_against_itself_and_nvcc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Scripts run twice and have the same kernels; a kernel's CUDA is compiled as a case's is."""
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(NVCC)
    nvcc.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(nvcc.parents[1]))
    files = ("scripts/values.py", "scripts/test_add.py")
    code, report = run(*files, "--compile", "--", "-k", "one or two", after=PINNED)
    assert (code, report["groups"], report["summary"]["same"]) == (0, [], 2)
    assert [c["after"]["nvcc"]["registers"] for c in report["comparisons"]] == [40, 40]
    assert [note for note in report["notes"] if "test_add.py" in note] == [
        "scripts/test_add.py (sm_90): 1 kernel captured; at scripts/test_add.py:4 test_two failed: TypeError: no"
    ]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ["gate", "--from", OLD, "--to", PINNED, "--run"],
            "a script has no reference to compare with",
        ),
        (["golden", "check"], "or give the case files that `tlcheck capture scripts/kernels.py -o DIR` writes"),
    ],
)
def test_what_a_script_is_no_use_for(command: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "scripts/kernels.py"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_the_sides_of_a_gate_share_a_scripts_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It takes no longer than the check of a test file."""
    monkeypatch.chdir(tmp_path)
    Path("add.py").write_text("import tilelang\n")
    plan = command._plan(parser_of("gate").command_line(["--from", "0.1.9", "--to", "0.1.15", "add.py"]))
    assert plan.settings.scripts is not None
    assert plan.settings.scripts.sides == 2


def test_bisecting_a_script_says_for_which_arch(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bisect", "scripts/tiles.py", "--from", PINNED, "--to", PINNED, "--quick"]
    said = "a script is looked at for one arch, here sm_90; for another: --arch sm_80"
    main([*command, "--", "64"])
    assert said in capsys.readouterr().out.splitlines()
    main([*command, "--arch", "sm_90", "--", "64"])
    assert "a script is looked at" not in capsys.readouterr().out
