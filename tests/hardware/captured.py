"""Captured kernels on a GPU against their execution as lowered, element by element.

    python -m tests.hardware.captured pack PACK.zip SNAPSHOT...     here: what a device needs of each, once
    python -m tests.hardware.captured run PACK.zip HEADERS OUT.json    there: needs nvcc, a GPU, NumPy and ml_dtypes
    python -m tests.hardware.captured confirm PACK.zip HEADERS OUT.json    there: against the source

HEADERS is a folder with TileLang's tl_templates/ and CUTLASS's include folder as cutlass/. The GPU runs the CUDA of
the snapshot in the blocks that the CPU executes, on the same random inputs; what nothing may write has to stay as it
was. A kernel that OUT.json has is not run again.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from os import cpu_count
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tests.hardware import cuda_source
from tests.hardware.cuda_source import UnusableError
from tests.hardware.driver import Device, DeviceError, TensorMap
from tests.hardware.snapshots import KEPT
from tlcheck import reasons
from tlcheck.execute.compile import registry
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import Array, Kind, bits_of, from_bits, is_poison, kind_of
from tlcheck.execute.schedule.launches import grid, kernels, threads_of
from tlcheck.execute.stops import Illegal, Stopped
from tlcheck.execute.worlds import blocks, inputs
from tlcheck.execute.worlds.budget import Budget
from tlcheck.execute.worlds.effort import worlds_that_fit
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.files import put
from tlcheck.program.release import Release
from tlcheck.program.roles import roles
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Alloc, Buffer, Expr, Function, Snapshot
from tlcheck.snapshot.walk import expressions, postorder, statements

SEEDS = (0, 1)
UNSTABLE = 8.0  # rounding moves an element by as much as it is: of such a tensor a device can say nothing
UNTOUCHED = 0xFF  # each byte of what no execution read or wrote: NaN, or -1
MOST_BYTES = 1 << 34
SECONDS = 240  # for one kernel, of wall time
ROUNDINGS = 16  # of the coarsest type, that an element may be off
SPREAD = 8  # times what the kernel's own rounding does to a tensor, where that is more
# Steps from 1 to the next number within tensor cores: TF32 has 10 bits behind the point (PTX, "Alternate Floating-Point
# Data Formats"); sums of fp8 products keep about 14 bits on Hopper (DeepSeek-V3's report, section 3.3.2).
WITHIN = {"tf32": 2.0**-10, "e4m3": 2.0**-13, "e5m2": 2.0**-13}

Octets = npt.NDArray[np.uint8]


class GPU(Protocol):
    """A record of what a kernel is run with: `Device`."""

    def module(self, cubin: bytes) -> Any: ...
    def put(self, name: str, octets: Octets) -> None: ...
    def get(self, name: str) -> Octets: ...
    def launch(self, module: Any, kernel: str, grid: Any, threads: Any, arguments: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Result:
    """A record of what became of one kernel.

    status: equal (all elements), close (all within `bound`), rounds (no further off than rounding moves such sums),
    differs, or why it was not run. elements: compared; equal:
    of these; beyond: of these, further off than allowed; stray: changed where nothing was written. error: the largest,
    relative to the element and the tensor's typical one. first: an element that is furthest off.
    """

    status: str
    elements: int = 0
    equal: int = 0
    beyond: int = 0
    stray: int = 0
    error: float = 0.0
    bound: float = 0.0
    first: str = ""
    blocks: int = 0
    of: int = 0
    seconds: float = 0.0


class Execution:
    """A lowered kernel, or its source, in some blocks, on the CPU, in its own types."""

    def __init__(self, snapshot: Snapshot, is_source: bool = False, exact: bool = False) -> None:
        """Run it. exact: in float64. Raises Stopped."""
        self.snapshot, self.is_source, self.exact = snapshot, is_source, exact
        self.source, self.lowered = (snapshot.checkpoints[name] for name in KEPT)
        if any(word.startswith("rng_") for word in _words(self.lowered)):
            raise Stopped(
                "draws random numbers, which are cuRAND's on the device and others here", reasons.NOT_MODELLED
            )
        sizes = inputs.sizes(self.source, {})
        if sizes is None:
            raise Stopped("no sizes found that keep what the kernel assumes", reasons.SIZES)
        self.sizes = sizes
        self.scalars = inputs.scalars(self.source, sizes, SEEDS[0])
        self.blocks = self._chosen()
        self.invocation = self._run()

    def _chosen(self) -> list[blocks.Block]:
        functions, budget = (self.source, self.lowered), Budget()
        found = blocks.chosen(functions, self.sizes, 4)
        threads = threads_of(self.lowered)
        fit = worlds_that_fit(self.lowered, int(np.prod(threads)), False, budget, len(found) * len(SEEDS))
        if fit < len(SEEDS):
            raise Stopped("more memory than allowed", reasons.BYTES)
        return found[: fit // len(SEEDS)]

    def _run(self) -> Invocation:
        problem: Stopped | None = None
        for below in (8, 4, 2, 1):
            worlds = [World(seed, block) for seed in SEEDS for block in self.blocks]
            tensors = {str(b.data.value): self._tensor(b, inputs.Draw(below)) for b in self.source.buffers}
            options = Options(
                source=self.is_source,
                exact=self.exact,
                release=Release.among(self.snapshot.toolchain),
                printed=not self.is_source,
            )
            function = self.source if self.is_source else self.lowered
            invocation = Invocation(function, [worlds], tensors, self.scalars, options)
            try:
                invocation.run()
                return invocation
            except Illegal as illegal:
                problem = illegal
        raise Stopped(f"as lowered: {problem}", reasons.LOWERED_STOPS)

    def _tensor(self, buffer: Buffer, draw: inputs.Draw) -> Tensor:
        name, kind, size = str(buffer.data.value), kind_of(buffer.dtype), inputs.span(buffer, self.sizes)
        if size * kind.bits // 8 > MOST_BYTES:
            raise Stopped("more memory than allowed", reasons.BYTES)
        if name in [str(b.data.value) for b in roles(self.source).unread]:
            return Tensor(kind, size, lambda seed, numbers: None)
        return Tensor(kind, size, inputs.contents(name, kind, draw))

    def before(self, name: str, seed: int) -> Octets:
        """The bytes of a tensor before the kernel runs: where it is touched, and what is not poison there."""
        pages = self.invocation.left[name]
        octets = np.full(pages.size * pages.kind.bits // 8, UNTOUCHED, np.uint8)
        elements = octets.view(pages.kind.memory)
        touched = pages.touched(seed)
        found = pages.contents(seed, touched)
        if found is not None:
            elements[touched] = found.astype(pages.kind.memory)
        return octets


def compare(execution: Execution, name: str, seed: int, octets: Octets) -> Result:
    """Hold one tensor of the device against the execution's."""
    pages = execution.invocation.left[name]
    indices, expected = pages.outcome(seed)
    before, after = execution.before(name, seed), octets.view(pages.kind.memory)
    found = after[indices].astype(pages.kind.array)
    elsewhere = np.ones(pages.size, bool)
    elsewhere[indices] = False
    width = pages.kind.bits // 8
    changed = (before.reshape(-1, width) != octets.reshape(-1, width)).any(axis=1)
    known = ~is_poison(expected) if pages.kind.is_float else np.ones(len(expected), bool)
    indices, expected, found = indices[known], expected[known], found[known]
    stray = int((changed & elsewhere).sum())
    result = _counted(f"{name} of seed {seed}", indices, expected, found, stray, _bound(execution, pages.kind))
    if result.beyond and not stray and pages.kind.is_float and not execution.exact:
        loss = SPREAD * _lost(execution, name, seed, indices, expected)
        return replace(result, status="rounds", bound=loss) if result.error <= loss or loss > UNSTABLE else result
    return result


