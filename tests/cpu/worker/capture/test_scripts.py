"""Scripts of all kinds, run as they are with a real TileLang and without a GPU."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import installed, published
from tlcheck.cli import progress
from tlcheck.cli.main import main
from tlcheck.execute.request import GivenInputs
from tlcheck.toolchain.releases import PINNED
from tlcheck.verdicts.judge import Judge
from tlcheck.verdicts.kept import Verdicts

pytestmark = pytest.mark.toolchain

LAZY = """
import tilelang as compiler, torch
import tilelang.language as T

@compiler.jit(out_idx=[1])
def add(n, block=64):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
            for i in T.Parallel(block):
                T.atomic_add(B[bx * block + i], A[bx * block + i])
    return main
"""
EAGER = """
import tilelang, torch
import tilelang.language as T

@tilelang.jit
def copy(A, block: int = 64):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] + 1.0
    return B
"""
BACKWARD = """
class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return add(x.shape[0])(x)

    @staticmethod
    def backward(ctx, grad):
        assert grad.is_cuda and grad.device.type == "cuda"
        return add(2 * grad.shape[0], block=32)(torch.cat([grad, grad]))[: grad.shape[0]]

x = torch.randn(2**21, device="cuda", requires_grad=True)
Function.apply(x).sum().backward()
assert x.grad.shape == x.shape
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(PINNED)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\n")


def script(name: str, *parts: str) -> None:
    Path(name).write_text("\n".join(textwrap.dedent(part) for part in parts))


