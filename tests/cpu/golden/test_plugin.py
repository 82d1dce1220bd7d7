"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tests.cpu.golden.test_with_toolchains import EDITED
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

PROJECT = '[tool.tlcheck]\n[tool.pytest.ini_options]\ntlcheck_cases = ["kernels"]\ntestpaths = ["tests"]\n'
ALONE = ("-p", "tlcheck.pytest_plugin", "-p", "no:cacheprovider")
ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "160"}
SMALL = EDITED.read_text().partition("original =")[0]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_other.py").write_text("def test_other():\n    pass\n")
    return tmp_path


@pytest.fixture
def _pinned() -> None:
    installed(PINNED)


def run(*argv: str) -> tuple[int, str]:
    """Like `run_apart`, in this process, so that workers are shared with other tests."""
    out, folder = io.StringIO(), str(Path.cwd())
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setattr(sys, "path", [*sys.path])
        code = pytest.main([*ALONE, *argv])
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(folder):
            del sys.modules[name]
    return code, out.getvalue()


def run_apart(*argv: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", *ALONE, *argv]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT}, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("_pinned", "kept_results")
def test_each_case_and_target_is_a_test_that_fails_with_the_difference(project: Path) -> None:
    kernel = project / "kernels" / "k.py"
    kernel.write_text(SMALL + "one = Case(products, targets=('sm_80',))\n")
    (project / "kernels" / "_shared.py").write_text("raise SystemExit(1)\n")
    code, out = run("-v")
    assert code == 0
    assert "tests/test_other.py::test_other PASSED" in out
    assert "kernels/k.py::one[sm_80] PASSED" in out
    assert "2 passed" in out
    assert main(["golden", "update", "kernels"]) == 0
    assert main(["golden", "accept", "--reason", "seen"]) == 0
    kernel.write_text(kernel.read_text().replace("stages=2", "stages=3"))
    code, out = run("kernels/k.py::one[sm_80]")
    assert code == 1
    assert "loop k: 2 -> 3 stages" in out
    assert "1 failed" in out


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("_pinned")
def test_only_what_is_selected_is_lowered_with_the_settings_of_its_own_project(project: Path) -> None:
    log = project / "built"
    kernel = (
        f"def kernel(name):\n    open({str(log)!r}, 'a').write(name)\n    return products()\n"
        "one = Case(kernel, {'name': 'one '}, targets=('sm_80',))\n"
        "two = Case(kernel, {'name': 'two '}, targets=('sm_80',))\n"
    )
    (project / "kernels" / "k.py").write_text(SMALL + kernel)
    other = project / "kernels" / "other"
    other.mkdir()
    (other / "k.py").write_text(SMALL + kernel)
    (other / "pyproject.toml").write_text("[tool.tlcheck]\ntoolchain = 'nowhere'\n")
    code, out = run("kernels/k.py", "-k", "two")
    assert (code, log.read_text()) == (0, "two ")
    assert "1 passed, 1 deselected" in out
    code, out = run("kernels")
    assert code == pytest.ExitCode.INTERRUPTED
    assert "nowhere" in out
    assert "toolchain in kernels/other/pyproject.toml:2" in out


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("_pinned")
def test_processes_of_xdist_lower_each_file_once(project: Path) -> None:
    log = project / "imports"
    line = f"open({str(log)!r}, 'a').write('x')\n"
    wrong = "def wrong():\n    raise ValueError('no such kernel')\n\n\nwrong = Case(wrong, targets=('sm_80',))\n"
    (project / "kernels" / "k.py").write_text(SMALL + line + "one = Case(products)\n" + wrong)
    code, out = run_apart("-p", "xdist", "-n", "2", "kernels")
    assert code == 1
    assert "no such kernel" in out
    assert "1 failed, 2 passed" in out
    assert len(log.read_text()) <= 1 + 1 + 3  # to find the cases, to find them when lowering, and for each run


def test_without_the_setting_nothing_is_collected(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.tlcheck]\n")
    (project / "kernels" / "k.py").write_text("raise SystemExit(1)\n")
    code, out = run()
    assert code == 0
    assert "1 passed" in out


def test_a_place_that_is_not_there(project: Path) -> None:
    (project / "kernels").rmdir()
    code, out = run()
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "tlcheck_cases: no such file or folder" in out
