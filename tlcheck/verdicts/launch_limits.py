"""Find what keeps a kernel from being launched: limits of the target that it passes, code that does not compile.

CUDA C++ Programming Guide, "Compute Capabilities"; ROCm documentation, "AMD GPU specifications".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from tlcheck.cost.occupancy import resident_blocks
from tlcheck.program.generated import of_vectors
from tlcheck.program.launch import LaunchRequest, asked_by_source, requests, sets_registers
from tlcheck.program.release import Release
from tlcheck.reasons import DEVICE, Reason
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Expr, Snapshot
from tlcheck.targets.lookup import TARGETS
from tlcheck.targets.target import AMD, Target
from tlcheck.verdicts.claim import REFUTED, UNDECIDED, Claim, Finding
from tlcheck.verdicts.excerpts import source_line
from tlcheck.verdicts.rules.rule import rule_of
from tlcheck.witness import Accesses, Act

_THREADS, _GRID, _SHARED, _RESIDENT = "threads", "grid", "shared memory", "cooperative grid"
_REGISTERS = "registers"
_COMPILER = "compiler"
_SETMAXNREG = "setmaxnreg"  # the family of instructions
_ADVICE = {
    _THREADS: "launch at most as many threads and let each do more",
    _GRID: "make it the first axis of T.Kernel, or let each block do more",
    _SHARED: "smaller tiles, or fewer stages",
    _REGISTERS: "let warps that need few give theirs back (T.set_max_nreg with 0), or launch fewer threads or blocks",
    _COMPILER: "a release from 0.1.15 on, or T.if_then_else instead of T.Select",
    _RESIDENT: "launch as many blocks as are resident at once, and let each do more (T.Persistent)",
}


@dataclass(frozen=True)
class _Excess:
    """A record of what of a launch is more than a limit. subject: one of the above."""

    subject: str
    what: str


def with_launch(snapshot: Snapshot, claims: tuple[Claim, ...], sizes: Mapping[str, int]) -> tuple[Claim, ...]:
    """The claims with those that the launch is refused for. sizes: of symbolic shapes, where inputs are given.

    What was executed of such a kernel decides none of its outputs. They stand under the first refusal.
    """
    refused = list(_refused(snapshot, sizes))
    if not refused:
        return claims
    reason = Reason(DEVICE, "the device does not run the kernel")
    opened = [
        replace(c, verdict=UNDECIDED, scope=None).because(reason) if c.kind == "output" and c.is_clean else c
        for c in claims
    ]
    undecided = tuple(c for c in opened if c.verdict == UNDECIDED and c.kind != "atomic")
    first, *others = refused
    return (replace(first, also=undecided), *others, *(c for c in opened if c not in undecided))


def _refused(snapshot: Snapshot, sizes: Mapping[str, int]) -> Iterator[Claim]:
    target = TARGETS.get(snapshot.target)
    source, lowered = (snapshot.checkpoints.get(at) for at in (Checkpoint.SOURCE, Checkpoint.DEVICE_TIR))
    if target is None or lowered is None:
        return
    vectors = of_vectors(lowered, Release.among(snapshot.toolchain), target)
    yield from (_claim(snapshot, _Excess(_COMPILER, words), snapshot.line, own=False) for words in islice(vectors, 1))

    def size_of(e: Expr) -> int | None:
        return _size(e, sizes)

    written = [] if source is None else requests(source, size_of)
    seen = {excess.subject for request in written for excess in _beyond(request, target)}
    lines = [request.line for request in written]
    asked = 0 if source is None else asked_by_source(source)
    told: set[str] = set()
    for number, request in enumerate(requests(lowered, size_of)):
        for excess in _beyond(request, target):
            own = excess.subject in seen or (excess.subject == _SHARED and request.shared <= asked)
            own |= excess.subject == _REGISTERS and source is not None and sets_registers(source.body)
            if excess.subject not in told:
                told.add(excess.subject)
                yield _claim(snapshot, excess, lines[number] if number < len(lines) else 0, own=own)


def _beyond(request: LaunchRequest, target: Target) -> Iterator[_Excess]:
    """Yield what of a launch a target does not have."""
    limits = target.limits
    most_along = dict(zip("xyz", limits.block, strict=True))
    if request.threads > limits.threads:
        yield _Excess(_THREADS, f"a block has {request.threads:,} threads, and at most {limits.threads:,} are allowed")
    elif any(threads > most_along[axis] for axis, threads in request.block.items()):
        extents = " x ".join(f"{threads:,}" for _, threads in sorted(request.block.items()))
        allowed = " x ".join(f"{most:,}" for most in limits.block)
        yield _Excess(_THREADS, f"a block has {extents} threads, and at most {allowed} are allowed")
    for axis, most in zip("xyz", limits.grid, strict=True):
        if request.grid.get(axis, 0) > most:
            blocks = request.grid[axis]
            yield _Excess(_GRID, f"the grid has {blocks:,} blocks along {axis}, and at most {most:,} are allowed")
    yield from _memory(request, target)
    yield from _registers(request, target)
    blocks = request.grid.get("x", 0) * request.grid.get("y", 1) * request.grid.get("z", 1)
    if request.is_cooperative and blocks and 0 < request.threads <= limits.threads:
        each, limiter = resident_blocks(target, request.threads, request.shared)
        if each and blocks > each * limits.multiprocessors:
            room = f"{limits.multiprocessors} multiprocessors hold {each * limits.multiprocessors:,} ({limiter})"
            yield _Excess(_RESIDENT, f"T.sync_grid needs all {blocks:,} blocks at once, and {room}")


def _memory(request: LaunchRequest, target: Target) -> Iterator[_Excess]:
    limits = target.limits
    name = "LDS" if target.family == AMD else "shared memory"
    if request.shared > limits.shared:
        what = f"a block needs {request.shared:,} bytes of {name}, and {target.arch} has {limits.shared:,} for one"
        yield _Excess(_SHARED, what)
    elif request.static > limits.static_shared:
        what = f"a block declares {request.static:,} bytes of static {name}, and may have {limits.static_shared:,}"
        yield _Excess(_SHARED, what)


def _registers(request: LaunchRequest, target: Target) -> Iterator[_Excess]:
    """T.set_max_nreg, which targets with register files of warpgroups have."""
    body, limits = request.body, target.limits
    has_them = _SETMAXNREG in target.instructions and 0 < request.threads <= limits.threads
    if body is None or not has_them or not sets_registers(body):
        return
    from tlcheck.verdicts import registers  # for proofs alone nothing of execution is imported

    odd = registers.unencodable(body)
    if odd is not None:
        yield _Excess(_REGISTERS, f"T.set_max_nreg asks for {odd} registers: no multiple of 8 from 24 to 256")
    asked = registers.registers_of_block(body, request.block)
    held = request.resident if request.resident * request.threads <= limits.resident_threads else 1  # else ignored
    share = registers.share_of_block(limits.multiprocessor_registers, request.threads, held)
    if asked > share:
        beside = f" where a multiprocessor holds {held} blocks" if held > 1 else ""
        has = f"a block has at most {share:,}{beside}"
        what = f"T.set_max_nreg asks for {asked:,} registers in a block, and {has}"
        yield _Excess(_REGISTERS, f"{what}: a warp waits for ever")


def _size(e: Expr, sizes: Mapping[str, int]) -> int | None:
    if isinstance(e.value, int) and e.op == "int":
        return e.value
    if not sizes:
        return None
    from tlcheck.execute.memory.plain import evaluated  # for proofs alone nothing of execution is imported
    from tlcheck.execute.stops import NotModelled

    with suppress(NotModelled):
        return int(evaluated(e, sizes))
    return None


def _claim(snapshot: Snapshot, excess: _Excess, line: int, *, own: bool) -> Claim:
    rule = rule_of("source-launch" if own else "launch")
    at = Checkpoint.SOURCE if own else Checkpoint.DEVICE_TIR
    witness = Accesses((), Act(excess.what, (), at=at))
    finding = Finding(
        rule.id,
        rule.name,
        rule.title,
        (),
        at,
        "",
        excess.what,
        witness,
        excess.what,
        advice=_ADVICE[excess.subject],
        blame="author" if own else "compiler",
    )
    place = source_line(snapshot, line)
    if own:
        key = f"{rule.id} {excess.subject}"
        return Claim("source", key, "the launch", place, REFUTED, "proof", finding=finding)
    return Claim("legality", f"launch: {excess.subject}", "the launch", place, REFUTED, "proof", finding=finding)