def check(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    before = argv[: argv.index("--")] if "--" in argv else argv
    code = main(["check", *before, "--format", "json", *argv[len(before) :]])
    return code, published(capsys.readouterr().out, "check")


def timeless(report: Any) -> list[Any]:
    """The runs without what each took."""
    return [{name: value for name, value in run.items() if name != "seconds"} for run in report["runs"]]


def cases(report: Any) -> dict[str, str]:
    """Case -> failure's message, empty for one that was checked."""
    return {run["case"]: (run["failure"] or {"message": ""})["message"] for run in report["runs"]}


def test_styles_devices_and_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    script(
        "lazy.py",
        LAZY,
        """
        import sys
        assert __name__ == "__main__"
        import os
        os.chdir("/")
        assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
        with torch.cuda.stream(torch.cuda.Stream()), torch.device("cuda"):
            x = torch.ones(int(sys.argv[1])).cuda().to("cuda:0", torch.float32)
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        out = add(x.shape[0])(x)
        assert (out.shape, out.dtype, out.device.type) == (x.shape, torch.float32, "cuda")
        assert x.sum().item() == x.shape[0]
        torch.testing.assert_close(out, x)
        """,
    )
    script(
        "eager.py",
        EAGER,
        """
        n = T.dynamic("n")
        @T.prim_func
        def bare(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
                for i in T.Parallel(64):
                    B[bx * 64 + i] = A[bx * 64 + i]
        kernel = tilelang.compile(bare, out_idx=-1)
        assert "__global__" in kernel.get_kernel_source()
        assert kernel(copy(torch.randn(256, device="cuda"))).shape == (256,)
        assert kernel.get_profiler().do_bench() > 0
        torch.manual_seed(0)
        drawn = torch.randint(2**40, (4,))
        torch.manual_seed(0)
        drawn_on_gpu = [torch.randint(2**40, (4,), device=device) for device in ("cuda", 0, torch.device("cuda"))]
        assert torch.randint(2**40, (4,)).tolist() == drawn.tolist()
        assert len({tuple(values.tolist()) for values in (drawn, *drawn_on_gpu)}) == 4
        """,
    )
    code, report = check(capsys, "lazy.py", "eager.py", "--", "128")
    assert (code, cases(report)) == (0, {"lazy.py::add[n=128]": "", "eager.py::bare": "", "eager.py::copy": ""})
    assert not [note for note in report["notes"] if "ended" in note]
    assert report["summary"]["proved"] == 3
    atomic = next(atomic for run in report["runs"] for atomic in run["claims"])
    assert atomic["source"]["text"] == "T.atomic_add(B[bx * block + i], A[bx * block + i])"


def test_backward_is_captured(capsys: pytest.CaptureFixture[str]) -> None:
    script("backward.py", LAZY, BACKWARD)
    code, report = check(capsys, "backward.py")
    assert code == 0
    assert list(cases(report)) == ["backward.py::add[n=2097152]", "backward.py::add[n=4194304,block=32]"]
    assert not [note for note in report["notes"] if "ended" in note]


@pytest.mark.slow
def test_how_scripts_end(capsys: pytest.CaptureFixture[str]) -> None:
    script("leaves.py", "import tilelang, sys\nsys.exit(0)")
    script("nothing.py", "import tilelang, triton_nowhere.language as tl\nfrom triton_nowhere import jit")
    script("fails.py", "import tilelang\nraise ValueError('no luck')")
    script("asks.py", "import tilelang, argparse\nargparse.ArgumentParser(prog='asks').parse_args(['--nope'])")
    script("dies.py", LAZY, "import os, signal\nadd(64)\nos.kill(os.getpid(), signal.SIGSEGV)")
    script("loops.py", LAZY, "import time\nadd(64)\nwhile True: time.sleep(1)")
    script("values.py", LAZY, "out = add(2**29)(torch.empty(2**29).cuda())\nif out.max() > 1: add(128)")
    code, report = check(capsys, ".", "--timeout", "1")
    assert (code, cases(report)) == (
        3,
        {
            "asks.py": "SystemExit: 2: asks: error: unrecognized arguments: --nope",
            "dies.py::add[n=64]": "",
            "fails.py": "ValueError: no luck",
            "loops.py::add[n=64]": "",
            "values.py::add[n=536870912]": "",
        },
    )
    notes = "\n".join(report["notes"])
    assert "dies.py (sm_90): 1 kernel captured until it ended" in notes
    assert "loops.py (sm_90): 1 kernel captured until it ended: no end after 10 s of wall time" in notes
    assert "values.py (sm_90): 1 kernel captured until it ended at" in notes
    assert "`__bool__` of a tensor whose values do not exist without a launch: its values would take" in notes
    assert "2 files without a case" in notes
    code, report = check(capsys, "fails.py", "values.py", "--keep-going")
    assert (code, list(cases(report))) == (0, ["values.py::add[n=536870912]"])
    assert "fails.py (sm_90): no kernel captured until it ended" in "\n".join(report["notes"])
    code, report = check(capsys, "nothing.py")
    assert (code, cases(report)) == (2, {"nothing.py": "declares no case, and run as a script it compiles no kernel"})


def test_packages_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    script(
        "missing.py",
        """
        import flash_nowhere, triton_nowhere.language as tl
        from flash_nowhere.layers import attention
        try:
            import optional_nowhere
        except ImportError:
            optional_nowhere = None
        """,
        LAZY,
        """
        def reference(x):
            return attention(x)

        assert optional_nowhere is None
        add(64)
        reference(1)
        """,
    )
    script("apart.py", LAZY, "from flash_nowhere import pair\nadd(64)\nfirst, second = pair(1)")
    code, report = check(capsys, "missing.py", "apart.py")
    assert (code, cases(report)) == (0, {"missing.py::add[n=64]": "", "apart.py::add[n=64]": ""})
    notes = "\n".join(report["notes"])
    assert "flash_nowhere.pair() was taken apart, and flash_nowhere is not installed" in notes
    assert "flash_nowhere.layers.attention was called, and flash_nowhere is not installed" in notes


TRITON = {
    "__init__": "",
    "testing": "def do_bench(work): raise RuntimeError('no CUDA-capable device')",
    "runtime/__init__": "",
    "runtime/driver": """
        class _Config:
            def set_active(self, active):
                self.active = active

        driver = _Config()
    """,
    "runtime/jit": """
        class KernelInterface:
            def __init__(self, function):
                self.function = function

            def __getitem__(self, grid):
                return lambda *args, **kwargs: self.run(*args, grid=grid, **kwargs)

        class JITFunction(KernelInterface):
            def run(self, *args, **kwargs):
                raise RuntimeError("no CUDA-capable device")
    """,
    "runtime/autotuner": """
        from triton.runtime.jit import JITFunction, KernelInterface

        class Autotuner(KernelInterface):
            def run(self, *args, **kwargs):
                raise RuntimeError("no CUDA-capable device")
    """,
}


def test_kernels_of_an_installed_triton_are_not_launched(capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in TRITON.items():
        Path("packages/triton", f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        Path("packages/triton", f"{name}.py").write_text(textwrap.dedent(text))
    script(
        "compared.py",
        LAZY,
        """
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.driver import driver
        from triton.runtime.jit import JITFunction
        from triton.testing import do_bench

        x, y = torch.zeros(64, device="cuda"), torch.zeros(64, device="cuda")
        kernel = JITFunction(lambda x, y, block: None)
        kernel[(1,)](x, y, block=64)
        torch.testing.assert_close(add(64)(x), y)  # nobody knows what is in y
        assert y.max().is_cuda
        torch.testing.assert_close(y, torch.full((64,), 7.0))
        torch.testing.assert_close(2 * y + 5, torch.full((64,), 7.0))
        torch.testing.assert_close(add(64)(2 * y), torch.full((64,), 7.0))
        kernel.run(x, y, grid=(1,), warmup=False)
        Autotuner(kernel)[lambda meta: (1,)](x, y, block=64)
        assert do_bench(lambda: kernel[(1,)](x, y)) > 0
        assert driver.active.get_current_device() == 0
        add(128)
        kernel[(1,)](x, y)
        half = torch.full((2, 2), 1.0078125, dtype=torch.bfloat16, device="cuda")
        if torch.mm(half, half, out_dtype=torch.float32)[0, 0].item() == 2 * 1.0078125**2: add(192)
        if y.sum().item(): add(256)
        """,
    )
    code, report = check(capsys, "compared.py", "--pythonpath", "packages")
    assert (code, cases(report)) == (0, {f"compared.py::add[n={n}]": "" for n in (64, 128, 192)})


def test_what_compiles_no_kernel_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    script("test_none.py", "import tilelang\ndef test_nothing(): pass")
    script("none.py", "import tilelang, flash_nowhere\nclass Op(flash_nowhere.Base): pass")
    script("fails.py", "import tilelang, flash_nowhere\nclass Op(flash_nowhere.Base): pass\nassert Op(1).name")
    script(
        "tuner.py",
        "import tilelang, triton, triton.language as tl",
        "@triton.jit\ndef kernel(x, n: tl.constexpr): pass",
        "class Tuner(triton.runtime.Autotuner): pass",
        "tuned = Tuner(kernel, kernel.arg_names, key=[])\ntuned[(1,)](1)\nassert kernel.arg_names == ['x', 'n']",
        "assert tl.constexpr(3) + triton.cdiv(7, 2) == 7",
    )
    script(
        "empty.py",
        """
        import tilelang, torch
        import tilelang.language as T

        @tilelang.jit
        def nothing(x):
            m = T.dynamic("m")
            x: T.Tensor[(m, 16), T.float32]
            with T.Kernel(1, threads=32):
                pass

        x = torch.zeros(4, 16, device="cuda")
        x.record_stream(torch.cuda.current_stream(x.device))
        nothing(x)
        """,
    )
    _, report = check(capsys, "test_none.py", "none.py", "fails.py", "empty.py", "tuner.py", "--keep-going")
    assert cases(report) == {"empty.py::nothing": ""}
    notes = "\n".join(report["notes"])
    assert "test_none.py (sm_90): no kernel captured: none of its tests compiles one" in notes
    assert "none.py (sm_90): no kernel captured: nothing in it compiles one" in notes
    assert "tuner.py (sm_90): no kernel captured: nothing in it compiles one" in notes
    assert (
        "AttributeError: 'Op' object has no attribute 'name' (not installed, and stood in for: flash_nowhere)" in notes
    )


def test_a_file_that_compiles_nothing_is_checked_with_default_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    plain = LAZY.replace("@compiler.jit(out_idx=[1])\n", "").replace("def add(n,", "def plain(n=64,")
    script("library.py", LAZY, plain, "def helper(n): return n")
    code, report = check(capsys, "library.py", "--arch", "sm_90")
    assert (code, cases(report)) == (0, {"library.py::plain": ""})
    assert report["notes"] == ["library.py: left out: add needs --arg n=..."]


def test_progress_names_the_test_that_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PAUSE", 0.2)
    script("test_slow.py", LAZY, "def test_first(): add(64)", "def test_second():\n    import time\n    time.sleep(2)")
    assert main(["check", "test_slow.py", "--arch", "sm_90", "--blocks", "1", "--seeds", "1"]) == 0
    said = capsys.readouterr().err
    assert "running test_slow.py sm_90: test 2 of 2 (test_second), 1 kernel so far\n" in said


def test_where_most_tests_are_skipped_that_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    skipped = "\n".join(f"@pytest.mark.skip('no GPU')\ndef test_{n}(): add(128)" for n in range(2))
    fails = "def test_fails(): raise ValueError"
    script("test_some.py", "import pytest", LAZY, "def test_kernel(): add(64)", skipped, fails)
    code, report = check(capsys, "test_some.py", "--arch", "sm_90")
    assert (code, cases(report)) == (0, {"test_some.py::add[n=64]": ""})
    assert report["notes"][0] == (
        "most tests did not run to their end with TileLang 0.1.15 (sm_90): of 4, 2 skipped, 1 failed; "
        "kernels that these compile may be missing"
    )
    assert main(["check", "test_some.py", "--arch", "sm_90", "-v"]) == 0
    said = capsys.readouterr().err
    assert f'Traceback (most recent call last):\n  File "{Path.cwd() / "test_some.py"}"' in said
    assert "in test_fails\n    def test_fails(): raise ValueError\n" in said
    assert "last lines that test_some.py (sm_90, TileLang 0.1.15) printed:\n" in said
    assert "FAILED test_some.py::test_fails - ValueError\n" in said


@pytest.mark.slow
def test_kernels_are_judged_while_later_tests_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test waits until a kernel of an earlier one is judged. One that is called later is judged once more."""
    judged: list[str] = []

    def asked(judge: Judge, snapshot: Path, inputs: GivenInputs | None) -> Verdicts:
        judged.append(snapshot.name)
        Path("judged").touch()
        return verdicts(judge, snapshot, inputs)

    verdicts = Judge._asked
    monkeypatch.setattr(Judge, "_asked", asked)
    waits = """
        def test_other():
            sizes()(torch.ones(64, device="cuda"))
        def test_waits():
            import time
            from pathlib import Path
            end = time.monotonic() + 60
            while not Path("judged").exists() and time.monotonic() < end:
                time.sleep(0.1)
        def test_more():
            sizes()(torch.ones(128, device="cuda"))
    """
    sizes = LAZY.replace("def add(n, block=64):", 'def sizes(block=64):\n    n = T.dynamic("n")')
    script("test_waits.py", LAZY, sizes, "def test_first(): add(64)", waits)
    _, report = check(capsys, "test_waits.py", "--arch", "sm_90", "-j", "2", "--no-cache")
    assert cases(report) == {"test_waits.py::add[n=64]": "", "test_waits.py::sizes": ""}
    assert judged[0] == "0-0.0001-0001.snapshot.json"
    assert [name for name in judged if name.startswith("0-0-")] == ["0-0-0002.snapshot.json"]
    capsys.readouterr()
    _, alone = check(capsys, "test_waits.py", "--arch", "sm_90", "-j", "1", "--no-cache")
    assert timeless(alone) == timeless(report)


@pytest.mark.slow
def test_a_slow_test_ends_alone_and_a_slow_file_with_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    slow = "def test_slow():\n    import torch\n    x = torch.zeros(8)\n    while True:\n        x = x + 1"
    script("test_one.py", LAZY, slow, "def test_kernel(): add(64)")
    code, report = check(capsys, "test_one.py", "--timeout", "4")
    assert (code, cases(report)) == (0, {"test_one.py::add[n=64]": ""})
    (note,) = report["notes"]
    assert "1 kernel captured; at test_one.py:" in note
    assert (
        "test_slow failed: NoTimeError: without a GPU it takes more than 0.2 s (a longer --timeout gives more)" in note
    )
    more = [slow.replace("test_slow", f"test_slow_{number}") for number in range(40)]
    script("test_many.py", LAZY, "def test_kernel(): add(64)", *more)
    code, report = check(capsys, "test_many.py", "--timeout", "4")
    assert (code, cases(report)) == (0, {"test_many.py::add[n=64]": ""})
    most, left = report["notes"]
    assert re.search(r"of 41, (\d+ failed, )?[23]\d left; kernels that these compile may be missing", most)
    assert "of its 41 tests were left after 2 s (-k EXPR chooses, --timeout S gives more)" in left


def test_a_kernel_may_be_called_with_none_for_a_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    script(
        "optional.py",
        """
        import tilelang, torch
        import tilelang.language as T

        @tilelang.jit
        def scale(n, biased):
            @T.prim_func
            def main(X: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
                with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
                    for i in T.Parallel(64):
                        if biased:
                            Y[bx * 64 + i] = X[bx * 64 + i] * 2.0 + B[bx * 64 + i]
                        else:
                            Y[bx * 64 + i] = X[bx * 64 + i] * 2.0
            return main

        x, y = torch.randn(128, device="cuda"), torch.empty(128, device="cuda")
        scale(128, False)(x, None, y)
        torch.testing.assert_close(y, 2 * x)
        """,
    )
    code, report = check(capsys, "optional.py")
    assert (code, cases(report)) == (0, {"optional.py::scale[n=128,biased=False]": ""})
    assert report["notes"] == []


def test_autotuned_kernels_and_tests(capsys: pytest.CaptureFixture[str]) -> None:
    script(
        "tuned.py",
        LAZY.replace(
            "@compiler.jit",
            "passes = {'tl.disable_tma_lower': True}\n"
            "configs = [{'block': block, 'pass_configs': passes} for block in (32, 64, 128)]\n"
            "@compiler.autotune(configs=configs)\n@compiler.jit",
        ),
        "assert add(256).config == configs[0]",
    )
    code, report = check(capsys, "tuned.py", "--max-configs", "2")
    assert (code, list(cases(report))) == (0, ["tuned.py::add[n=256,block=32]", "tuned.py::add[n=256,block=64]"])
    script("test_one.py", LAZY, "def test_small(): add(64)\n\ndef test_large():\n    assert add(128)\n    assert 0")
    code, report = check(capsys, "test_one.py", "--", "-k", "large")
    assert (code, cases(report)) == (0, {"test_one.py::add[n=128]": ""})


def test_a_kernel_that_fails_fails_alone(capsys: pytest.CaptureFixture[str]) -> None:
    source = LAZY + '\nfor kind in ("hip", "cuda"):\n    compiler.compile(add.get_tir(64), target=kind)'
    script("kinds.py", source)
    code, report = check(capsys, "kinds.py")
    found = cases(report)
    assert code == 3
    assert "compiles it for hip" in found["kinds.py::add[n=64]"]
    assert found["kinds.py::add[n=64]-2"] == ""


def test_a_case_file_finds_the_device_that_scripts_find(capsys: pytest.CaptureFixture[str]) -> None:
    """A library may choose its kernels by the compute capability while it is imported."""
    asks = "from tilelang.contrib import nvcc\nassert nvcc.get_target_compute_version() == '9.0'"
    case = "from tlcheck.case import Case\nmine = Case(add, args={'n': 64}, targets=('sm_90',))"
    script("asks.py", LAZY, asks, case)
    code, report = check(capsys, "asks.py", "--arch", "sm_90")
    assert (code, cases(report)) == (0, {"asks.py::mine": ""})


def test_captured_kernels_are_cases(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script("lazy.py", LAZY, "if __name__ == '__main__':\n    add(64)\n    add(128, block=32)\n    add(192)")
    script("eager.py", EAGER, "if __name__ == '__main__':\n    copy(torch.empty(192, device='cuda'))")
    assert main(["capture", "lazy.py", "eager.py", "-o", "kept"]) == 0
    capsys.readouterr()
    assert len(list(Path("kept").glob("*.snapshot.json"))) == 4
    code, report = check(capsys, "kept/lazy_cases.py", "kept/eager_cases.py")
    assert code == 0
    assert list(cases(report)) == [
        "kept/lazy_cases.py::add_case",
        "kept/lazy_cases.py::add_case_2",
        "kept/lazy_cases.py::add_case_3",
        "kept/eager_cases.py::copy_case",
    ]
    assert report["summary"]["proved"] == 7
    assert main(["capture", "lazy.py", "-o", "kept"]) == 2
    assert "--force overwrites it" in capsys.readouterr().err


def test_a_script_sees_an_amd_device(capsys: pytest.CaptureFixture[str]) -> None:
    """It asks torch, TVM and TileLang, and compiles for whatever there is."""
    script(
        "rocm.py",
        LAZY,
        """
        from tilelang import tvm
        from tilelang.backend.target import determine_target
        properties = torch.cuda.get_device_properties(0)
        assert torch.version.hip and not torch.version.cuda
        assert (properties.warp_size, properties.gcnArchName) == (64, "gfx942")
        assert torch.cuda.get_device_capability() == (9, 4)
        found = determine_target("auto", return_object=True)
        assert (found.kind.name, found.attrs["mcpu"], tvm.rocm(0).exist) == ("hip", "gfx942", True)
        add(64)(torch.ones(64).cuda())
        """,
    )
    code, report = check(capsys, "rocm.py", "--arch", "gfx942")
    assert (code, list(cases(report).values())) == (0, [""])
    assert report["runs"][0]["target"] == "gfx942"
