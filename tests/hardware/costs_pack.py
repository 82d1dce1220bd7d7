"""What a GPU needs to launch kernels of several releases, and what tlcheck counts of the same launches.

    python -m tests.hardware.costs_pack PACK.zip COSTS.json FOLDER

FOLDER has a folder for each release, with snapshots somewhere below. The pack has their CUDA, the releases' device
headers but CUTLASS's, how each kernel is launched, and samples of its inputs. A kernel that COSTS.json has is not
counted again. `tests.hardware.costs` measures.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tests.hardware import cuda_source
from tests.hardware.captured import map_of
from tests.hardware.cuda_source import UnusableError
from tlcheck.cost.measure import cost_by, counts_of
from tlcheck.errors import UsageError
from tlcheck.execute.compare.counting import Counted
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.reasons import Stopped
from tlcheck.execute.request import Request
from tlcheck.execute.schedule.launches import grid, kernels, threads_of
from tlcheck.execute.worlds import inputs
from tlcheck.files import put
from tlcheck.gate.nvcc import headers_of
from tlcheck.program.launch import LaunchRequest, requests
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Function, Snapshot
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.judging import with_inputs_of

BLOCKS = 8
FLOATS, INTEGERS = 1 << 16, 1 << 22  # elements of a tensor that travel; the device repeats them
WHOLE = 1 << 21  # elements of floats that travel where a kernel has shared atomics: addresses may depend on them
_NUMBERS = {"int": "c_int32", "int64_t": "c_int64", "uint": "c_uint32", "float": "c_float", "double": "c_double"}


class Entry:
    """One kernel of one release, on the inputs that it was counted on."""

    def __init__(self, name: str, release: str, snapshot: Snapshot) -> None:
        """Raises Stopped and UnusableError."""
        self.name, self.release, self.snapshot = name, release, snapshot
        request = with_inputs_of(Request(blocks=BLOCKS), snapshot)
        self.counts: Counted = counts_of(snapshot, request)
        seed = request.seeds[0]
        self.seed = seed
        self.numbers = inputs.scalars(snapshot, self.counts.source, dict(self.counts.sizes), seed)
        for name_of, array in (request.given or {}).get(seed, {}).items():
            if name_of in self.numbers:
                self.numbers[name_of] = array.item()

    def cost(self) -> dict[str, Any]:
        """What tlcheck says of it."""
        return asdict(cost_by(self.counts, self.snapshot))

    def write(self, archive: zipfile.ZipFile) -> dict[str, Any]:
        """Put text and samples into the archive, and return the rest."""
        text, lowered = self.snapshot.cuda, self.counts.lowered
        own, launched = cuda_source.kernels(text), kernels(lowered)
        asked = requests(lowered, lambda e: e.value if isinstance(e.value, int) else None)
        if not len(own) == len(launched) == len(asked):
            raise UnusableError(f"{len(own)} kernels in the CUDA, {len(launched)} in the snapshot")
        cuda = f"cuda/{hashlib.sha256(text.encode()).hexdigest()[:24]}"
        _add(archive, cuda, text.encode())
        tensors = {}
        for buffer in self.counts.source.buffers:
            name = str(buffer.data.value)
            if name in self.counts.tensors:
                tensors[name] = self._tensor(archive, self.counts.tensors[name])
        return {
            "id": f"{self.name} {self.release}",
            "case": self.name,
            "release": self.release,
            "cuda": cuda,
            "pass_configs": {key: str(value) for key, value in self.snapshot.pass_configs.items()},
            "tensors": tensors,
            "kernels": [self._kernel(*parts) for parts in zip(own, launched, asked, strict=True)],
        }

    def _tensor(self, archive: zipfile.ZipFile, pages: Pages) -> dict[str, Any]:
        octets = pages.size * pages.kind.bits // 8
        shared = any(site.form.startswith("atomic") for c in self.counts.counters for site in c.sites.known.values())
        most = INTEGERS if not pages.kind.is_float else WHOLE if shared else FLOATS
        if pages.kind.bits < 8:
            raise UnusableError(f"a tensor of {pages.kind.name}")
        numbers = np.arange(min(most, pages.size))
        found = pages.contents(self.seed, numbers)
        sample = b"" if found is None else np.ascontiguousarray(found.astype(pages.kind.memory)).tobytes()
        name = f"sample/{hashlib.sha256(sample).hexdigest()[:24]}"
        _add(archive, name, sample)
        return {"octets": octets, "sample": name}

    def _kernel(self, own: cuda_source.Kernel, launched: Function, asked: LaunchRequest) -> dict[str, Any]:
        return {
            "name": own.name,
            "grid": list(grid(launched, self.counts.sizes)),
            "threads": list(threads_of(launched)),
            "dynamic": asked.dynamic,
            "arguments": [self._argument(p) for p in own.parameters],
        }

    def _argument(self, parameter: cuda_source.Parameter) -> tuple[str, Any]:
        if parameter.form == "map":
            made = asdict(map_of(parameter.name, self.counts.lowered, self.numbers))
            return "map", made
        if parameter.form == "tensor" and parameter.name in self.counts.tensors:
            return "tensor", parameter.name
        if parameter.form in _NUMBERS and parameter.name in self.numbers:
            return _NUMBERS[parameter.form], self.numbers[parameter.name]
        raise UnusableError(f"parameter {parameter.name} of the CUDA is none of the kernel as written")


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    if name not in archive.NameToInfo:
        archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_LZMA)


def _snapshots(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """What each snapshot's case is called here, its release, its file."""
    for release in sorted(path for path in folder.iterdir() if path.is_dir()):
        for path in sorted(release.rglob("*.snapshot.json")):
            stem = path.name.removesuffix(".snapshot.json").removesuffix(f"-{release.name}")
            yield "/".join([*path.relative_to(release).parent.parts, stem]), release.name, path


def pack(out: Path, costs: Path, folder: Path) -> None:
    """Write the pack and the counts, or add to them."""
    known: dict[str, Any] = json.loads(costs.read_text(encoding="utf-8")) if costs.exists() else {}
    with zipfile.ZipFile(out, "a", zipfile.ZIP_LZMA) as archive:
        for name, release, path in _snapshots(folder):
            if f"{name} {release}" in known:
                continue
            try:
                entry = Entry(name, release, codec.loads(path.read_text(encoding="utf-8")))
                made = entry.write(archive)
                known[made["id"]] = entry.cost()
            except (Stopped, UnusableError, UsageError) as problem:
                print(f"{name} {release}: {problem}", flush=True)
                continue
            _add(archive, f"entry/{made['id']}", json.dumps(made).encode())
            if not any(one.startswith(f"headers/{release}/") for one in archive.NameToInfo):
                _headers(archive, release)
            put(costs, json.dumps(known))
    print(f"{len(known)} kernels")


def _headers(archive: zipfile.ZipFile, release: str) -> None:
    toolchain = resolve(release)
    for root in headers_of(toolchain):
        for file in sorted((root / "tl_templates").rglob("*")) if (root / "tl_templates").is_dir() else ():
            if file.is_file():
                _add(archive, f"headers/{release}/{file.relative_to(root)}", file.read_bytes())


if __name__ == "__main__":
    pack(*map(Path, sys.argv[1:]))
