"""Test how errors become a few useful lines."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tlcheck.worker import assumed_device
from tlcheck.worker.failures import (
    RequestError,
    from_diagnostics,
    from_exception,
    from_exit,
    from_signal,
    where_raised,
)
from tlcheck.worker.protocol import Failure

CXX = """Traceback (most recent call last):
  File "/project/src/op/copy.cc", line 101, in tvm::tl::Copy::Lower()
  10: tvm::tl::LowerTileOp(tvm::tir::PrimFunc)
        at 0x7f
  [bt] (3) /lib/libtvm.so
Check failed: (lanes == 4) is false: four lanes

See the manual.
"""


def test_stack_frames_of_the_compiler_are_dropped() -> None:
    failure = from_exception(RuntimeError(CXX), "lower", "kernels.py")
    assert "tvm::tl::Copy::Lower" in failure.trace  # which -v shows
    assert replace(failure, trace="") == Failure(
        "exception", "lower", "RuntimeError: Check failed: (lanes == 4) is false: four lanes", "See the manual."
    )


def test_an_exception_without_a_message_has_its_name() -> None:
    assert from_exception(AssertionError(), "build", "kernels.py").message == "AssertionError"


def test_a_file_that_needs_a_gpu_when_it_is_imported_is_told_what_to_do() -> None:
    error = AssertionError("Torch not compiled with CUDA enabled")
    assert from_exception(error, "import", "k.py").message == (
        'AssertionError: Torch not compiled with CUDA enabled (put what needs a GPU under `if __name__ == "__main__":`)'
    )
    assert from_exception(error, "run", "k.py").message == "AssertionError: Torch not compiled with CUDA enabled"


def test_an_operator_that_only_a_gpu_has_is_told_without_torchs_page() -> None:
    said = "Could not run 'aten::mm.dtype' with arguments from the 'CPU' backend. This could be because ... visit us."
    failure = from_exception(NotImplementedError(f"{said}\n\nCPU: registered at /x/y.cpp"), "run", "t.py")
    assert failure.message == "NotImplementedError: torch has no aten::mm.dtype for the CPU, which computes values here"


def test_a_request_is_told_without_its_type() -> None:
    failure = from_exception(RequestError("no such file: a.py"), "import", "a.py")
    assert failure == Failure("usage", "import", "no such file: a.py")


def test_a_printed_diagnostic_takes_the_place_of_an_exception_that_refers_to_it() -> None:
    vague = Failure("exception", "build", "DiagnosticError: one or more error diagnostics were emitted, please check")
    printed = "noise\nerror: K_A = 63, K_B = 64\n --> /home/me/kernels.py:22:13\n    |\n 22 |  T.gemm(a, b, c)\n"
    told = from_diagnostics(vague, printed)
    assert told == Failure("exception", "build", "K_A = 63, K_B = 64", "", "/home/me/kernels.py:22")
    assert from_diagnostics(vague, "noise") == vague
    other = Failure("exception", "build", "ValueError: 63")
    assert from_diagnostics(other, printed) == other


def test_who_leaves_with_a_number_is_told_with_what_was_printed_last() -> None:
    failure = Failure("exit", "run", "SystemExit: 2", "", "/me/train.py:14")
    printed = "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --nope\n\n"
    told = from_diagnostics(failure, printed)
    assert told.message == "SystemExit: 2: train.py: error: unrecognized arguments: --nope"
    assert (told.kind, told.where) == ("exit", "/me/train.py:14")
    assert from_diagnostics(failure, "\n") == failure
    assert from_diagnostics(Failure("exit", "run", "SystemExit: no data"), printed).message == "SystemExit: no data"


def test_a_signal_names_the_line_in_the_users_file() -> None:
    printed = "loading\nterminate called\n  what():  no memory\n"
    handler = "Fatal Python error: Aborted\n\nCurrent thread (most recent call first):\n"
    frames = '  File "/lib/tvm/ffi.py", line 7 in call\n  File "/me/kernels.py", line 12 in kernel\n'
    output = printed + handler + frames
    failure = from_signal(signal.SIGABRT, "lower", output, "/me/kernels.py")
    assert failure == Failure(
        "crash", "lower", "SIGABRT: what():  no memory", "loading\nterminate called", "/me/kernels.py:12"
    )


def test_a_silent_end() -> None:
    assert from_signal(signal.SIGSEGV, "lower", "", "a.py").message == "the process ended with SIGSEGV"
    assert from_exit(3, "build", "one\ntwo\n") == Failure(
        "exit", "build", "the process ended by itself with code 3", "one\ntwo"
    )


@pytest.mark.parametrize(
    ("arch", "expected"), [("sm_80", (8, 0)), ("sm_90a", (9, 0)), ("sm_120", (12, 0)), ("gfx942", (9, 4))]
)
def test_capability(arch: str, expected: tuple[int, int]) -> None:
    assert assumed_device.known_target(arch).capability == expected


@pytest.mark.parametrize("arch", ["sm_91", "sm_9", "90", "gfx941", "sm_90x", ""])
def test_no_capability(arch: str) -> None:
    with pytest.raises(RequestError, match="unknown arch"):
        assumed_device.known_target(arch)


def test_the_place_of_a_failed_test_is_where_the_project_raised(tmp_path: Path) -> None:
    """The innermost line is in an installed package, the outermost in the test: neither says what to mend."""
    code = {
        tmp_path / "site-packages" / "helpers.py": "def check(x):\n    raise ValueError(x)\n",
        tmp_path / "kernels.py": "def launch():\n\n    check(3)\n",
        tmp_path / "test_kernels.py": "launch()\n",
    }
    names: dict[str, object] = {}
    (tmp_path / "site-packages").mkdir()
    for path, text in code.items():
        path.write_text(text)
    helpers, kernels, test = (compile(text, str(path), "exec") for path, text in code.items())
    exec(helpers, names)
    exec(kernels, names)
    with pytest.raises(ValueError, match="3") as raised:
        exec(test, names)
    assert where_raised(raised.value, "") == f"{tmp_path / 'kernels.py'}:3"
    assert where_raised(raised.value, str(tmp_path / "test_kernels.py")) == f"{tmp_path / 'test_kernels.py'}:1"
