"""One snapshot prepared for judging: its functions walked, its atomics in the source, its memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tlcheck.errors import fault
from tlcheck.program.atomics import (
    FoundAtomics,
    PlainAtomic,
    Pointer,
    Site,
    atomics,
    is_tile_atomic,
    unread_because,
)
from tlcheck.program.generated import is_ever_complemented, is_lost, of_halves, refusals
from tlcheck.program.instructions import Device, Instruction, instruction, plain_instruction
from tlcheck.program.layouts import Clash, clash, layouts
from tlcheck.program.matching import match
from tlcheck.program.parted_tiles import is_tile_call
from tlcheck.program.promotion import shows_promotion
from tlcheck.program.release import Release
from tlcheck.program.threads import first_threads
from tlcheck.program.tma import descriptors, is_copy
from tlcheck.program.walk import Program, expressions, subexpressions, walk
from tlcheck.prove.added_values import Reader
from tlcheck.prove.evidence import Evidence, at, evidence
from tlcheck.prove.footprints import Memory
from tlcheck.prove.known_fingerprints import KnownSums
from tlcheck.prove.plans import Comparison, Stage
from tlcheck.prove.stores import writes
from tlcheck.reasons import CUDA, INTERNAL, UNSAID, Reason
from tlcheck.signatures.table import destinations
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.equality import united
from tlcheck.snapshot.ir import Evaluate, Expr, Snapshot, Stmt, Store, Unknown
from tlcheck.targets.lookup import TARGETS

_REFERENCES = (Checkpoint.SOURCE, Checkpoint.INTENT)
NO_BOUNDS = "tl.disable_safe_memory_legalize"
_PROMOTED = "the kernel computes with 8 or 16 bits, which the generated CUDA does in 32"
_COMPLEMENTED = "the kernel has ~ of a bool, which is an int in the generated code, and never 0"
_LOST = "the kernel uses the value of an atomic that returns none: the generated CUDA has nothing in its place"
_NOT_FOLLOWED = frozenset(("unknown", "let", "shuffle", "predicated"))  # no proof looks into these
_READS = frozenset(("tvm_access_ptr", "address_of", "access_ptr", "region"))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSnapshot:
    """A snapshot and what is derived from it once. Checkpoints that are equal have one function, and one program.

    reference: the checkpoint that says what the kernel adds. not_source: why that is `intent`, after the first passes.
    """

    snapshot: Snapshot
    programs: dict[str, Program]
    found: dict[str, FoundAtomics]
    memory: Memory
    reference: str
    not_source: str = ""
    _clashes: dict[str, Clash | None] = field(default_factory=dict)

    @property
    def source(self) -> tuple[Site, ...]:
        """The atomics of the source; none where the snapshot does not have it."""
        return self.found[self.reference].sites if self.reference in self.found else ()

    @property
    def unread(self) -> tuple[Expr, ...]:
        """The atomics in the source whose arguments were not understood."""
        return self.found[self.reference].unread if self.reference in self.found else ()

    def instruction(self, site: Site) -> Instruction:
        """Return what the device makes of a site."""
        return instruction(site, _scope_of(site.target, self.memory), device_of(self.snapshot))

    def plain_instruction(self, atomic: PlainAtomic) -> Instruction:
        """Return what the device makes of an atomic load or store."""
        scope = "" if atomic.target is None else _scope_of(atomic.target, self.memory)
        return plain_instruction(atomic, scope, device_of(self.snapshot))

    def calls(self, sites: Iterable[Site], checkpoint: str) -> Iterator[tuple[int, Instruction]]:
        """Place among the sites, and instruction, of those that stay what they are: a scalar may become a lane."""
        for number, site in enumerate(sites):
            if site.width > 1 or site.tma or Checkpoint(checkpoint).is_printed:
                yield number, self.instruction(site)

    def opaque(self, checkpoint: str) -> bool:
        """Whether a checkpoint has anything that was not understood: then nothing is known to be absent."""
        statements = self.programs[checkpoint].statements
        return bool(self.found[checkpoint].unread) or any(_is_opaque(p.stmt) for p in statements)

    def hides(self, checkpoint: str) -> bool:
        """Whether a checkpoint has anything that no form of is known: it may hold any atomic."""
        return any(
            isinstance(p.stmt, Unknown)
            or any(e.op == "unknown" for v in expressions(p.stmt) for e in subexpressions(v))
            for p in self.programs[checkpoint].statements
        )

    def clash(self, root: str) -> Clash | None:
        """Two elements that the layout of a buffer puts in one place; None if none, or too many to look at."""
        if root not in self._clashes:
            layout = self.memory.layouts.get(root)
            self._clashes[root] = clash(layout) if layout is not None and layout.thread is None else None
        return self._clashes[root]


def _is_opaque(stmt: Stmt) -> bool:
    if isinstance(stmt, Unknown) or (isinstance(stmt, Store) and stmt.predicate is not None):
        return True
    return any(e.op in _NOT_FOLLOWED for value in expressions(stmt) for e in subexpressions(value))


def subject(snapshot: Snapshot) -> PreparedSnapshot:
    """Walk a snapshot's functions, those that are equal once. A snapshot without `intent` has none of the source."""
    snapshot = replace(snapshot, checkpoints=united(snapshot.checkpoints))
    walked = {id(f): walk(f) for f in snapshot.checkpoints.values()}
    programs = {name: walked[id(f)] for name, f in snapshot.checkpoints.items()}
    without: set[Expr] = set()
    found: dict[str, FoundAtomics] = {
        name: atomics(programs[name], without) for name in _REFERENCES if name in programs
    }
    bulk = any(site.tma for f in found.values() for site in f.sites)
    made = descriptors(programs) if bulk else {}
    later = {id(p): p for name, p in programs.items() if name not in found}
    last = programs.get(Checkpoint.DEVICE_TIR)
    read = {number: atomics(program, without, made, program is last) for number, program in later.items()}
    found.update({name: read[id(program)] for name, program in programs.items() if name not in found})
    not_source = _not_source(found)
    reference = Checkpoint.INTENT if not_source else Checkpoint.SOURCE
    declared = programs[reference].buffers if reference in programs else {}
    known = [programs[name] for name in (Checkpoint.TILE_OPS, reference, Checkpoint.LOWER_TILE_OP) if name in programs]
    starts = first_threads(programs[reference]) if reference in programs else {}
    memory = Memory(declared, layouts(*known), starts)
    device = device_of(snapshot)
    ready = {
        id(f): replace(f, sites=tuple(_with_alignment(s, memory, device) for s in f.sites)) for f in found.values()
    }
    found = {name: ready[id(f)] for name, f in found.items()}
    return PreparedSnapshot(snapshot, programs, found, memory, reference, not_source)


