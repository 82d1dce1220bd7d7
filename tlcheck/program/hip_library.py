"""Describe what TileLang's device library for HIP does with a call of an atomic (tl_templates/hip/atomic.h): read,
never run.

Each call of 0.1.15 was compiled against HIP's headers, for gfx942 with clang 19 and for gfx950 with clang 22
(benchmarks/hip_library.py, results/amd/library.csv); what is accepted, and the instructions, are from there. Maxima and
minima of floats in LDS are an instruction or a loop, as the release of ROCm has it. The headers of the other releases
were read: the functions are the same, and come one by one. All of them take a memory order. Loads and stores heed it;
the others are relaxed.

Floats of 16 bits are not known: the headers with their types are not among those.
"""

from __future__ import annotations

from tlcheck.program.device_library import LOST, OK, ORDERS, REFUSED, Behaviour, LibraryCall
from tlcheck.program.release import Release

_WIDTHS = {"int32": "", "uint32": "", "uint64": "_x2", "float32": "_f32", "float64": "_f64"}
_REFUSED = frozenset({"int8", "uint8", "int16", "uint16", "int64"})  # HIP has no atomic for them
_EXCHANGED = {"float32": "global_atomic_cmpswap", "float64": "global_atomic_cmpswap_x2"}
_IN_LDS = {"int32": "i32", "uint32": "u32", "uint64": "u64", "float32": "f32", "float64": "f64"}
# Functions: the releases from which on the header has them.
_FIRST = {"or": Release.of("0.1.12"), "load": Release.of("0.1.13"), "store": Release.of("0.1.13")}
_LOADS, _STORES = ("relaxed", "consume", "acquire", "seq_cst"), ("relaxed", "release", "seq_cst")
_RETURNED = ("add",)


def behaviour(release: str, call: LibraryCall) -> Behaviour | None:
    """Return what a release does with a call; None for what was neither compiled nor read."""
    first = _FIRST.get(call.operation)
    if first is not None and Release.of(release) < first:
        return Behaviour(REFUSED, f"the header has no function for {call.operation}")
    if call.operation in ("load", "store"):
        return _plain(call)
    if call.operation not in ("add", "max", "min", "or"):
        return None
    if call.returns and call.operation not in _RETURNED:
        return Behaviour(REFUSED, f"the header has no function that returns what was there before {call.operation}")
    return _wide(call) if call.width > 1 else _single(call)


def _plain(call: LibraryCall) -> Behaviour | None:
    if call.destination not in (*_WIDTHS, *_REFUSED):
        return None
    order = ORDERS[call.order] if 0 <= call.order < len(ORDERS) else ""
    allowed = _LOADS if call.operation == "load" else _STORES
    return Behaviour(OK, instructions=(f"__hip_atomic_{call.operation}",)) if order in allowed else None


def _wide(call: LibraryCall) -> Behaviour:
    """Float by float; the values are given by their address, which is that of a vector."""
    if (call.destination, call.value, call.pointer) != ("float32", "float32", True):
        return Behaviour(REFUSED, f"the header has AtomicAddx{call.width} for the addresses of floats of 32 bits alone")
    in_lds = f"ds_add_{'rtn_' * call.returns}f32"
    return _ordered(call, in_lds if call.shared else "global_atomic_add_f32", (4, 4 * call.width))


def _single(call: LibraryCall) -> Behaviour | None:
    if call.pointer or call.value not in (*_WIDTHS, *_REFUSED):
        return None
    kind, operation = call.destination, call.operation
    if kind in _REFUSED or (operation == "or" and kind in ("float32", "float64")):
        return Behaviour(REFUSED, f"HIP has no atomic{operation.capitalize()} of {kind}")
    if kind not in _WIDTHS:
        return None
    if call.shared:
        form = "b" + _IN_LDS[kind][1:] if operation == "or" else "u32" if kind == "int32" and operation == "add" else ""
        return _ordered(call, f"ds_{operation}_{'rtn_' * call.returns}{form or _IN_LDS[kind]}")
    if operation in ("max", "min"):
        sign = "s" if kind == "int32" else "u"
        return _ordered(call, _EXCHANGED.get(kind, f"global_atomic_{sign}{operation}{_WIDTHS[kind]}"))
    return _ordered(call, f"global_atomic_{operation}{_WIDTHS[kind]}")


def _ordered(call: LibraryCall, instruction: str, aligned: tuple[int, int] = (1, 1)) -> Behaviour:
    """Return what the call does, whose order the function takes and does not use."""
    if call.order:
        detail = f"the function does not use its argument for the order, {ORDERS[call.order]}: {instruction} is relaxed"
        return Behaviour(LOST, detail, (instruction,), aligned)
    return Behaviour(OK, "", (instruction,), aligned)
