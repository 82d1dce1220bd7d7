"""`--live`, with the CPU in the place of the device: TileLang really compiles and launches (see `cpu_device`)."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cpu.run.interpreters import DEVICE, make_interpreter
from tests.cpu.worker.capture import cpu_device
from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.toolchain.releases import PINNED
from tlcheck.toolchain.resolve import resolve

KERNELS = """
import tilelang, torch
import tilelang.language as T

@tilelang.jit(out_idx=[1])
def add(n, block=64):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=1) as bx:
            for i in T.serial(block):
                B[bx * block + i] = A[bx * block + i] + 1.0
    return main

@tilelang.jit
def accumulate(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), S: T.Tensor((n,), "float32"), k: T.int32):
        with T.Kernel(1, threads=1) as bx:
            for i in T.serial(n):
                S[i] = S[i] + A[i] * T.cast(k, "float32")
    return main

@tilelang.jit
def twice(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(1, threads=1) as bx:
        for i in T.serial(N):
            B[i] = A[i] * 2.0
    return B

x = torch.arange(128.0)
"""
RUN = """
if __name__ == "__main__":
    import os
    os.chdir("/")
    if add(128)(x).max() == 128:  # a value that has to be there
        kernel, sums = accumulate(64), torch.ones(64)
        assert hasattr(kernel.torch_function, "__wrapped__")
        kernel(x[:64], sums, 3)
        assert not hasattr(kernel.torch_function, "__wrapped__") and not hasattr(kernel.adapter.func, "__wrapped__")
        kernel(x[:64], sums, 3)
        assert sums[2] == 13
    assert torch.equal(twice(x), 2 * x)
"""
TUNED = """
    tuned = tilelang.autotune(
        configs=[{"block": block} for block in (32, 64)],
        supply_prog=lambda params: [torch.zeros(*params[0].shape)],
        skip_check=True,
    )(add)
    kernel = tuned(192)
    assert kernel.config == {"block": 64}
    assert kernel(torch.arange(192.0))[3] == 4
    add(64)
    tilelang.compile(add.get_tir(32), target="c", out_idx=[1])(x[:32])
    raise ValueError("own failure")
"""
TESTS = """
from kernels import add, x

def test_right():
    assert add(64)(x[:64]).sum() == x[:64].sum() + 64

def test_wrong():
    assert add(128)(x).sum() == 0
"""


SCRIPTS = {"kernels.py": KERNELS + RUN + TUNED, "test_add.py": TESTS}


@dataclass(frozen=True)
class Captured:
    """A record of what a command has done in a project's folder. lines: that it has printed. site: with the device's
    stand-in.
    """

    project: Path
    code: int
    lines: list[str]
    toolchain: str
    site: str

    @property
    def title(self) -> str:
        """Return what reports call the toolchain: it was given by the path of its interpreter."""
        return f"{PINNED} ({self.toolchain})"


def with_compiled_header(python: Path, folder: Path) -> Path:
    """Copy the toolchain's header for a CPU and compile it once: that is most of compiling a kernel."""
    (source,) = python.parents[1].glob("lib/python*/site-packages/tilelang/src")
    header = folder / "src" / "tl_templates" / "cpp" / "common.h"
    shutil.copytree(source / "tl_templates" / "cpp", header.parent)
    options = ["-std=c++17", "-fPIC", "-w", "-x", "c++-header"]  # TileLang's
    subprocess.run(["g++", *options, str(header), "-o", f"{header}.gch"], check=True)
    return folder / "src"


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Captured]:
    """All scripts, captured once by an interpreter that has the pinned release and a device."""
    try:
        python = str(resolve(PINNED).python)
    except UsageError as error:
        pytest.skip(str(error))
    project, site = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("site")
    shutil.copyfile(cpu_device.__file__, site / "sitecustomize.py")
    templates = with_compiled_header(Path(python), site)
    for name, text in SCRIPTS.items():
        (project / name).write_text(text)
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setenv("PYTHONPATH", str(site))
        patch.setenv("TL_TEMPLATE_PATH", str(templates))
        patch.chdir(project)
        (project / "pyproject.toml").write_text('[tool.tlcheck]\narch = ["sm_80"]\n')
        code = main(["capture", *SCRIPTS, "--live", "-o", "kept", "--toolchain", python])
        yield Captured(project, code, out.getvalue().splitlines(), python, str(site))


