"""`tlcheck cost` on saved snapshots: text, JSON by its schema, a page, and exit codes."""

from __future__ import annotations

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
    body = rebuild(lowered.body, grown)
    return replace(found, checkpoints={**found.checkpoints, LOWERED: replace(lowered, body=body)})


def test_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", saved(tmp_path, snapshot("spread_conflicting", "sm_80"))]) == 0
    assert "`s` is read with 8-way bank conflicts" in capsys.readouterr().out


def test_json_has_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = saved(tmp_path, snapshot("apart", "sm_80"))
    assert main(["cost", file, "--blocks", "2", "--format", "json"]) == 0
    (run,) = published(capsys.readouterr().out, "cost")["runs"]
    assert (run["cost"]["of"], run["cost"]["like"]) == (32, 32)


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
    assert main(["cost", saved(tmp_path, replace(bare, target="gfx942"))]) == 3
    assert "not counted" in capsys.readouterr().err
