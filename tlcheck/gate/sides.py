"""Both sides of a comparison: every case for every target lowered with two toolchains, checked, and read for facts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from tlcheck.cache.code import code_of
from tlcheck.cache.store import Cache, key_of
from tlcheck.facts import Facts
from tlcheck.gate.nvcc import CompiledCuda, Compiler, compiles_for, hash_of_headers, headers_of
from tlcheck.gate.outcome import LoweredPair, LoweredSide
from tlcheck.gate.pairing import FoundSides, Key, paired
from tlcheck.lower.client import processors
from tlcheck.lower.runs import Lowered
from tlcheck.lower.selection import Selection
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.checking import Checks
from tlcheck.verdicts.results import Result, internal_failure

_FAST_MATH = "tl.enable_fast_math"


@dataclass(frozen=True)
class Read:
    """A record of what is read from a snapshot for the gate. file, line: where the kernel begins."""

    file: str
    line: int
    facts: Facts


@dataclass(frozen=True)
class Bench:
    """The tools that measure a lowered kernel. compiler: None where nothing is to be compiled.

    headers, content: folders of TileLang's device headers, and the hash of what is in them.
    """

    cache: Cache
    compiler: Compiler | None = None
    headers: tuple[Path, ...] = ()
    content: str = ""

    def side(self, lowered: Lowered, result: Result) -> LoweredSide:
        """Read the facts of a lowered kernel that was judged."""
        if lowered.snapshot is None:
            return LoweredSide(result)
        digest = lowered.hash
        try:
            read = self._read(lowered.snapshot, digest)
        except Exception as error:  # a fault of tlcheck's own is this run's failure: the others go on
            return LoweredSide(replace(result, failure=internal_failure(error)))
        made = LoweredSide(result, read.facts, _seconds(lowered), read.line, digest, read.file)
        return replace(made, snapshot=lowered.snapshot, inputs=lowered.inputs)

    def compiled(self, snapshot: Path, digest: str) -> CompiledCuda | None:
        """Return what nvcc makes of the CUDA in a snapshot, unless it is known; None without a compiler, and of HIP."""
        if self.compiler is None:
            return None
        has_opcodes = "opcodes" if self.compiler.disassembler is not None else ""
        key = key_of(digest, self.compiler.version, has_opcodes, self.content, code_of("compiled"))
        known = self.cache.get("compiled", key)
        if known is not None:
            return msgspec.json.decode(known, type=CompiledCuda)
        read = _decoded(snapshot)
        if not compiles_for(read.target):
            return None
        fast = read.pass_configs.get(_FAST_MATH) == "True"
        compiled = self.compiler.compile(read.cuda, read.target, self.headers, fast_math=fast)
        self.cache.put("compiled", key, msgspec.json.encode(compiled))
        return compiled

    def _read(self, file: Path, digest: str) -> Read:
        key = key_of(digest, code_of("facts"))
        known = self.cache.get("facts", key)
        if known is not None:
            return msgspec.json.decode(known, type=Read)
        from tlcheck.facts.extract import facts_of  # where all facts are kept, nobody waits for NumPy

        snapshot = _decoded(file)
        read = Read(snapshot.file, snapshot.line, facts_of(snapshot))
        self.cache.put("facts", key, msgspec.json.encode(read))
        return read


def bench_of(cache: Cache, compiler: Compiler | None, toolchain: Toolchain) -> Bench:
    """The bench for kernels of a toolchain, with its headers where something is to be compiled."""
    if compiler is None:
        return Bench(cache)
    headers = headers_of(toolchain)
    return Bench(cache, compiler, headers, hash_of_headers(headers))


def _decoded(file: Path) -> Snapshot:
    return codec.loads(file.read_text(encoding="utf-8"))


def _seconds(lowered: Lowered) -> float:
    """Return the seconds for the kernel alone: building and lowering it."""
    return round(lowered.seconds.get("build", 0.0) + lowered.seconds.get("lower", 0.0), 3)


def sides(
    checks: Checks, selections: Sequence[Selection], toolchains: tuple[str, str], benches: tuple[Bench, Bench]
) -> list[LoweredPair]:
    """One comparison for each case and target, without its outcomes, in the order of the files and their cases.

    Raises UsageError where something selected is not there, or is a script that compiles nothing.
    """
    session = checks.session
    both = [replace(s, toolchain=name) for name in toolchains for s in selections]
    found = (FoundSides(), FoundSides())
    compiling: list[tuple[int, Key, Future[CompiledCuda | None]]] = []
    jobs = session.settings.jobs or processors()
    pool = ThreadPoolExecutor(jobs)
    try:
        for lowered, result in checks.results(both):
            run = lowered.run
            second = int(run.position[0] >= len(selections))
            key = (run.file, run.name, run.target)
            side = found[second].sides[key] = benches[second].side(lowered, result)
            if lowered.snapshot is not None:
                compiling.append((second, key, pool.submit(benches[second].compiled, lowered.snapshot, side.digest)))
        session.watcher.stage("compiling" if benches[0].compiler is not None else "comparing")
        for second, key, future in compiling:
            found[second].sides[key] = replace(found[second].sides[key], compiled=future.result())
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C nothing more is compiled
    for end in session.ends:
        second = int(end.run.position[0] >= len(selections))
        found[second].ends[end.run.file, end.run.target] = end
    return paired(*found, len(selections))
