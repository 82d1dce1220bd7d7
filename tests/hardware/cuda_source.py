"""The CUDA of a snapshot: its kernels with their parameters, what nvcc makes of it, and a grid of few blocks."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(([^;{]*)\) \{\n')
_RENAMED_BLOCKS = re.compile(r"const dim3 blockIdx = [^;]*;\n")
_FAST = "tl.enable_fast_math"
_PLACE = "-DPLACE=0"  # stands in a snapshot for what differs from process to process


class UnusableError(Exception):
    """A kernel that cannot be launched from its snapshot alone: why."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """form: `map` (a tensor map), `tensor`, or the C type of a number."""

    name: str
    form: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of the text; body: where its statements know which block they are in."""

    name: str
    parameters: tuple[Parameter, ...]
    body: int


def kernels(text: str) -> list[Kernel]:
    """All kernels in order of appearance. Raises UnusableError where launching one takes more than a grid."""
    for word in ("__cluster_dims__", "this_grid", "sync_grid"):
        if word in text:
            raise UnusableError(word)
    heads = list(_KERNEL.finditer(text))
    if not heads:
        raise UnusableError("no kernel found in the CUDA")
    found = []
    ends = [*[head.start() for head in heads], len(text)][1:]
    for match, end in zip(heads, ends, strict=True):
        parameters = tuple(_parameter(part) for part in match[2].split(",") if part.strip())
        renamed = _RENAMED_BLOCKS.search(text, match.end(), end)
        found.append(Kernel(match[1], parameters, renamed.end() if renamed else match.end()))
    return found


def _parameter(text: str) -> Parameter:
    head, _, name = text.strip().rpartition(" ")
    if "CUtensorMap" in head:
        return Parameter(name, "map")
    return Parameter(name.lstrip("*"), "tensor" if "*" in text else head.replace("const", "").strip())


def only_blocks(text: str, kernel: Kernel, blocks: Iterable[tuple[int, int, int]]) -> str:
    """The text with a kernel that does nothing in other blocks."""
    these = " || ".join(f"(blockIdx.x == {x} && blockIdx.y == {y} && blockIdx.z == {z})" for x, y, z in blocks)
    return f"{text[: kernel.body]}  if (!({these})) return;\n{text[kernel.body :]}"


def compiled(text: str, headers: Path, pass_configs: Sequence[tuple[str, object]]) -> bytes:
    """The machine code for sm_90a. headers: a folder with tl_templates/ and cutlass/. Raises UnusableError."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "kernel.cu", Path(folder) / "kernel.cubin"
        source.write_text(text, encoding="utf-8")
        fast = ["--use_fast_math"] if str(dict(pass_configs).get(_FAST)) in ("True", "1") else []
        include = [f"-I{headers}", f"-I{headers / 'cutlass'}"]
        target = ["-gencode", "arch=compute_90a,code=sm_90a"]
        command = ["nvcc", "-std=c++20", "-cubin", "-w", _PLACE, *include, *target, *fast, str(source), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line] or ["nvcc failed"]
            raise UnusableError(f"nvcc: {errors[0].split('error')[-1].strip(' :')[:200]}")
        return out.read_bytes()