@pytest.mark.slow
@pytest.mark.toolchain
def test_the_first_call_of_each_kernel_is_recorded(captured: Captured) -> None:
    """Of a tuned kernel what the tuner chooses; of a script that ends early what it has called until then."""
    lines = [line.partition(f" sm_90 {captured.title}  ")[::2] for line in captured.lines]
    assert {case: what.rpartition(", ")[2] for case, what in lines if "snapshot" in what} == {
        "kernels.py::add[n=128]": "a call recorded (1.0 kB)",
        "kernels.py::accumulate[n=64]": "a call recorded (768 bytes)",
        "kernels.py::twice": "a call recorded (1.0 kB)",
        "kernels.py::add[n=192,block=64]": "a call recorded (1.5 kB)",
        "kernels.py::add[n=64]": "no call recorded: no call of it was seen",
        "test_add.py::add[n=64]": "a call recorded (512 bytes)",
        "test_add.py::add[n=128]": "a call recorded (1.0 kB)",
    }
    assert len(list((captured.project / "kept").iterdir())) == 7 + 6 + 2  # snapshots, calls, case files


@pytest.mark.slow
@pytest.mark.toolchain
def test_a_script_that_fails_has_failed(captured: Captured) -> None:
    assert captured.code == 3
    lines = [line.partition(f" sm_90 {captured.title}  ")[::2] for line in captured.lines]
    end = captured.project / f"kernels.py:{len(SCRIPTS['kernels.py'].splitlines())}"
    *ends, (test, said) = [(case, what) for case, what in lines if "snapshot" not in what]
    assert ends == [
        ("kernels.py::add[n=32]", "the script compiles it for c, not for a CUDA device"),
        ("kernels.py", f"ValueError: own failure ({end})"),
    ]
    assert test == "test_add.py"
    assert "AssertionError" in said


@pytest.mark.slow
@pytest.mark.toolchain
def test_recorded_calls_are_repeated(
    captured: Captured, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a compiler, or a kernel, that has changed: here one is as it was, and one adds one more."""
    monkeypatch.setenv("PYTHONPATH", captured.site)
    monkeypatch.setenv("TL_TEMPLATE_PATH", str(Path(captured.site) / "src"))
    script = captured.project / "kernels.py"
    script.write_text(script.read_text().replace("A[i] * T.cast", "1.0 + A[i] * T.cast"))
    cases = captured.project / "kept/kernels_cases.py"
    names = [f"{cases}::{name}_case" for name in ("accumulate", "twice")]
    assert main(["run", *names, "--toolchain", captured.toolchain]) == 1
    out = capsys.readouterr().out
    assert f"kernels_cases.py::accumulate_case sm_90 {captured.title}  failed" in out
    assert "wrong: S: 64 of 64 elements are wrong (recorded inputs of seed 0)" in out
    assert "S[0] is 2.0, expected 1.0" in out
    assert f"kernels_cases.py::twice_case sm_90 {captured.title}  passed" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["capture", "script.py", "-o", "kept", "--record-limit", "5"],
            "--record-limit has a meaning with --live only",
        ),
        (["check", "script.py", "--live", "--max-configs", "5"], "--max-configs has no meaning with --live"),
        (["check", "cases.py", "--live"], "none of these files is a script"),
        (["check", "script.py", "--live", "--arch", "sm_80"], "scripts run on the device, which is sm_90"),
    ],
)
def test_what_has_no_meaning(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text("import tilelang")
    Path("cases.py").write_text("from tlcheck.case import Case")
    python = make_interpreter(tmp_path / "toolchain", {"device": {"answer": {"phase": "done", "device": DEVICE}}})
    assert main([*arguments, "--toolchain", str(python)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", [["check"], ["capture", "-o", "kept"]])
def test_without_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text("import tilelang")
    nothing = {"torch": "2.13.0", "cuda": "13.0"}
    python = make_interpreter(tmp_path / "toolchain", {"device": {"answer": {"phase": "done", "device": nothing}}})
    assert main([command[0], "script.py", *command[1:], "--live", "--toolchain", str(python)]) == 3
    assert capsys.readouterr().err == "tlcheck: not run: no GPU: torch finds no CUDA device\n"
