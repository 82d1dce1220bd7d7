"""Whether nvcc accepts the generated CUDA, and what ptxas says of it. No GPU is needed for that."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.gate.sass import find_disassembler, opcodes
from tlcheck.targets.lookup import target
from tlcheck.targets.nvidia import compiled_as
from tlcheck.targets.target import NVIDIA
from tlcheck.toolchain.resolve import Toolchain

_FLAGS = ("-cubin", "-std=c++17", "--expt-relaxed-constexpr", "-Xptxas", "-v", "-w")
_PLACE = "-DPLACE=0"  # stands in a snapshot's source for what differs from process to process
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_STACK = re.compile(r"(\d+) bytes stack frame")
_TIMEOUT = 600
_PACKAGES = "tlcheck[nvcc]"
_HEADERS = ("src", "3rdparty/cutlass/include", "3rdparty/cutlass/tools/util/include")


@dataclass(frozen=True, slots=True)
class CompiledCuda:
    """A record of what nvcc makes of one kernel.

    registers: of a thread. spills, stack: bytes of a thread. shared: static bytes of a block. error: of nvcc. seconds:
    that it took when it was compiled. opcodes: how often each stands in the machine code; empty without nvdisasm.
    """

    registers: int = 0
    spills: int = 0
    shared: int = 0
    error: str = ""
    stack: int = 0
    seconds: float = field(default=0.0, compare=False)
    opcodes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Compiler:
    """An nvcc. version: its release, such as `13.0`. disassembler: an nvdisasm, if there is one."""

    nvcc: Path
    version: str
    disassembler: Path | None = None

    def compile(self, source: str, arch: str, includes: tuple[Path, ...], *, fast_math: bool = False) -> CompiledCuda:
        """Compile one kernel's source."""
        with tempfile.TemporaryDirectory(prefix="tlcheck-nvcc-") as folder:
            file = Path(folder, "kernel.cu")
            file.write_text(source, encoding="utf-8")
            command = [str(self.nvcc), *_FLAGS, _PLACE, f"-arch={compiled_as(target(arch))}", "-o", f"{folder}/out"]
            command += ["--use_fast_math"] * fast_math + [f"-I{path}" for path in includes] + [str(file)]
            began = time.monotonic()
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT)
            except subprocess.TimeoutExpired:
                return CompiledCuda(error=f"nvcc did not end in {_TIMEOUT} s")
            seconds = round(time.monotonic() - began, 1)
            found = _read(done.returncode, f"{done.stdout}{done.stderr}", folder)
            known = opcodes(self.disassembler, Path(folder, "out")) if self.disassembler and not found.error else {}
        return found if found.error else replace(found, seconds=seconds, opcodes=known)


def uncompiled(archs: Iterable[str]) -> Iterator[str]:
    """Yield what `--compile` does not do for some of these archs, in a line for each."""
    for arch in sorted(set(archs)):
        if not compiles_for(arch):
            yield f"--compile: {arch} is left out: nvcc compiles CUDA, not HIP; its registers and spills are not known"


def compiles_for(arch: str) -> bool:
    """Whether nvcc has a target of this name."""
    return target(arch).family == NVIDIA


def find_compiler() -> Compiler:
    """Look in CUDA_HOME, CUDA_PATH, PATH, or a wheel in this environment. Raises UsageError if there is none."""
    for nvcc in _candidates():
        if nvcc.is_file() and os.access(nvcc, os.X_OK):
            done = subprocess.run([str(nvcc), "--version"], capture_output=True, text=True, check=False)
            if found := re.search(r"release ([\d.]+)", done.stdout):
                return Compiler(nvcc, found[1], find_disassembler(nvcc))
    raise UsageError(f"--compile needs nvcc: set CUDA_HOME, put it on PATH, or `pip install {_PACKAGES}`")


def _candidates() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield Path(home, "bin", "nvcc")
    if on_path := shutil.which("nvcc"):
        yield Path(on_path)
    for folder in sys.path:
        yield from sorted(Path(folder, "nvidia").glob("*/bin/nvcc"))


@cache
def headers(python: Path, env: tuple[tuple[str, str], ...]) -> tuple[Path, ...]:
    """Folders of TileLang's device headers, as an interpreter finds that package; empty if it has none."""
    code = "import importlib.util as u; print(u.find_spec('tilelang').submodule_search_locations[0])"
    command = [str(python), "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **dict(env)})
    if done.returncode:
        return ()
    package = Path(done.stdout.strip())
    found = (root / part for root in (package, package.parent) for part in _HEADERS)
    return tuple(path for path in found if path.is_dir())


def hash_of_headers(folders: tuple[Path, ...]) -> str:
    """Hash of TileLang's own device headers: those of a checkout may change in place."""
    content = hashlib.sha256()
    for folder in folders:
        for file in sorted((folder / "tl_templates").rglob("*.h")):
            content.update(f"{file}\0".encode() + file.read_bytes())
    return content.hexdigest()


def headers_of(toolchain: Toolchain) -> tuple[Path, ...]:
    """Return the same as `headers`."""
    return headers(toolchain.python, tuple(sorted(toolchain.env.items())))


def _read(code: int, output: str, folder: str) -> CompiledCuda:
    if code:
        lines = [line for line in output.splitlines() if "error" in line.lower()] or output.splitlines()[-1:]
        return CompiledCuda(error=(lines[0] if lines else f"nvcc ended with {code}").replace(f"{folder}/", ""))
    registers = max((int(n) for n in _REGISTERS.findall(output)), default=0)
    shared = max((int(n) for n in _SHARED.findall(output)), default=0)
    spills = sum(int(a) + int(b) for a, b in _SPILLS.findall(output))
    stack = max((int(n) for n in _STACK.findall(output)), default=0)
    return CompiledCuda(registers, spills, shared, stack=stack)
