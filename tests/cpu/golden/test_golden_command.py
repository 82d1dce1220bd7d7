"""`tlcheck golden` and `tlcheck diff` from the command line to the exit code, on saved snapshots."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.cpu.golden.goldens import renamed, saved, snapshot
from tlcheck.cli.main import main
from tlcheck.golden.entry import Key
from tlcheck.golden.states import GoldenScope, orphans
from tlcheck.golden.store import GoldenStore
from tlcheck.snapshot import codec

GEMM = "cases/atomics.py::annotated_gemm"
ACCEPT = f'[[accept]]\nid = "TLA001"\ncase = "{GEMM}"\nreleases = "<=0.1.7"\nreason = "known"\n'


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    Path("pyproject.toml").write_text("[tool.tlcheck]\n")


def approve(*names: str, release: str = "0.1.15") -> None:
    assert main(["golden", "update", *(str(saved(name, release)) for name in names)]) == 0
    assert main(["golden", "accept", "--reason", "looked at"]) == 0


def check(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, str]:
    capsys.readouterr()
    code = main([*map(str, argv)])
    return code, capsys.readouterr().out


def git(*argv: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *argv], check=True, capture_output=True)


def test_nothing_is_as_approved_before_anything_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = check(capsys, "golden", "check", saved("cast_bf16"))
    assert code == 1
    assert "cast_bf16 sm_90: missing: nothing is approved yet" in out
    assert main(["golden", "update", str(saved("cast_bf16"))]) == 0
    code, out = check(capsys, "golden", "check", saved("cast_bf16"))
    assert code == 1
    assert "cast_bf16 sm_90: waiting: it is recorded, and nobody has accepted it yet" in out
    assert "decide on those that wait: `tlcheck golden review`" in out
    assert main(["golden", "reject", "--reason", "too large"]) == 0
    code, out = check(capsys, "golden", "check", saved("cast_bf16"))
    assert code == 1
    assert re.search(r"cast_bf16 sm_90: rejected: by .+ on \d{4}-\d\d-\d\d: too large\n", out)
    assert "golden update" not in out


def test_what_was_approved_is_clean_and_updating_it_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    approve("cast_bf16", "loop_pipelined")
    code, out = check(capsys, "golden", "check", saved("cast_bf16"), saved("loop_pipelined"))
    assert (code, out) == (0, "2 goldens: 2 as approved\n")
    code, out = check(capsys, "golden", "update", saved("cast_bf16"))
    assert (code, out) == (0, "0 changes to review, 1 as approved\n")


def test_a_difference_comes_in_words_and_then_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    approve("loop_pipelined", release="0.1.8")
    code, out = check(capsys, "golden", "check", saved("loop_pipelined"))
    assert code == 1
    head, first, *rest = out.splitlines()
    assert head.endswith("loop_pipelined sm_90  differs")
    assert " -> " in first
    assert any("T.launch_thread" in line for line in rest)
    code, out = check(capsys, "golden", "check", saved("loop_pipelined"), "--stat")
    assert code == 1
    assert out.splitlines()[:2] == [head, first]
    assert not any(line.startswith("    at ") for line in out.splitlines())
    out = check(capsys, "golden", "check", saved("loop_pipelined"), "--stat", "--format", "markdown")[1]
    assert first.strip() in out.replace("`", "")
    assert "```" not in out


def test_another_release_with_the_same_ir_is_said_and_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    approve("loop_pipelined", release="0.1.14")
    code, out = check(capsys, "golden", "check", saved("loop_pipelined"))
    assert code == 0
    assert "the same IR" in out
    assert "tilelang: 0.1.14 -> 0.1.15" in out
    assert "1 change to review" in check(capsys, "golden", "update", saved("loop_pipelined"))[1]


def test_other_names_are_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    approve("cast_bf16")
    Path("new.snapshot.json").write_text(codec.dumps(renamed(snapshot("cast_bf16"))))
    code, out = check(capsys, "golden", "check", "new.snapshot.json")
    assert code == 1
    assert "differs in names only" in out


def test_equal_changes_are_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("cast_bf16", "loop_pipelined", "tile_small")
    approve(*names, release="0.1.14")
    out = check(capsys, "golden", "check", *(saved(name) for name in names))[1]
    assert out.count("0.1.14 -> 0.1.15") == 1


def test_markdown_escapes_what_kernels_are_called(capsys: pytest.CaptureFixture[str]) -> None:
    approve("cast_bf16")
    text = codec.dumps(snapshot("cast_bf16")).replace('"handle","A"', '"handle","<img src=x>"')
    Path("new.snapshot.json").write_text(text)
    out = check(capsys, "golden", "check", "new.snapshot.json", "--format", "markdown")[1]
    assert "```diff" in out
    outside = "".join(out.split("```")[::2])
    assert "`<img src=x>: " in outside
    assert "<img" not in re.sub(r"(`+)[^`\n]+\1", "", outside)  # code is shown as it is


def test_what_is_refuted_cannot_be_accepted_without_a_reason_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["golden", "update", str(saved("annotated_gemm", "0.1.7"))]) == 0
    assert main(["golden", "accept", "--reason", "no"]) == 1
    assert "accept TLA001 by name" in capsys.readouterr().err
    assert GoldenStore(Path("golden")).read().goldens == {}
    Path("tlcheck-accept.toml").write_text(ACCEPT)
    assert main(["golden", "accept", "--reason", "yes"]) == 0
    (made,) = GoldenStore(Path("golden")).read().approvals.approved.values()
    assert made.findings == ("TLA001 at B (known)",)


def test_accepting_one_leaves_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    main(["golden", "update", str(saved("cast_bf16")), str(saved("loop_pipelined"))])
    assert main(["golden", "accept", "cases/atomics.py::cast_bf16", "--reason", "this one"]) == 0
    assert [pending.key.name for pending in GoldenStore(Path("golden")).pending()] == ["loop_pipelined"]
    assert main(["golden", "reject", "cases/atomics.py::cast_bf16"]) == 2
    assert "nothing of cases/atomics.py::cast_bf16 waits" in capsys.readouterr().err
    assert main(["golden", "reject", "cases"]) == 0
    assert main(["golden", "reject"]) == 2


def test_new_only_leaves_what_has_a_golden(capsys: pytest.CaptureFixture[str]) -> None:
    approve("loop_pipelined", release="0.1.8")
    out = check(capsys, "golden", "update", "--new-only", saved("loop_pipelined"), saved("cast_bf16"))[1]
    assert out.splitlines()[0] == "new  cases/atomics.py::cast_bf16 sm_90"
    assert len(GoldenStore(Path("golden")).pending()) == 1


def test_a_golden_without_a_case_is_told_unless_its_file_does_not_import() -> None:
    approve("cast_bf16", "loop_pipelined")
    contents, scope = GoldenStore(Path("golden")).read(), GoldenScope(("cases",))
    one = Key("cases/atomics.py", "cast_bf16", "sm_90")
    assert [state.key.name for state in orphans(contents, [one], scope)] == ["loop_pipelined"]
    for name in ("", "cast_bf16"):  # as it was named on the command line
        assert list(orphans(contents, [Key("cases/atomics.py", name, "")], scope)) == []


def test_the_bytes_do_not_depend_on_the_order(tmp_path: Path) -> None:
    names = ["cast_bf16", "loop_pipelined", "tail_tile_odd"]
    for folder, order in (("a", names), ("b", names[::-1])):
        Path("pyproject.toml").write_text(f'[tool.tlcheck]\ngolden = "{folder}"\n')
        approve(*order)
    first, second = ({p.relative_to(f): p.read_bytes() for p in f.rglob("*.*") if p.is_file()} for f in map(Path, "ab"))
    for both in (first, second):
        del both[Path("approvals.toml")]
    assert first == second


def test_what_is_named_is_decided_in_its_own_project(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From wherever that is done, and without a name in the working folder's, subfolders included."""
    assert main(["golden", "update", str(saved("cast_bf16")), str(saved("loop_pipelined"))]) == 0
    inside, outside = tmp_path / "cases", tmp_path_factory.mktemp("elsewhere")
    inside.mkdir()
    (outside / "pyproject.toml").write_text("[tool.tlcheck]\n")
    monkeypatch.chdir(outside)
    named = f"{tmp_path / 'cases' / 'atomics.py'}::cast_bf16"
    assert main(["golden", "accept", named, "--reason", "seen"]) == 0
    assert capsys.readouterr().out.endswith("accepted cases/atomics.py::cast_bf16 sm_90\n")
    assert main(["golden", "accept", named, "mine.py", "--reason", "seen"]) == 2
    assert "are of two projects" in capsys.readouterr().err
    monkeypatch.chdir(inside)
    assert main(["golden", "reject", "--reason", "no"]) == 0
    assert capsys.readouterr().out == "rejected cases/atomics.py::loop_pipelined sm_90\n"