def _lost(execution: Execution, name: str, seed: int, indices: Array, expected: Array) -> float:
    """Return how far rounding moves the elements of a tensor: by the same execution in float64."""
    exact = Execution(execution.snapshot, execution.is_source, exact=True).invocation.left[name]
    elements, values = exact.outcome(seed)
    return _counted(name, indices, values[np.searchsorted(elements, indices)], expected, 0, 0.0).error


def _counted(name: str, indices: Array, expected: Array, found: Array, stray: int, bound: float) -> Result:
    with np.errstate(all="ignore"):
        equal = (expected == found) | ((expected != expected) & (found != found))
        wide, got = expected.astype(np.float64), found.astype(np.float64)
        finite = np.abs(wide[np.isfinite(wide)])
        typical = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
        off = np.where(equal, 0.0, np.abs(got - wide) / (np.abs(wide) + typical))
        off = np.where(np.isnan(off), np.inf, off)
    beyond = int((off > bound).sum())
    worst = int(off.argmax()) if off.size and off.max() > 0 else None
    said = "" if worst is None else f"element {indices[worst]} of {name}: {found[worst]}, executed {expected[worst]}"
    error = 0.0 if worst is None else float(off[worst])
    status = "differs" if beyond or stray else "equal" if equal.all() else "close"
    return Result(status, len(expected), int(equal.sum()), beyond, stray, error, bound, said)


