"""Stubs of CUDA libraries, on a library that is linked like TileLang's: driver unversioned, nvrtc versioned."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tlcheck.errors import UsageError
from tlcheck.toolchain import loader
from tlcheck.toolchain.native import Symbol, read_needs
from tlcheck.toolchain.stubs import compile_stubs, cuda_needs

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

DRIVER, NVRTC = "libcuda.so.9999", "libnvrtc.so.9999"  # of a CUDA that no machine has
USER = "int cuInit(int); int nvrtcVersion(int *); int use(void) { int v; return cuInit(0) + nvrtcVersion(&v); }"
LOAD = "import ctypes, os, sys; print(ctypes.CDLL(sys.argv[1], os.RTLD_NOW).use())"


def compile_library(folder: Path, soname: str, source: str, *flags: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    code = folder / f"{soname}.c"
    code.write_text(source)
    library = folder / soname
    command = ["cc", "-shared", "-fPIC", "-w", "-o", str(library), str(code), f"-Wl,-soname,{soname}", *flags]
    subprocess.run(command, check=True)
    return library


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the real libraries, whose functions return 1 and 2."""
    folder = tmp_path_factory.mktemp("real")
    compile_library(folder, DRIVER, "int cuInit(int f) { return 1; }")
    script = folder / "map"
    script.write_text(f"{NVRTC} {{ global: *; }};")
    compile_library(folder, NVRTC, "int nvrtcVersion(int *v) { return 2; }", f"-Wl,--version-script={script}")
    return folder


@pytest.fixture(scope="module")
def library(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library under test: it needs both and finds neither by itself."""
    folder = tmp_path_factory.mktemp("library")
    return compile_library(folder, "libtvm.so", USER, f"-L{real}", f"-l:{DRIVER}", f"-l:{NVRTC}", "-Wl,-z,now")


@pytest.fixture(scope="module")
def stubs(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stubs")
    compile_stubs(cuda_needs([library]), folder)
    return folder


def load(library: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LOAD, str(library)]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def test_reads_libraries_and_versioned_symbols(library: Path) -> None:
    needs = read_needs(library)
    assert {DRIVER, NVRTC} <= needs.libraries
    assert {Symbol("cuInit", ""), Symbol("nvrtcVersion", NVRTC)} <= needs.symbols
    assert "use" not in {symbol.name for symbol in needs.symbols}


def test_refuses_what_is_not_a_library(tmp_path: Path) -> None:
    text = tmp_path / "libtvm.so"
    text.write_text("no library")
    with pytest.raises(ValueError, match="not a 64-bit little-endian ELF file"):
        read_needs(text)


def test_each_library_is_stubbed_with_its_own_functions(library: Path) -> None:
    assert cuda_needs([library]) == {
        DRIVER: frozenset({Symbol("cuInit", "")}),
        NVRTC: frozenset({Symbol("nvrtcVersion", NVRTC)}),
    }


def test_does_not_load_without_stubs(library: Path) -> None:
    assert "cannot open shared object file" in load(library, {}).stderr


def test_loads_with_stubs_that_report_an_error(library: Path, stubs: Path) -> None:
    env = loader.library_path([DRIVER, NVRTC], [], stubs)
    assert load(library, env).stdout == "1998\n"


def test_a_library_of_an_installed_wheel_comes_before_its_stub(library: Path, real: Path, stubs: Path) -> None:
    wheel = stubs / "site-packages" / "nvidia" / "cuda_nvrtc" / "lib"
    wheel.mkdir(parents=True)
    shutil.copy(real / NVRTC, wheel)
    env = loader.library_path([DRIVER, NVRTC], [stubs / "site-packages"], stubs)
    assert load(library, env).stdout == "1001\n"


def test_a_real_driver_is_never_shadowed(library: Path, real: Path, stubs: Path) -> None:
    """The loader finds the real libraries (here by LD_LIBRARY_PATH, as it is read when a process starts)."""
    script = f"""
from pathlib import Path
from tlcheck.toolchain.loader import library_path
print(library_path({[DRIVER, NVRTC]!r}, [], Path({str(stubs)!r})))
"""
    env = {**os.environ, "LD_LIBRARY_PATH": str(real)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "{}\n"


def test_the_users_library_path_comes_first(stubs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/users/own")
    path = loader.library_path([DRIVER], [], stubs)["LD_LIBRARY_PATH"]
    assert path == f"/users/own:{stubs / DRIVER}"


def test_says_what_to_install_without_a_compiler(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="no C compiler was found: install gcc"):
        compile_stubs(cuda_needs([library]), tmp_path / "stubs")
