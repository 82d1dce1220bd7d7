"""`tlcheck init`: what it writes into a project, and what it leaves alone."""

from __future__ import annotations

import textwrap
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cpu.checking import installed
from tlcheck import __version__
from tlcheck.cli.main import main
from tlcheck.config import read_config
from tlcheck.lower.runs import CapturedOrigin, Lowered, Run
from tlcheck.lower.session import Settings
from tlcheck.toolchain.releases import PINNED
from tlcheck.worker.protocol import Failure

ROOT = Path(__file__).parents[3]
ARCHS = ("sm_80", "sm_90")
WORKFLOW = Path(".github/workflows/tilelang-gate.yml")
KERNELS = """
    import tilelang
    import tilelang.language as T
    from packaging.version import parse  # comes with pytest, and not with a toolchain

    assert parse("0.1.9") < parse("0.1.10")

    @tilelang.jit
    def scatter(n, block=128):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
                for i in T.Parallel(block):
                    T.atomic_add(B[bx * block + i], A[bx * block + i])
        return main
"""
TEST = """
    import torch
    from mylib.kernels import scatter

    def test_scatter():
        a, b = torch.ones(1024, device="cuda"), torch.zeros(1024, device="cuda")
        scatter(1024)(a, b)
        torch.testing.assert_close(b, a)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library with one kernel and a test of it."""
    installed(PINNED)
    folder = tmp_path / "my project"
    for name, text in (("mylib/__init__.py", ""), ("mylib/kernels.py", KERNELS), ("tests/test_scatter.py", TEST)):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    (folder / "pyproject.toml").write_text('[project]\nname = "mylib"\nversion = "1"')
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.slow
@pytest.mark.toolchain
def test_what_it_writes_passes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--arch", "sm_90,gfx942"]) == 0
    said = capsys.readouterr().out
    assert "ok  cases/test_scatter_cases.py::scatter_case  sm_90 gfx942  same results as the source in " in said
    assert said.count("tests/test_scatter.py::scatter") == 1, "one line for both archs"
    config = read_config(project)
    assert (config.paths, config.toolchain, config.pythonpath) == ((project / "cases",), PINNED, (project,))
    assert (project / "pyproject.toml").read_text().startswith('[project]\nname = "mylib"\nversion = "1"\n')
    workflow = (project / WORKFLOW).read_text()
    assert f"  TLCHECK: tlcheck=={__version__} #" in workflow
    assert 'pip install "$TLCHECK"\n          tlcheck toolchain install\n' in workflow
    assert not list(project.glob("cases/*.json"))


