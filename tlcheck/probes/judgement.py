"""The behaviour of a call from its PTX: executed with several values, and its order read off what was executed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlcheck.probes.calls import numbers
from tlcheck.probes.formats import Number, bits_of, decode, encode
from tlcheck.probes.ptx import PtxEntry, PtxInstruction
from tlcheck.probes.ptx_machine import GLOBAL, SHARED, PtxAccess, PtxMachine, StoppedError
from tlcheck.program.device_library import BULK, LOST, OK, ORDERS, STOPS, WRONG, Behaviour, LibraryCall

DESTINATION, VALUES, RETURNED = GLOBAL, GLOBAL + 0x1000, GLOBAL + 0x2000
ELEMENTS = 8  # of the destination, so that elements beside the wanted ones are seen
_GATHERED = {"acquire": {"acquire", "acq_rel"}, "release": {"release", "acq_rel"}}
# What each order asks for: of the instruction or of a fence behind it, and of the instruction or of a fence before it.
_WANTED = {1: ("acquire",), 2: ("acquire",), 3: ("release",), 4: ("acquire", "release"), 5: ("acquire", "release")}
_ADDED_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"} | {
    f"{sign}int{bits}": f"{kind}{bits}" for sign, kind in (("", "s"), ("u", "u")) for bits in (32, 64)
}
_ADDED = frozenset(_ADDED_TYPES.values())
_FLOATING = {"f16", "bf16", "f32", "f64", "f16x2", "bf16x2"}


@dataclass(frozen=True)
class ProbeRun:
    """One execution: what was in the destination, what was given, what is there now, what came back, and accesses."""

    before: tuple[Number, ...]
    given: tuple[Number, ...]
    after: tuple[Number, ...]
    returned: tuple[Number, ...]
    accesses: tuple[PtxAccess, ...]


def judge(call: LibraryCall, entry: PtxEntry) -> Behaviour:
    """Return what a call does. Raises UnreadPtxError where its PTX is not understood."""
    instructions = tuple(dict.fromkeys(i.name for i in entry.instructions if _tells(call, i)))
    if call.operation in BULK:
        return _bulk(call, instructions)
    try:
        runs = [run(call, entry, before, given) for before, given in _inputs(call)]
    except (StoppedError, TimeoutError) as error:
        return Behaviour(STOPS, str(error), instructions)
    for done in runs:
        if wrong := _wrong(call, done):
            return Behaviour(WRONG, wrong, instructions)
    aligned = _aligned(call, runs)
    for done in runs:
        if lost := _lost(call, done.accesses):
            return Behaviour(LOST, lost, instructions, aligned)
    return Behaviour(OK, "", instructions, aligned)


def _tells(call: LibraryCall, instruction: PtxInstruction) -> bool:
    """Whether an instruction says what a call does: atomics, fences, casts of floats, ordered loads and stores."""
    name, parts = instruction.opcode[0], set(instruction.opcode)
    if name == "cvt":
        return sum(p in _FLOATING for p in instruction.opcode) == 2
    if name in ("ld", "st"):
        return call.operation in ("load", "store") and bool(parts & {"relaxed", "acquire", "release", "volatile"})
    return name in ("cp", "atom", "red", "fence", "membar", "trap")


def _bulk(call: LibraryCall, instructions: tuple[str, ...]) -> Behaviour:
    """Return what a bulk reduction does, by the type that its instruction names; that of a box has the descriptor's
    type.
    """
    (name,) = instructions
    named = [p for p in name.split(".") if p in _ADDED]
    if call.operation == "bulk" and named != [_ADDED_TYPES[call.destination]]:
        return Behaviour(WRONG, f"`{name}` adds numbers of {' '.join(named) or 'no type'}", instructions)
    return Behaviour(OK, "", instructions)


def run(call: LibraryCall, entry: PtxEntry, before: Sequence[Number], given: Sequence[Number]) -> ProbeRun:
    """Execute with a destination and values."""
    names = [f"{entry.name}_param_{i}" for i in range(3)]
    machine = PtxMachine(entry, dict(zip(names, (DESTINATION, VALUES, RETURNED), strict=True)))
    place = SHARED if call.shared else DESTINATION
    _put(machine, call.destination, place, before)
    _put(machine, call.value, VALUES, given)
    machine.run()
    after = _get(machine, call.destination, place, ELEMENTS)
    return ProbeRun(
        tuple(before),
        tuple(given),
        after,
        _get(machine, call.destination, RETURNED, call.width),
        tuple(machine.accesses),
    )


def _inputs(call: LibraryCall) -> list[tuple[list[Number], list[Number]]]:
    """Contents of the destination, and values: each number is given once."""
    found = numbers(call.destination, call.value)
    own = numbers(call.destination, call.destination)
    return [
        (
            [own[(3 * r + i + 1) % len(own)] for i in range(ELEMENTS)],
            [found[(r + i) % len(found)] for i in range(call.width)],
        )
        for r in range(len(found))
    ]


def expected(call: LibraryCall, before: Number, given: Number) -> Number:
    """Return what one element has to be after the call."""
    value = decode(call.destination, encode(call.destination, given))
    if call.operation == "load":
        return before
    result = _RESULT[call.operation](before, value)
    return decode(call.destination, encode(call.destination, result))


_RESULT: dict[str, Callable[..., Number]] = {
    "add": operator.add,
    "max": max,
    "min": min,
    "or": operator.or_,
    "and": operator.and_,
    "xor": operator.xor,
    "store": lambda before, value: value,
}


def _wrong(call: LibraryCall, done: ProbeRun) -> str:
    """Return what is wrong with the numbers, in words; empty if nothing."""
    for i, before in enumerate(done.before):
        want = expected(call, before, done.given[i]) if i < call.width else before
        if done.after[i] != want:
            given = f"{call.operation} of {_shown(done.given)}" if call.operation != "load" else "a load"
            holds, leaves, wanted = (_shown([number]) for number in (before, done.after[i], want))
            return f"{given} to element {i}, which holds {holds}, leaves {leaves}, not {wanted}"
    if call.returns and done.returned != done.before[: call.width]:
        return f"it returns {_shown(done.returned)}, not the previous {_shown(done.before[: call.width])}"
    return ""


def _shown(numbers: Sequence[Number]) -> str:
    return ", ".join(f"{n:g}" if isinstance(n, float) else str(n) for n in numbers)


def _lost(call: LibraryCall, accesses: Sequence[PtxAccess]) -> str:
    """Return which part of the memory order neither the instructions nor fences give; empty if none is missing."""
    if not call.order or call.operation in ("load", "store"):
        return _plain_order(call, accesses) if call.order else ""
    at = [i for i, access in enumerate(accesses) if access.kind == "atomic"]
    if not at:
        return f"{ORDERS[call.order]} is asked for, and the destination may only be read without an order"
    for wanted in _WANTED[call.order]:
        for i in at:
            fences = accesses[i + 1 :] if wanted == "acquire" else accesses[:i]
            if not _gives(accesses[i], wanted, call.shared) and not any(_fences(f) for f in fences):
                return f"{ORDERS[call.order]} is asked for, `{accesses[i].name}` is not {wanted}"
    if call.order == 5 and not any(_is_sequential(f) for f in accesses):
        return "seq_cst is asked for, and there is no fence.sc"
    return ""


def _plain_order(call: LibraryCall, accesses: Sequence[PtxAccess]) -> str:
    """The same for an atomic load or store."""
    place = SHARED if call.shared else DESTINATION
    kind, wanted = ("load", "acquire") if call.operation == "load" else ("store", "release")
    at = [i for i, a in enumerate(accesses) if a.kind == kind and place <= a.address < place + 0x1000]
    asked = wanted in _WANTED[call.order]
    for i in at if asked else ():
        fences = accesses[i + 1 :] if kind == "load" else accesses[:i]
        if not _gives(accesses[i], wanted, call.shared) and not any(_fences(f) for f in fences):
            return f"{ORDERS[call.order]} is asked for, `{accesses[i].name}` is not {wanted}"
    if call.order == 5 and not any(_is_sequential(f) for f in accesses):
        return "seq_cst is asked for, and there is no fence.sc"
    return ""


def _gives(access: PtxAccess, wanted: str, shared: bool) -> bool:
    """Whether an instruction has the order, for all threads that see the destination."""
    parts = set(access.name.split("."))
    return bool(parts & _GATHERED[wanted]) and (shared or "cta" not in parts)


def _fences(access: PtxAccess) -> bool:
    """Whether it is a fence for the whole device; one for a block (`cta`) is too weak."""
    parts = access.name.split(".")
    return access.kind == "fence" and bool({"gpu", "gl", "sys"} & set(parts)) and "proxy" not in parts


def _is_sequential(access: PtxAccess) -> bool:
    parts = access.name.split(".")
    return _fences(access) and (parts[0] == "membar" or "sc" in parts)


def _aligned(call: LibraryCall, runs: Sequence[ProbeRun]) -> tuple[int, int]:
    """The largest access to destination and values, in bytes."""
    place = SHARED if call.shared else DESTINATION
    sizes = [1, 1]
    for done in runs:
        for access in done.accesses:
            for which, start in enumerate((place, VALUES)):
                if start <= access.address < start + 0x1000 and access.kind != "fence":
                    sizes[which] = max(sizes[which], access.size)
    own = bits_of(call.destination) // 8
    return (max(sizes[0], own), max(sizes[1], bits_of(call.value) // 8) if call.operation != "load" else 1)


def _put(machine: PtxMachine, dtype: str, place: int, found: Sequence[Number]) -> None:
    size = bits_of(dtype) // 8
    for i, number in enumerate(found):
        machine.write(place + i * size, size, encode(dtype, number))


def _get(machine: PtxMachine, dtype: str, place: int, count: int) -> tuple[Number, ...]:
    size = bits_of(dtype) // 8
    return tuple(decode(dtype, machine.read(place + i * size, size)) for i in range(count))
