"""Kernels of several releases on a GPU: what Nsight Compute counts of each, and how long each takes.

    python -m tests.hardware.costs measure PACK.zip CUTLASS OUT.json [SECONDS]

where nvcc, ncu, a GPU and NumPy are. PACK.zip is of `tests.hardware.costs_pack`. CUTLASS is its include folder, such as
that of an unpacked TileLang.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.cost_truth import METRICS, launches
from tests.hardware import cuda_source
from tests.hardware.cuda_source import UnusableError
from tests.hardware.driver import Device, TensorMap
from tlcheck.files import put

ROUNDS, BURST = 10, 3  # of launches, in turns of the releases
TOGETHER = 8  # kernels timed by one process
CHUNK = 12  # kernels under one `ncu`: one that faults takes the rest of its chunk with it
_SECONDS = 340.0
_NCU_SECONDS = 90


class Kernel:
    """A kernel of one release, ready to be launched."""

    def __init__(self, entry: Mapping[str, Any], cubin: bytes, device: Device, archive: zipfile.ZipFile) -> None:
        """Raises DeviceError."""
        self._device, self._archive, self._entry = device, archive, entry
        self._whole: dict[str, np.ndarray[Any, np.dtype[np.uint8]]] = {}
        self._fill()
        module = device.module(cubin)
        self.launches = [
            device.prepared(
                module, one["name"], tuple(one["grid"]), tuple(one["threads"]), self._arguments(one), one["dynamic"]
            )
            for one in entry["kernels"]
        ]

    def _fill(self) -> None:
        for name, tensor in self._entry["tensors"].items():
            sample, octets = np.frombuffer(self._archive.read(tensor["sample"]), np.uint8), tensor["octets"]
            whole = np.resize(sample, octets) if len(sample) else np.zeros(octets, np.uint8)
            self._device.put(f"{name} {octets}", whole)
            if len(sample) == octets:
                self._whole[f"{name} {octets}"] = whole

    def refill(self) -> None:
        """Write those tensors anew that travelled whole: what a kernel counts in them would otherwise go on."""
        for name, whole in self._whole.items():
            self._device.put(name, whole)

    def _arguments(self, one: Mapping[str, Any]) -> Iterator[Any]:
        tensors = {name: f"{name} {tensor['octets']}" for name, tensor in self._entry["tensors"].items()}
        for form, value in one["arguments"]:
            if form == "map":
                fields = {key: _tuples(field) for key, field in value.items()}
                yield TensorMap(**{**fields, "tensor": tensors[value["tensor"]]})
            else:
                yield tensors[value] if form == "tensor" else getattr(ctypes, form)(value)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def measure(archive: Path, cutlass: Path, out: Path, seconds: float) -> None:
    """Compile, count and time everything, as far as the time goes."""
    until = time.monotonic() + seconds
    with zipfile.ZipFile(archive) as files, tempfile.TemporaryDirectory() as folder:
        entries = entries_of(files)
        found: dict[str, Any] = {
            "about": {**Device().about, "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"), "pack": archive.name},
            "problems": {},
            "counters": {},
            "milliseconds": {},
        }
        cubins, headers = Path(folder), _headers(files, Path(folder), cutlass)
        began = time.monotonic()
        _compile(files, entries, cubins, headers, found["problems"])
        print(f"compiled {len(list(cubins.glob('*.cubin')))} in {time.monotonic() - began:.0f} s", flush=True)
        _time(archive, entries, cubins, found, until - seconds / 3)
        put(out, json.dumps(found, indent=1))
        print(f"timed {len(found['milliseconds'])} after {time.monotonic() - began:.0f} s", flush=True)
        _count(archive, entries, cubins, found, until)
        put(out, json.dumps(found, indent=1))
        print(f"counted {len(found['counters'])} after {time.monotonic() - began:.0f} s", flush=True)


def entries_of(files: zipfile.ZipFile) -> list[dict[str, Any]]:
    """The kernels of a pack."""
    return [json.loads(files.read(name)) for name in files.namelist() if name.startswith("entry/")]


def _headers(files: zipfile.ZipFile, folder: Path, cutlass: Path) -> Path:
    """A folder for each release, with tl_templates/ and cutlass/."""
    for name in files.namelist():
        if name.startswith("headers/"):
            files.extract(name, folder)
    for release in (folder / "headers").iterdir():
        (release / "cutlass").symlink_to(cutlass.resolve())
    return folder / "headers"


def _compile(
    files: zipfile.ZipFile, entries: Sequence[Mapping[str, Any]], cubins: Path, headers: Path, problems: dict[str, str]
) -> None:
    texts = {entry["id"]: files.read(entry["cuda"]).decode() for entry in entries}

    def one(entry: Mapping[str, Any]) -> tuple[str, str]:
        try:
            cubin = cuda_source.compiled(
                texts[entry["id"]], headers / entry["release"], list(entry["pass_configs"].items())
            )
        except UnusableError as problem:
            return entry["id"], str(problem)
        _cubin(cubins, entry).write_bytes(cubin)
        return entry["id"], ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems.update({name: problem for name, problem in pool.map(one, entries) if problem})


def _cubin(cubins: Path, entry: Mapping[str, Any]) -> Path:
    return cubins / f"{entry['cuda'].replace('/', '-')}-{entry['release']}.cubin"


def _time(
    archive: Path, entries: Sequence[Mapping[str, Any]], cubins: Path, found: dict[str, Any], until: float
) -> None:
    """Milliseconds of launches: several kernels in one process, and again by itself what came to no end there."""
    groups: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        if _cubin(cubins, entry).exists():
            groups[entry["case"]].append(entry["id"])
    cases = sorted(groups, key=lambda case: -len(groups[case]))  # those of several releases first
    for some in (*(cases[i : i + TOGETHER] for i in range(0, len(cases), TOGETHER)), *([case] for case in cases)):
        left = [case for case in some if groups[case][0] not in found["milliseconds"]]
        if left and time.monotonic() < until:
            names = [name for case in left for name in groups[case]]
            problem = _in_process(["time", str(archive), str(cubins), *names], 20.0 * len(left), found["milliseconds"])
            if len(some) == 1 and problem:
                found["problems"].update(dict.fromkeys(names, problem))


def _in_process(arguments: Sequence[str], seconds: float, into: dict[str, list[float]]) -> str:
    """Run this module with other arguments; every line that it prints goes `into`. What went wrong, or nothing."""
    command = [sys.executable, "-m", "tests.hardware.costs", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        output, problem = done.stdout, (done.stderr.strip().splitlines() or [""])[-1][:300]
    except subprocess.TimeoutExpired as expired:
        output, problem = (expired.stdout or b"").decode(), f"more than {seconds} s"
    for line in output.splitlines():
        into.update(json.loads(line))
    return problem


def _opened(archive: Path, names: Iterable[str]) -> tuple[zipfile.ZipFile, list[dict[str, Any]]]:
    files = zipfile.ZipFile(archive)
    known = {entry["id"]: entry for entry in entries_of(files)}
    return files, [known[name] for name in names]


def time_kernels(archive: Path, cubins: Path, names: Sequence[str]) -> Iterator[dict[str, list[float]]]:
    """Milliseconds of launches after a flush of the L2 cache, kernel by kernel: a median for each round, with the
    releases of a kernel in turns."""
    files, entries = _opened(archive, names)
    device = Device()
    for _, group in groupby(entries, key=lambda entry: entry["case"]):
        kernels = {entry["id"]: Kernel(entry, _cubin(cubins, entry).read_bytes(), device, files) for entry in group}
        found: dict[str, list[float]] = {name: [] for name in kernels}
        for number in range(ROUNDS + 1):
            for name, kernel in kernels.items():
                kernel.refill()
                took = [device.milliseconds(kernel.launches) for _ in range(BURST)]
                if number:  # the first warms up
                    found[name].append(round(median(took), 6))
        yield found
        device.forget()


def _count(
    archive: Path, entries: Sequence[Mapping[str, Any]], cubins: Path, found: dict[str, Any], until: float
) -> None:
    """Have ncu count each kernel, the newest release first."""
    ready = [e for e in entries if _cubin(cubins, e).exists() and e["id"] in found["milliseconds"]]
    ready.sort(key=lambda e: [int(part) for part in e["release"].split(".") if part.isdecimal()], reverse=True)
    for start in range(0, len(ready), CHUNK):
        if time.monotonic() > until:
            break
        names = [entry["id"] for entry in ready[start : start + CHUNK]]
        counters, problem = counted_by_ncu(archive, cubins, names)
        found["counters"].update(counters)
        found["problems"].update({name: f"ncu: {problem}" for name in names if name not in counters})


def counted_by_ncu(archive: Path, cubins: Path, names: Sequence[str]) -> tuple[Mapping[str, Mapping[str, float]], str]:
    """The counters of kernels that one process launches once each; what went wrong, if something did."""
    with tempfile.TemporaryDirectory() as folder:
        said, table = Path(folder, "names"), Path(folder, "ncu.csv")
        command = ["ncu", "--csv", "--page", "raw", "--clock-control", "none", "--metrics", ",".join(METRICS)]
        command += [
            sys.executable,
            "-m",
            "tests.hardware.costs",
            "launch",
            str(archive),
            str(cubins),
            str(said),
            *names,
        ]
        problem = ""
        with table.open("w", encoding="utf-8") as file:
            try:
                done = subprocess.run(
                    command, stdout=file, stderr=subprocess.PIPE, text=True, timeout=_NCU_SECONDS, check=False
                )
                problem = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            except subprocess.TimeoutExpired:
                problem = f"more than {_NCU_SECONDS} s"
        launched = said.read_text(encoding="utf-8").splitlines() if said.exists() else []
        try:
            return launches(table, launched), problem
        except (StopIteration, ValueError, KeyError) as error:
            text = " / ".join(table.read_text(encoding="utf-8").splitlines()[-3:])
            return {}, f"{error or 'no table'}; {problem}; {text}"[:400]


def launch(archive: Path, cubins: Path, said: Path, names: Sequence[str]) -> None:
    """Launch kernels once each; said: a line with its name for each launch."""
    files, entries = _opened(archive, names)
    device = Device()
    for entry in entries:
        kernel = Kernel(entry, _cubin(cubins, entry).read_bytes(), device, files)
        for one in kernel.launches:
            with said.open("a", encoding="utf-8") as file:
                file.write(f"{entry['id']}\n")
            device.start(one)
            device.wait()
        device.forget()


def main(arguments: list[str]) -> None:
    """Do what the module's docstring says."""
    what, *rest = arguments
    if what == "measure":
        measure(Path(rest[0]), Path(rest[1]), Path(rest[2]), float(rest[3]) if len(rest) > 3 else _SECONDS)
    elif what == "time":
        for found in time_kernels(Path(rest[0]), Path(rest[1]), rest[2:]):
            print(json.dumps(found), flush=True)
    else:
        launch(Path(rest[0]), Path(rest[1]), Path(rest[2]), rest[3:])


if __name__ == "__main__":
    main(sys.argv[1:])