def test_it_asks_before_it_overwrites(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lowered here: only who writes which file counts."""
    case = project / "cases" / "test_scatter_cases.py"
    for file in (case, project / WORKFLOW):
        file.parent.mkdir(parents=True)
        file.write_text("mine\n")

    def write(*_: object) -> list[str]:
        case.write_text("captured\n")
        return ["cases"]

    monkeypatch.setattr("tlcheck.cli.init._write_cases", write)
    monkeypatch.setattr("tlcheck.cli.check.run", lambda _: 0)
    assert main(["init"]) == 2  # nobody can be asked
    assert capsys.readouterr().err.endswith(
        "test_scatter_cases.py is there, and may be edited: --force overwrites it\n"
    )

    questions: list[str] = []
    answer = "n"

    def ask(question: str) -> str:
        questions.append(question.split()[0])
        return answer

    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("builtins.input", ask)
    assert main(["init"]) == 0
    assert questions == ["cases/test_scatter_cases.py", str(WORKFLOW)]
    assert [case.read_text(), (project / WORKFLOW).read_text()] == ["mine\n", "mine\n"]

    answer, table = "y", (project / "pyproject.toml").read_text()
    assert table.startswith('[project]\nname = "mylib"\nversion = "1"\n\n[tool.tlcheck]\n')
    assert main(["init"]) == 0
    assert case.read_text() == "captured\n"
    assert (project / WORKFLOW).read_text() != "mine\n"
    assert (project / "pyproject.toml").read_text() == table  # settings are never written twice


@pytest.mark.parametrize(
    ("file", "text"),
    [("setup.py", "requires=['tilelang == 0.1.9']"), ("requirements.txt", "tilelang==0.1.9\n")],
)
def test_settings_that_are_there_get_paths_and_the_projects_own_release_is_checked(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, file: str, text: str
) -> None:
    settings = project / "pyproject.toml"
    settings.write_text("[tool.tlcheck]  # ours\nblocks = 2\n\n[tool.other]\nx = 1\n")
    (project / file).write_text(text)
    checked: list[str] = []
    monkeypatch.setattr("tlcheck.cli.init.resolve", lambda name, _: checked.append(name))

    def write(_: object, settings: Settings, seconds: float) -> list[str]:
        checked.append(settings.toolchain)
        return ["cases"]

    monkeypatch.setattr("tlcheck.cli.init._write_cases", write)
    monkeypatch.setattr("tlcheck.cli.check.run", lambda _: 0)
    assert main(["init"]) == 0
    assert checked == ["0.1.9", "0.1.9"]
    assert f"{file} pins TileLang 0.1.9: that release is checked\n" in capsys.readouterr().out
    assert settings.read_text().splitlines()[:3] == ["[tool.tlcheck]  # ours", 'paths = ["cases"]', "blocks = 2"]
    assert read_config(project).paths == (project / "cases",)
    assert main(["init", "--force", "--toolchain", PINNED]) == 0
    assert checked[2:] == [PINNED, PINNED]


def test_kernels_are_captured_and_checked_with_the_given_pass_configurations(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered: list[Settings] = []
    checked: list[Namespace] = []

    def write(_: object, settings: Settings, seconds: float) -> list[str]:
        lowered.append(settings)
        return ["cases"]

    monkeypatch.setattr("tlcheck.cli.init._write_cases", write)

    def check(args: Namespace) -> int:
        checked.append(args)
        return 0

    monkeypatch.setattr("tlcheck.cli.check.run", check)
    assert main(["init", "--pass-config", "TL_DISABLE_WGMMA=True"]) == 0
    assert [settings.pass_configs for settings in lowered] == [{"TL_DISABLE_WGMMA": "True"}]
    assert [args.pass_configs for args in checked] == [["TL_DISABLE_WGMMA=True"]]
    assert "`tlcheck check cases --pass-config TL_DISABLE_WGMMA=True`" in capsys.readouterr().out


def test_a_file_of_whose_kernels_no_case_can_be_made_is_checked_as_it_is(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Builders inside functions cannot be imported."""
    snapshot = project / "kernel.snapshot.json"
    snapshot.touch()
    origin = CapturedOrigin("mylib.kernels", "scatter", {"n": "64"})
    runs = [
        Run(f"tests/test_{name}.py", "k[n=64]", "sm_90", PINNED, {}, position=(n, 0), is_captured=True)
        for n, name in enumerate("ab")
    ]
    found = [Lowered(runs[0], snapshot, origin=origin), Lowered(runs[1], snapshot)]
    monkeypatch.setattr("tlcheck.lower.session.Session.lower", lambda *_: iter(found))
    checked: list[list[str]] = []

    def check(args: Namespace) -> int:
        checked.append(args.cases)
        return 0

    monkeypatch.setattr("tlcheck.cli.check.run", check)
    assert main(["init"]) == 0
    said = capsys.readouterr().out
    assert "tests/test_b.py::k[n=64]  no case can build it: its builder is inside a function, or takes more" in said
    assert 'paths = ["cases", "tests/test_b.py"]  #' in (project / "pyproject.toml").read_text()
    found[:] = found[1:]
    assert main(["init", "--force"]) == 0
    assert checked == [["cases", "tests/test_b.py"], ["tests/test_b.py"]]


def test_without_a_kernel_nothing_is_written(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    advised = "name einops in `requirements`"
    failure = Failure("capture", "run", "test_scatter failed: no einops", f"more\n{advised}", advice=advised)
    runs = [Run("tests/test_scatter.py", "", arch, PINNED, {}, position=(0, i)) for i, arch in enumerate(ARCHS)]
    found = [Lowered(run, failure=failure) for run in runs]
    monkeypatch.setattr("tlcheck.lower.session.Session.lower", lambda *_: iter(found))
    assert main(["init"]) == 2
    said = capsys.readouterr()
    assert "no kernel was captured: nothing was written" in said.err
    advice = "test_scatter.py  test_scatter failed: no einops\nname einops in `requirements`\n"
    assert said.out.count(advice) == said.out.count("name einops") == 1
    assert sorted(path.name for path in project.iterdir()) == ["mylib", "pyproject.toml", "tests"]


@pytest.mark.parametrize("has_table", [True, False])
def test_a_part_of_a_project_gets_no_settings_of_its_own(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_table: bool
) -> None:
    file = project / "pyproject.toml"
    if has_table:
        file.write_text("[tool.tlcheck]\n")
    monkeypatch.chdir(project / "tests")
    assert main(["init"]) == 2
    said = capsys.readouterr().err
    assert str(file) in said
    assert ("run `tlcheck init` beside it" in said) is has_table
    assert sorted(path.name for path in (project / "tests").iterdir()) == ["test_scatter.py"]


def test_without_a_test_it_says_what_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(PINNED)
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 2
    assert "name scripts that compile kernels, `tlcheck init SCRIPT ...`" in capsys.readouterr().err


def test_tests_that_do_not_lead_to_tilelang_are_left_out(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "tests" / "test_other.py").write_text("import json\n")
    monkeypatch.setattr("tlcheck.lower.session.Session.lower", lambda *_: iter(()))
    assert main(["init"]) == 2
    assert "1 of 2 tests do not lead to TileLang: left out" in capsys.readouterr().out
    (project / "tests" / "test_scatter.py").write_text("import json\n")
    assert main(["init"]) == 2
    assert "none of 2 tests leads to TileLang: name scripts" in capsys.readouterr().err


@pytest.mark.toolchain
def test_the_seconds_of_a_project_end_its_tests(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tlcheck.cli.init._SECONDS", 0.2)
    assert main(["init"]) == 2
    assert "1 files were not run to their end" in capsys.readouterr().out


def test_the_workflow_of_this_repository_is_the_one_that_is_written() -> None:
    """But for what is installed: here it is this repository."""

    def lines(file: Path) -> list[str]:
        return [line for line in file.read_text().splitlines() if not line.startswith("  TLCHECK: ")]

    assert lines(ROOT / WORKFLOW) == lines(ROOT / "tlcheck" / "cli" / WORKFLOW.name)
