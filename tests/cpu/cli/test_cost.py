"""`tlcheck cost` on saved snapshots: text, JSON by its schema, a page, and exit codes."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import published
from tests.cpu.cost.kernels import snapshot
from tlcheck.cli.main import main
from tlcheck.execute.request import LOWERED
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Alloc, Expr, Snapshot, Stmt
from tlcheck.snapshot.walk import rebuild
from tlcheck.toolchain.resolve import Toolchain


def saved(folder: Path, found: Snapshot) -> str:
    file = folder / "kernel.snapshot.json"
    file.write_text(codec.dumps(found), encoding="utf-8")
    return str(file)


def larger(found: Snapshot, elements: int) -> Snapshot:
    """With a larger allocation of shared memory, which holds float32."""

    def grown(was: Stmt, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Alloc) and stmt.buffer.scope == "shared.dyn":
            return replace(stmt, buffer=replace(stmt.buffer, shape=(Expr("int", "int32", value=elements),)))
        return stmt

    lowered = found.checkpoints[LOWERED]
    said = [(key, value) for key, value in lowered.attrs if key != "dyn_shared_memory_buf"]
    grown_function = replace(lowered, body=rebuild(lowered.body, grown), attrs=tuple(said))
    return replace(found, checkpoints={**found.checkpoints, LOWERED: grown_function})


def test_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", saved(tmp_path, snapshot("spread_conflicting", "sm_80"))]) == 0
    assert "`s` is read with 8-way bank conflicts" in capsys.readouterr().out


def test_json_has_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = saved(tmp_path, snapshot("apart", "sm_80"))
    assert main(["cost", file, "--blocks", "2", "--format", "json"]) == 0
    (run,) = published(capsys.readouterr().out, "cost")["runs"]
    assert (run["cost"]["of"], run["cost"]["like"]) == (32, 32)


NVCC = """#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 13.0, V13.0.88"; exit; fi
echo "    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 1024 bytes smem" >&2
"""
NVDISASM = """#!/bin/sh
echo "        /*0000*/               @!P0 LDS.128 R1, [R2] ;
        /*0010*/                   HMMA.16816.F32 R4, R8, R10, R4 ;
        /*0020*/               @UP1 LDS R1, [R2] ;
        /*0030*/                   NOP;"
"""


def test_what_nvcc_makes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("nvcc", NVCC), ("nvdisasm", NVDISASM)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(
        "tlcheck.cli.cost.resolve", lambda name, _: Toolchain(name, "interpreter", Path(sys.executable))
    )
    file = saved(tmp_path, replace(snapshot("apart", "sm_80"), cuda="code"))
    assert main(["cost", file, "--compile", "--no-cache", "--format", "json"]) == 0
    (run,) = published(capsys.readouterr().out, "cost")["runs"]
    compiled = run["compiled"]
    assert (compiled["registers"], compiled["spills"], compiled["stack"]) == (168, 40, 8)
    assert compiled["instructions"] == {"tensor cores": 1, "shared loads": 2}
    # 168 registers of 128 threads: 3 blocks of the 65,536 that a multiprocessor has, where nothing else allows fewer
    assert (compiled["resident"], compiled["limiter"]) == (3, "registers")
    assert main(["cost", file, "--compile", "--no-cache"]) == 0
    said = capsys.readouterr().out
    assert "168 registers of a thread, 40 bytes of spills" in said
    assert "instructions in its text: 1 tensor cores, 2 shared loads" in said


def test_hip_is_not_given_to_nvcc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "nvcc").write_text(NVCC)
    (tools / "nvcc").chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(
        "tlcheck.cli.cost.resolve", lambda name, _: Toolchain(name, "interpreter", Path(sys.executable))
    )
    file = saved(tmp_path, replace(snapshot("spread_conflicting", "gfx942"), cuda="code"))
    assert main(["cost", file, "--compile", "--no-cache"]) == 0
    captured = capsys.readouterr()
    assert "nvcc" not in captured.out
    assert captured.err == (
        "tlcheck: --compile: gfx942 is left out: nvcc compiles CUDA, not HIP; its registers and spills are not known\n"
    )


def test_a_page_goes_to_a_file(tmp_path: Path) -> None:
    page = tmp_path / "cost.html"
    assert main(["cost", saved(tmp_path, snapshot("apart", "sm_80")), "--format", "html", "-o", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_too_much_shared_memory_is_refuted_without_a_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = replace(larger(snapshot("spread_padded", "sm_80"), 168_128 // 4), target="sm_120")
    assert main(["cost", saved(tmp_path, asked)]) == 1
    assert "168,128 bytes of shared memory, and sm_120 has 101,376" in capsys.readouterr().out


def test_what_cannot_be_counted_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = snapshot("apart", "sm_80")
    source = {"source": bare.checkpoints["source"]}
    assert main(["cost", saved(tmp_path, replace(bare, checkpoints=source))]) == 3
    assert "not counted" in capsys.readouterr().err