def _bound(execution: Execution, kind: Kind) -> float:
    """Return how far a floating element may be off, for the coarsest type that the kernel computes in; integers not at
    all.
    """
    if not kind.is_float:
        return 0.0
    declared = [s.buffer for s in statements(execution.lowered.body) if isinstance(s, Alloc)]
    kinds = {kind_of(b.dtype) for b in (*execution.source.buffers, *declared)} | {kind}
    narrow = [k for k in kinds if k.is_float and k.bits > 8] or [kind]
    return ROUNDINGS * max(*map(_step, narrow), *(WITHIN.get(word, 0.0) for word in _words(execution.lowered)))


def _words(function: Function) -> set[str]:
    """The names of a function's calls and types, among all that its expressions hold."""
    return {str(e.value) for stmt in statements(function.body) for e in postorder(expressions(stmt))}


def _step(kind: Kind) -> float:
    """From 1 to the next number."""
    one = bits_of(np.array([1.0]), kind)
    return float(from_bits(one + one.dtype.type(1), kind)[0]) - 1.0


def joined(results: list[Result]) -> Result:
    """Return what is to be said of a kernel, of what was found of each tensor and seed."""
    order = ["differs", "rounds", "close", "equal"]
    worst = max(results, key=lambda r: r.error)
    return replace(
        worst,
        status=min((r.status for r in results), key=order.index),
        elements=sum(r.elements for r in results),
        equal=sum(r.equal for r in results),
        beyond=sum(r.beyond for r in results),
        stray=sum(r.stray for r in results),
        first=max((r for r in results if r.first), key=lambda r: r.error, default=worst).first,
    )


def on_device(execution: Execution, gpu: GPU, headers: Path) -> Result:
    """Run the snapshot's CUDA in the same blocks on the same inputs. Raises UnusableError and DeviceError."""
    snapshot = execution.snapshot
    own, launched = cuda_source.kernels(snapshot.cuda), kernels(execution.lowered)
    if len(own) != len(launched):
        raise UnusableError(f"{len(own)} kernels in the CUDA, {len(launched)} in the snapshot")
    text = cuda_source.only_blocks(snapshot.cuda, own[-1], execution.blocks)
    module = gpu.module(cuda_source.compiled(text, headers, tuple(snapshot.pass_configs.items())))
    there = execution.invocation.left  # without parameters that the kernel as lowered does not have
    names = [str(b.data.value) for b in execution.source.buffers if str(b.data.value) in there]
    results = []
    for seed in SEEDS:
        for name in names:
            gpu.put(name, execution.before(name, seed))
        for kernel, function in zip(own, launched, strict=True):
            arguments = [_argument(p, execution, names) for p in kernel.parameters]
            gpu.launch(module, kernel.name, grid(function, execution.sizes), threads_of(function), arguments)
        results += [compare(execution, name, seed, gpu.get(name)) for name in names]
    return replace(joined(results), blocks=len(execution.blocks), of=int(np.prod(grid(launched[-1], execution.sizes))))


_NUMBERS: dict[str, Any] = {
    "int": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint": ctypes.c_uint32,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
}


def _argument(parameter: cuda_source.Parameter, execution: Execution, names: list[str]) -> Any:
    if parameter.form == "map":
        return map_of(parameter.name, execution.lowered, execution.scalars)
    if parameter.form == "tensor" and parameter.name in names:
        return parameter.name
    if parameter.form in _NUMBERS and parameter.name in execution.scalars:
        return _NUMBERS[parameter.form](execution.scalars[parameter.name])
    raise UnusableError(f"parameter {parameter.name} of the CUDA is none of the kernel as written")


