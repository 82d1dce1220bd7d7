"""nvcc: found, called and read. A script stands in for it; the real one is used where it is there."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest

from tests.cpu.checking import SAVED
from tlcheck.errors import UsageError
from tlcheck.gate.nvcc import CompiledCuda, Compiler, find_compiler, hash_of_headers, headers_of
from tlcheck.gate.sass import class_of
from tlcheck.toolchain.releases import PINNED
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.results import read_snapshot

PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'main_kernel' for 'sm_90a'
    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 1024 bytes smem, 8 bytes cumulative stack size
"""


@pytest.fixture
def nvcc(tmp_path: Path) -> Path:
    """Says what ptxas says, leaves its arguments and the source beside it, and refuses a source with `refused`."""
    made = tmp_path / "cuda" / "bin" / "nvcc"
    made.parent.mkdir(parents=True)
    script = f"""\
        #!/bin/sh
        if [ "$1" = --version ]; then echo "Cuda compilation tools, release 13.0, V13.0.88"; exit; fi
        echo "$@" > {tmp_path}/arguments
        for last; do :; done
        if grep -q refused "$last"; then echo "$last(3): error: identifier is undefined" >&2; exit 1; fi
        cat {tmp_path}/ptxas >&2
    """
    (tmp_path / "ptxas").write_text(PTXAS)
    made.write_text(textwrap.dedent(script))
    made.chmod(0o755)
    return made


def test_it_is_found_where_cuda_says_and_on_the_path(
    nvcc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setenv("PATH", f"{nvcc.parent}:/usr/bin:/bin")
    assert find_compiler() == Compiler(nvcc, "13.0")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(UsageError, match="--compile needs nvcc"):
        find_compiler()
    monkeypatch.setenv("CUDA_HOME", str(nvcc.parents[1]))
    assert find_compiler().nvcc == nvcc
    monkeypatch.delenv("CUDA_HOME")
    wheel = tmp_path / "site-packages" / "nvidia" / "cu13" / "bin"
    wheel.mkdir(parents=True)
    shutil.copy(nvcc, wheel)
    monkeypatch.setattr("sys.path", [str(tmp_path / "site-packages")])
    assert find_compiler().nvcc == wheel / "nvcc"


def test_what_ptxas_says_is_read(nvcc: Path, tmp_path: Path) -> None:
    assert Compiler(nvcc, "13.0").compile("code", "sm_90", (tmp_path,), fast_math=True) == CompiledCuda(
        168, 40, 1024, stack=8
    )
    arguments = (tmp_path / "arguments").read_text().split()
    assert {"-arch=sm_90a", "--use_fast_math", f"-I{tmp_path}", "-DPLACE=0"} <= set(arguments)
    Compiler(nvcc, "13.0").compile("code", "sm_80", ())
    assert "-arch=sm_80" in (tmp_path / "arguments").read_text().split()


def test_a_refused_source_is_an_error_without_the_names_of_temporary_files(nvcc: Path) -> None:
    found = Compiler(nvcc, "13.0").compile("refused", "sm_90", ())
    assert found == CompiledCuda(error="kernel.cu(3): error: identifier is undefined")


@pytest.mark.slow
@pytest.mark.toolchain
def test_the_real_one_compiles_what_a_release_generates() -> None:
    try:
        toolchain, compiler = resolve(PINNED), find_compiler()
    except UsageError as error:
        pytest.skip(str(error))
    snapshot = read_snapshot(SAVED / f"tile_small-{PINNED}.snapshot.json")
    found = compiler.compile(snapshot.cuda, snapshot.target, headers_of(toolchain))
    assert found.error == ""
    assert 0 < found.registers <= 255
    assert (
        "undefined"
        in compiler.compile(snapshot.cuda + "\nvoid f() { nothing(); }", "sm_90", headers_of(toolchain)).error
    )


def test_headers_that_change_in_place_are_other_headers(tmp_path: Path) -> None:
    header = tmp_path / "src" / "tl_templates" / "cuda" / "common.h"
    header.parent.mkdir(parents=True)
    header.write_text("one")
    before = hash_of_headers((tmp_path / "src",))
    assert before == hash_of_headers((tmp_path / "src",))
    header.write_text("two")
    assert before != hash_of_headers((tmp_path / "src",))


def test_opcodes_have_their_class() -> None:
    names = {"LDS": "shared loads", "LDSM": "matrix loads and stores", "LDGSTS": "asynchronous copies", "LDL": "spills"}
    names |= {"LDG": "global loads", "LD": "global loads", "HGMMA": "tensor cores", "UTCHMMA": "tensor cores"}
    names |= {"REDG": "atomics", "RED": "atomics", "REDUX": "shuffles and votes", "SYNCS": "waits and barriers"}
    names |= {"LDC": "integers, addresses and moves", "F2FP": "conversions", "FSETP": "floating point"}
    assert {opcode: class_of(opcode) for opcode in names} == names