def test_configured_checkpoints(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text('[tool.tlcheck]\ngolden_checkpoints = ["intent", "device-tir"]\n')
    approve("cast_bf16")
    (golden,) = GoldenStore(Path("golden")).read().goldens.values()
    assert sorted(golden.texts()) == ["device-tir", "intent"]
    Path("pyproject.toml").write_text('[tool.tlcheck]\ngolden_checkpoints = ["intnt"]\n')
    assert main(["golden", "check", str(saved("cast_bf16"))]) == 2
    assert "no checkpoint 'intnt'" in capsys.readouterr().err


def test_two_revisions_are_compared_without_a_toolchain(capsys: pytest.CaptureFixture[str]) -> None:
    git("init", "-q")
    approve("loop_pipelined", "tile_small", release="0.1.8")
    git("add", "golden")
    git("commit", "-qm", "old")
    assert check(capsys, "golden", "diff", "--base", "HEAD") == (0, "2 goldens, 0 changed since HEAD\n")
    approve("loop_pipelined", "tail_tile_odd")
    code, out = check(capsys, "golden", "diff", "--base", "HEAD")
    assert code == 0
    assert "loop_pipelined sm_90  differs" in out
    assert "tail_tile_odd sm_90: added, accepted by " in out
    assert out.endswith("3 goldens, 1 added, 1 changed since HEAD; all approved\n")
    git("add", "golden")
    git("commit", "-qm", "new")
    assert check(capsys, "golden", "diff", "--base", "HEAD~1", "--head", "HEAD") == (0, out.replace("HEAD", "HEAD~1"))
    code, out = check(capsys, "golden", "diff", "--base", "HEAD~1", "--format", "markdown")
    assert code == 0
    assert "<details>" in out
    edited, *gone = sorted(Path("golden").rglob("*.lower-tile-op.tir"))
    edited.write_text(edited.read_text() + "pass\n")
    for part in gone[-1].parent.glob(gone[-1].name.partition(".lower")[0] + ".*"):
        part.unlink()
    code, out = check(capsys, "golden", "diff", "--base", "HEAD")
    assert code == 1
    assert "changed, not approved: it was changed after" in out
    assert "removed, and still approved: its files are gone" in out
    assert main(["golden", "diff", "--base", "nowhere"]) == 2
    assert main(["golden", "diff", "--base=--output=x"]) == 2
    assert "git knows no revision" in capsys.readouterr().err


def test_a_conflict_in_the_approvals_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    approve("cast_bf16")
    file = Path("golden/approvals.toml")
    file.write_text(f"<<<<<<< HEAD\n{file.read_text()}=======\n>>>>>>> x\n")
    assert main(["golden", "check", str(saved("cast_bf16"))]) == 2
    assert "merge-conflict markers" in capsys.readouterr().err


def test_diff_of_snapshots(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = check(capsys, "diff", saved("loop_pipelined", "0.1.8"), saved("loop_pipelined"))
    assert code == 1
    assert "differs too: source, intent" in out
    code, _ = check(capsys, "diff", saved("loop_pipelined"), saved("loop_pipelined"))
    assert code == 0
    out = check(capsys, "diff", saved("loop_pipelined", "0.1.8"), saved("loop_pipelined"), "--at", "cuda")[1]
    assert "at cuda:" in out
    assert "__global__" in out
    assert main(["diff", str(saved("loop_pipelined")), str(saved("loop_pipelined")), "--at", "nowhere"]) == 2


def test_diff_of_dumps_and_of_goldens(capsys: pytest.CaptureFixture[str]) -> None:
    for release in ("0.1.8", "0.1.15"):
        assert main(["dump", str(saved("loop_pipelined", release)), "-o", release]) == 0
    code, out = check(capsys, "diff", "0.1.8", "0.1.15")
    assert code == 1
    assert 'T.launch_thread("threadIdx.x", 256)' in out
    assert check(capsys, "diff", "0.1.15", "0.1.15")[0] == 0
    for folder, release in (("a", "0.1.8"), ("b", "0.1.15")):
        Path("pyproject.toml").write_text(f'[tool.tlcheck]\ngolden = "{folder}"\n')
        approve("loop_pipelined", "tile_small", release=release)
    code, out = check(capsys, "diff", "a", "b")
    assert code == 1
    assert "2 compared" in out
    file = "cases/atomics/loop_pipelined.sm_90.lower-tile-op.tir"
    assert check(capsys, "diff", f"a/{file}", f"b/{file}")[0] == 1
    assert main(["diff", "a/nothing.tir", f"b/{file}"]) == 2


def test_facts_of_another_kind_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    approve("cast_bf16")
    file = Path("golden/cases/atomics/cast_bf16.sm_90.facts.json")
    facts = json.loads(file.read_text())
    del facts["grid"]
    file.write_text(json.dumps(facts) + "\n")
    text = "golden/cases/atomics/cast_bf16.sm_90.lower-tile-op.tir"
    assert main(["diff", text, text]) == 2
    assert "facts.json cannot be read" in capsys.readouterr().err