def _not_source(found: Mapping[str, FoundAtomics]) -> str:
    """Return why the atomics are not read at `source`; empty where all those of `intent` can be read there: then the
    passes before LayoutInference are judged too.
    """
    source, intent = (found.get(name) for name in _REFERENCES)
    if source is None or intent is None:
        return "the snapshot has no source" if source is None else "the snapshot has no intent"
    if source.unread:
        return f"at source {unread_because(source.unread[0])}"
    missing = {_what(site) for site in intent.sites} - {_what(site) for site in source.sites}
    return "".join(f"at source there is no {operation} to {root}" for root, operation in sorted(missing)[:1])


def _what(site: Site) -> tuple[str, str]:
    return site.target.root, site.operation


def device_of(snapshot: Snapshot) -> Device:
    """Return what a snapshot was lowered for, and by which release."""
    return Device(TARGETS.get(snapshot.target), snapshot.toolchain.get("tilelang", ""), snapshot.headers)


def _with_alignment(site: Site, memory: Memory, device: Device) -> Site:
    if site.width == 1 or site.tma:
        return site
    needs = instruction(site, _scope_of(site.target, memory), device)
    return replace(site, aligned=(needs.destination, needs.source))


def _scope_of(target: Pointer, memory: Memory) -> str:
    """The memory that a pointer points into; a flat address does not say."""
    declared = memory.declared.get(target.root)
    return target.buffer.scope or (declared.scope if declared is not None else "")