def map_of(name: str, lowered: Function, scalars: Mapping[str, int | float]) -> TensorMap:
    """The tensor map that a kernel's parameter is. Raises UnusableError."""
    made = [call for variable, call in lowered.descriptors if str(variable.value) == name]
    if len(made) != 1:
        raise UnusableError(f"{len(made)} tensor maps are named {name}")
    numbers = [int(evaluated(e, scalars)) for e in (*made[0].args[:2], *made[0].args[3:])]
    dtype, rank, *rest = numbers
    first, second, third, fourth = (tuple(rest[i * rank : (i + 1) * rank]) for i in range(4))
    tensor, hints = _tensor_of(made[0].args[2]), tuple(rest[-4:])
    if made[0].value == "create_tma_descriptor":
        return TensorMap(dtype, tensor, first, second, fourth, hints, box=third)
    around = rest[3 * rank : -4]
    lower, upper = (tuple(around[i * (rank - 2) : (i + 1) * (rank - 2)]) for i in range(2))
    pixels, channels = around[2 * (rank - 2) :]
    return TensorMap(dtype, tensor, first, second, third, hints, window=(lower, upper, channels, pixels))


def _tensor_of(e: Expr) -> str:
    if e.op == "var":
        return str(e.value)
    raise UnusableError("tensor map of a part of a tensor")


# ---- the pack


def pack(out: Path, paths: list[Path]) -> None:
    """Keep what a device needs of kernels, each once."""
    seen: set[str] = set()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        for path in paths:
            whole = codec.loads(path.read_text())
            digest = hashlib.sha256(whole.cuda.encode()).hexdigest()
            if digest in seen or not whole.cuda or not all(name in whole.checkpoints for name in KEPT):
                continue
            seen.add(digest)
            checkpoints = {name: whole.checkpoints[name] for name in KEPT}
            passes = {name: whole.passes[name] for name in KEPT}
            small = replace(whole, file=Path(whole.file).name, checkpoints=checkpoints, passes=passes)
            entry = zipfile.ZipInfo(f"{path.parent.name}-{path.name}")
            archive.writestr(entry, codec.dumps(small), zipfile.ZIP_LZMA)


def one(archive: Path, name: str, headers: Path, is_source: bool) -> Result:
    """One kernel of a pack on the CPU and on the GPU."""
    registry.load()
    with zipfile.ZipFile(archive) as files:
        snapshot = codec.loads(files.read(name).decode())
    began = time.monotonic()
    try:
        found = on_device(Execution(snapshot, is_source), Device(), headers)
    except (Stopped, UnusableError, DeviceError) as problem:
        found = Result(f"{type(problem).__name__}: {problem}")
    return replace(found, seconds=round(time.monotonic() - began, 1))


def _in_process(archive: Path, name: str, headers: Path, what: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.hardware.captured", "one", str(archive), name, str(headers), what]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"status": f"more than {SECONDS} s"}
    if done.returncode:
        return {"status": f"died: {(done.stderr.strip().splitlines() or ['?'])[-1][:300]}"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run(archive: Path, headers: Path, out: Path, what: str) -> None:
    """Run every kernel of a pack that OUT has not, as many at a time as there are processors."""
    known: dict[str, Any] = json.loads(out.read_text())["kernels"] if out.exists() else {}
    with zipfile.ZipFile(archive) as files:
        todo = [name for name in files.namelist() if name not in known]
    about = {**Device().about, "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"), "pack": archive.name}
    with ThreadPoolExecutor(cpu_count()) as pool:
        answers = pool.map(lambda name: (name, _in_process(archive, name, headers, what)), todo)
        for name, answer in answers:
            known[name] = answer
            print(f"{name}: {answer['status']}", flush=True)
            put(out, json.dumps({"about": about, "kernels": dict(sorted(known.items()))}, indent=1) + "\n")


def main(arguments: list[str]) -> None:
    """Do what the module's docstring says."""
    what, *rest = arguments
    if what == "pack":
        pack(Path(rest[0]), sorted(map(Path, rest[1:])))
    elif what == "one":
        print(json.dumps(asdict(one(Path(rest[0]), rest[1], Path(rest[2]), rest[3] == "confirm"))))
    else:
        run(Path(rest[0]), Path(rest[1]), Path(rest[2]), what)


if __name__ == "__main__":
    main(sys.argv[1:])
