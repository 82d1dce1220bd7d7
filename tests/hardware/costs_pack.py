"""Define what a GPU needs to launch kernels of several releases, and what tlcheck counts of the same launches.

    python -m tests.hardware.costs_pack pack PACK.zip FOLDER
    python -m tests.hardware.costs_pack count COSTS.json FOLDER    goes on where it stopped

FOLDER has a folder for each release, with snapshots somewhere below. The pack has their CUDA, the releases' device
headers but CUTLASS's, how each kernel is launched, and samples of its inputs. `tests.hardware.costs` measures.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.hardware import cuda_source
from tests.hardware.captured import map_of
from tests.hardware.cuda_source import UnusableError
from tlcheck.cost.measure import cost_of
from tlcheck.errors import UsageError
from tlcheck.execute.memory.state import Tensor
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.request import LOWERED, SOURCE, Request
from tlcheck.execute.schedule.launches import grid, kernels, threads_of
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds.arguments import Arguments
from tlcheck.execute.worlds.budget import Budget
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.execute.worlds.inputs import USUAL
from tlcheck.files import put
from tlcheck.gate.nvcc import headers_of
from tlcheck.program.launch import LaunchRequest, requests
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Function, Snapshot
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.judging import with_inputs_of

REQUEST = Request(blocks=8, budget=Budget(seconds=60))
FLOATS, INTEGERS = 1 << 16, 1 << 22  # elements of a tensor that travel; the device repeats them
WHOLE = 1 << 21  # elements of floats that travel where a kernel has shared atomics: addresses may depend on them
_NUMBERS = {"int": "c_int32", "int64_t": "c_int64", "uint": "c_uint32", "float": "c_float", "double": "c_double"}


class Entry:
    """One kernel of one release, on the inputs that it is counted on."""

    def __init__(self, name: str, release: str, snapshot: Snapshot) -> None:
        """Raises Stopped and UnusableError."""
        self.name, self.release, self.snapshot = name, release, snapshot
        self.source, self.lowered = (snapshot.checkpoints[level] for level in (SOURCE, LOWERED))
        request = with_inputs_of(REQUEST, snapshot)
        self.seed = request.seeds[0]
        given = request.given or {}
        arguments = Arguments(self.source, given, request.poisoned, USUAL, request.drawn)
        draw = arguments.draws[0]
        if any(not kind_of(buffer.dtype).is_float for buffer in self.source.buffers) and not given:
            draw = levels_of(snapshot, replace(request, blocks=1)).source_run[1]  # one that keeps indices in bounds
        self.sizes, self.numbers = arguments.sizes, arguments.numbers(self.seed)
        self.tensors = arguments.tensors(draw)

    def write(self, archive: zipfile.ZipFile) -> dict[str, Any]:
        """Put text and samples into the archive, and return the rest."""
        text = self.snapshot.cuda
        own, launched = cuda_source.kernels(text), kernels(self.lowered)
        asked = requests(self.lowered, lambda e: e.value if isinstance(e.value, int) else None)
        if not len(own) == len(launched) == len(asked):
            raise UnusableError(f"{len(own)} kernels in the CUDA, {len(launched)} in the snapshot")
        cuda = f"cuda/{hashlib.sha256(text.encode()).hexdigest()[:24]}"
        _add(archive, cuda, text.encode())
        return {
            "id": f"{self.name} {self.release}",
            "case": self.name,
            "release": self.release,
            "cuda": cuda,
            "pass_configs": {key: str(value) for key, value in self.snapshot.pass_configs.items()},
            "kernels": [self._kernel(*parts) for parts in zip(own, launched, asked, strict=True)],
            "tensors": {name: self._sample(archive, tensor) for name, tensor in self.tensors.items()},
        }

    def _sample(self, archive: zipfile.ZipFile, tensor: Tensor) -> dict[str, Any]:
        if tensor.kind.bits < 8:
            raise UnusableError(f"a tensor of {tensor.kind.name}")
        decide = any("atomic" in line and "shmem" in line for line in self.snapshot.cuda.splitlines())
        most = INTEGERS if not tensor.kind.is_float else WHOLE if decide else FLOATS
        found = tensor.contents(self.seed, np.arange(min(most, tensor.size)))
        sample = b"" if found is None else np.ascontiguousarray(found.astype(tensor.kind.memory)).tobytes()
        name = f"sample/{hashlib.sha256(sample).hexdigest()[:24]}"
        _add(archive, name, sample)
        return {"octets": tensor.size * tensor.kind.bits // 8, "sample": name}

    def _kernel(self, own: cuda_source.Kernel, launched: Function, asked: LaunchRequest) -> dict[str, Any]:
        return {
            "name": own.name,
            "grid": list(grid(launched, self.sizes)),
            "threads": list(threads_of(launched)),
            "dynamic": asked.dynamic,
            "arguments": [self._argument(p) for p in own.parameters],
        }

    def _argument(self, parameter: cuda_source.Parameter) -> tuple[str, Any]:
        if parameter.form == "map":
            made = asdict(map_of(parameter.name, self.lowered, self.numbers))
            return "map", made
        if parameter.form == "tensor" and parameter.name in self.tensors:
            return "tensor", parameter.name
        if parameter.form in _NUMBERS and parameter.name in self.numbers:
            return _NUMBERS[parameter.form], self.numbers[parameter.name]
        raise UnusableError(f"parameter {parameter.name} of the CUDA is none of the kernel as written")


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    if name not in archive.NameToInfo:
        archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def snapshots(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield what each snapshot's case is called here, its release, its file."""
    for release in sorted(path for path in folder.iterdir() if path.is_dir()):
        for path in sorted(release.rglob("*.snapshot.json")):
            stem = path.name.removesuffix(".snapshot.json").removesuffix(f"-{release.name}")
            yield "/".join([*path.relative_to(release).parent.parts, stem]), release.name, path


def pack(out: Path, folder: Path) -> None:
    """Write the pack."""
    found = 0
    with zipfile.ZipFile(out, "w") as archive:
        for name, release, path in snapshots(folder):
            try:
                made = Entry(name, release, codec.loads(path.read_text(encoding="utf-8"))).write(archive)
            except (Stopped, UnusableError, UsageError) as problem:
                print(f"{name} {release}: {problem}", flush=True)
                continue
            _add(archive, f"entry/{made['id']}", json.dumps(made).encode())
            if not any(one.startswith(f"headers/{release}/") for one in archive.NameToInfo):
                _headers(archive, release)
            found += 1
    print(f"{found} kernels")


def count(out: Path, folder: Path) -> None:
    """Write what tlcheck counts of each kernel that the file has not."""
    known: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    for name, release, path in snapshots(folder):
        if f"{name} {release}" in known:
            continue
        snapshot = codec.loads(path.read_text(encoding="utf-8"))
        try:
            known[f"{name} {release}"] = asdict(cost_of(snapshot, with_inputs_of(REQUEST, snapshot)))
        except (Stopped, UsageError) as problem:
            print(f"{name} {release}: {problem}", flush=True)
        put(out, json.dumps(known))
    print(f"{len(known)} kernels")


def _headers(archive: zipfile.ZipFile, release: str) -> None:
    toolchain = resolve(release)
    for root in headers_of(toolchain):
        for file in sorted((root / "tl_templates").rglob("*")) if (root / "tl_templates").is_dir() else ():
            if file.is_file():
                _add(archive, f"headers/{release}/{file.relative_to(root)}", file.read_bytes())


if __name__ == "__main__":
    {"pack": pack, "count": count}[sys.argv[1]](*map(Path, sys.argv[2:]))