def evidences(of: PreparedSnapshot) -> Iterator[Evidence]:
    """Evidence for every written atomic at every checkpoint after LowerTileOp, in pipeline order."""
    intent = of.programs.get(of.reference)
    if intent is None or not of.source:
        return
    known = frozenset(intent.buffers)
    first = Stage(of.reference, intent, Reader(intent, known))
    cut = not of.snapshot.is_on(NO_BOUNDS)
    made: dict[object, list[Evidence]] = {}
    sums = KnownSums()
    for name in Checkpoint:
        program = of.programs.get(name) if name.is_lowered else None
        if program is None:
            continue
        text = _doubt(program, of.found[name], device_of(of.snapshot)) if name is Checkpoint.DEVICE_TIR else ""
        doubt = Reason(CUDA, text) if text else UNSAID
        asked = (id(program), name.is_unguarded, doubt)  # all that the evidence of a checkpoint depends on
        if asked in made:
            yield from (at(evidence, name) for evidence in made[asked])
            continue
        made[asked] = []
        stage = Stage(name, program, Reader(program, known), doubt)
        for found in match(intent, of.source, program, of.found[name].sites):
            compared = _evidence(Comparison(first, stage, of.memory, found, name.is_unguarded, cut, sums))
            made[asked].append(compared if found.sites else _elsewhere(intent, program, compared))
            yield made[asked][-1]


def _doubt(program: Program, found: FoundAtomics, device: Device) -> str:
    """Return why the CUDA that is made of a program may compute something else; empty where nothing says so."""
    if shows_promotion(program.function):
        return _PROMOTED
    if any(is_lost(site.call, site.placed.stmt) for site in found.sites):
        return _LOST
    release, target = Release.of(device.release), device.target
    if is_ever_complemented(program.function, release, target):
        return _COMPLEMENTED
    refused = None if target is None else next(refusals(program.function, release, target), None)
    if refused is not None:
        return refused
    is_cuda = target is None or target.kind == "cuda"
    cut = next((words for words, _ in of_halves(program.function, release)), "") if is_cuda else ""
    return f"CUTLASS cuts off what {cut} would round" if cut else ""


def _evidence(comparison: Comparison) -> Evidence:
    """The evidence of one match; where looking for it fails, that match is undecided and the others go on."""
    try:
        return evidence(comparison)
    except Exception as error:
        return Evidence(
            comparison.stage.checkpoint, comparison.match, "undecided", reason=Reason(INTERNAL, fault(error))
        )


def _elsewhere(intent: Program, program: Program, compared: Evidence) -> Evidence:
    """Return what else reaches the destination here and not in the source: calls that take its address, and plain
    stores. A tile operator of the source that writes there (T.clear) becomes a store.
    """
    root = compared.match.source[0].target.root
    calls = tuple(sorted(_calls_on(program, root) - _calls_on(intent, root)))
    stored = _stores_to(program, root) > _stores_to(intent, root) + _tiles_to(intent, root)
    return replace(compared, calls=calls, stored=stored)


def _calls_on(program: Program, root: str) -> set[str]:
    found: set[str] = set()
    for placed in program.statements:
        for expr in expressions(placed.stmt):
            for e in subexpressions(expr):
                adds = e.op == "call" and e.value not in _READS and not is_copy(e)
                if adds and any(a.op != "load" and _names(program, a, root) for a in destinations(e)):
                    found.add(str(e.value))
    return found


def _names(program: Program, e: Expr, root: str) -> bool:
    if e.op == "var" and e.dtype == "handle":  # at device-tir a TMA descriptor is a parameter named after its tensor
        return program.roots.of(e) in (root, f"{root}_desc")
    if e.op == "load" and e.buffer is not None:
        return program.roots.of(e.buffer.data) == root
    return e.op == "call" and e.value in _READS and any(_names(program, a, root) for a in e.args)


def _stores_to(program: Program, root: str) -> int:
    return sum(
        1 for p in program.statements if isinstance(p.stmt, Store) and program.roots.of(p.stmt.buffer.data) == root
    )


def _tiles_to(program: Program, root: str) -> int:
    return sum(
        1
        for p in program.statements
        if isinstance(p.stmt, Evaluate)
        and is_tile_call(p.stmt)
        and not is_tile_atomic(p.stmt.value)
        and root in writes(program, p)
    )
