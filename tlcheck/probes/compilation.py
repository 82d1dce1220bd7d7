"""nvcc and ptxas: which kernels of a translation unit compile, and the PTX of those."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.targets.nvidia import arch_of

_STANDARD = re.compile(r'"-std=(c\+\+\d+)"')
_ROUNDS = 12  # of dropping what does not compile


@dataclass(frozen=True)
class Headers:
    """A release's device library. root: the `tilelang` package, or the root of a checkout."""

    root: Path

    @property
    def includes(self) -> tuple[Path, ...]:
        """Folders for `-I`."""
        cutlass = [
            self.root / "3rdparty" / "cutlass" / "include",
            self.root.parent / "3rdparty" / "cutlass" / "include",
        ]
        templates = next(p for p in (self.root / "src", self.root.parent / "src") if (p / "tl_templates").is_dir())
        return (templates, next(p for p in cutlass if p.is_dir()))

    @property
    def atomics(self) -> str:
        """Text of `atomic.h`."""
        return (self.includes[0] / "tl_templates" / "cuda" / "atomic.h").read_text()

    @property
    def standard(self) -> str:
        """The C++ standard that the release compiles kernels with."""
        found = _STANDARD.search((self.root / "contrib" / "nvcc.py").read_text())
        lower = self.root / "engine" / "lower.py"
        found = found or _STANDARD.search(lower.read_text() if lower.is_file() else "")
        return found[1] if found else "c++17"


@dataclass(frozen=True)
class Compiled:
    """PTX of the kernels that the front end takes; kernel -> first error, of the front end or of ptxas."""

    ptx: str
    errors: dict[int, str]


def nvcc() -> Path:
    """The CUDA compiler, from CUDA_HOME or PATH. Raises UsageError if there is none."""
    home = os.environ.get("CUDA_HOME")
    found = shutil.which("nvcc", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("nvcc")
    if not found:
        raise UsageError("measuring the device library needs nvcc: put it on PATH, or set CUDA_HOME")
    return Path(found)


def version() -> str:
    """The compiler's version, `13.0.88`."""
    told = subprocess.run([nvcc(), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"V(\d[\d.]*)", told)
    return found[1] if found else "unknown"


def compile_kernels(
    headers: Headers,
    arch: int,
    source: Callable[[set[int]], str],
    first_line: int,
    family: Callable[[int], Iterable[int]],
) -> Compiled:
    """Compile for an arch. source: the text without the kernels of these numbers (their lines stay, empty); kernel `i`
    is alone on line `first_line + i`. family: kernels that instantiate the same template: its error is told once.
    """
    errors: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for _ in range(_ROUNDS):
            (place / "probes.cu").write_text(source(set(errors)))
            # nvcc to PTX; some versions read it with ptxas too, whose complaints are heard later
            options = [f"-std={headers.standard}", f"-arch={arch_of(arch)}", "-w", "-Xcudafe", "--error_limit=1000000"]
            includes = [f"-I{p}" for p in headers.includes]
            command = [str(nvcc()), *options, *includes, "-ptx", "--keep", "probes.cu"]
            told = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False).stderr.strip()
            refused = {
                other: error for kernel, error in front_errors(told, first_line).items() for other in family(kernel)
            }
            if not refused:
                break
            errors.update(refused)
        ptx = place / "probes.ptx"
        if not ptx.is_file():
            raise UsageError(f"nvcc failed on the headers of {headers.root}: {told.splitlines()[-1]}")
        text = ptx.read_text()
        errors.update(_assemble(place, text, arch))
        return Compiled(text, errors)


def _assemble(place: Path, text: str, arch: int) -> dict[int, str]:
    """Return what ptxas refuses, without making code of the rest: kernel -> error."""
    ptxas = nvcc().resolve().parent / "ptxas"
    errors: dict[int, str] = {}
    for _ in range(_ROUNDS):
        (place / "read.ptx").write_text(without(text, set(errors)))
        command = [str(ptxas), f"-arch=compute_{arch}", "read.ptx"]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        found = back_errors(done.stderr, text)
        if done.returncode == 0:
            return errors
        if not found.keys() - errors.keys():
            break
        errors.update(found)
    raise UsageError(f"ptxas failed: {done.stderr.strip()[-300:]}")


def without(ptx: str, kernels: set[int]) -> str:
    """A PTX text without some kernels; what stays keeps its lines."""
    for kernel in kernels:
        start = ptx.index(f".visible .entry p{kernel}(")
        end = ptx.index("\n}\n", start) + 3
        ptx = ptx[:start] + "\n" * ptx.count("\n", start, end) + ptx[end:]
    return ptx


def front_errors(told: str, first_line: int) -> dict[int, str]:
    """Return what nvcc said, by kernel: an error in a header comes before the line of the kernel that needs it."""
    found: dict[int, str] = {}
    error = ""
    for line in told.splitlines():
        if match := re.match(r"^(\S+)\((\d+)\): (?:catastrophic )?error[^:]*: (.*)$", line):
            error = f"{Path(match[1]).name}({match[2]}): {match[3]}" if match[1] != "probes.cu" else match[3]
            if match[1] == "probes.cu":
                found.setdefault(int(match[2]) - first_line, error)
        elif match := re.search(r"at line (\d+) of probes\.cu", line):
            found.setdefault(int(match[1]) - first_line, error)
    return found


def back_errors(told: str, ptx: str) -> dict[int, str]:
    """Return what ptxas said, by kernel."""
    starts: list[tuple[int, int]] = []
    for number, line in enumerate(ptx.splitlines(), 1):
        if match := re.search(r"\.entry\s+p(\d+)\(", line):
            starts.append((number, int(match[1])))
    found: dict[int, str] = {}
    for match in re.finditer(r"line (\d+);\s*error\s*:\s*(.*)", told):
        owner = [kernel for start, kernel in starts if start <= int(match[1])]
        if owner:
            found.setdefault(owner[-1], match[2])
    return found
