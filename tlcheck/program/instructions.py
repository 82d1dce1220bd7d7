"""Describe what the device makes of an atomic: the call of TileLang's device library that it is, and what that call
does.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlcheck.program import hip_library
from tlcheck.program.atomics import PlainAtomic, Pointer, Site
from tlcheck.program.device_library import WRONG, Behaviour, LibraryCall, device_library, library_of
from tlcheck.program.tma import is_boxed
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.targets.target import Target

_GLOBAL = ("", "global")  # a flat address does not say


@dataclass(frozen=True, slots=True)
class Device:
    """target: None if it is not known. release: TileLang's version. headers: hash of its device library's.

    Both are empty where they are not known.
    """

    target: Target | None
    release: str
    headers: str = ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A record of what an atomic comes to.

    destination, source: the alignment that their addresses need, in elements. call: of the device library; None for a
    tile operator, which is none yet. behaviour: what the call does; None where that is not known. missing: why there is
    no such call at all.
    """

    destination: int = 1
    source: int = 1
    call: LibraryCall | None = None
    behaviour: Behaviour | None = None
    missing: str = ""


def instruction(site: Site, scope: str, device: Device) -> Instruction:
    """Return how the device does the atomic of a site whose destination lies in `scope`."""
    if site.tile:
        return Instruction()
    # one value for all lanes of a vector atomic
    single = not isinstance(site.value, Pointer) and dtype_of(site.value.dtype).lanes == 1
    if site.width > 1 and not site.tma and single:
        return Instruction(missing=f"is given one value for {site.width} lanes")
    call = library_call(site, scope)
    if call.operation == "box" and call.destination != call.value:
        detail = f"the descriptor's elements are {call.destination}, those in shared memory {call.value}"
        return Instruction(call=call, behaviour=Behaviour(WRONG, detail))
    behaviour = _behaviour(call, scope, device)
    if behaviour is None or site.width == 1 or site.tma:
        return Instruction(call=call, behaviour=behaviour)
    destination, source = (
        _elements(n, t) for n, t in zip(behaviour.aligned, (call.destination, call.value), strict=True)
    )
    return Instruction(destination, source, call, behaviour)


def plain_instruction(atomic: PlainAtomic, scope: str, device: Device) -> Instruction:
    """Return how the device does an atomic load or store of memory in `scope`."""
    if atomic.target is None:
        return Instruction()
    loads, shared = atomic.operation == "load", scope.startswith("shared")
    value = dtype_of(atomic.value).name
    call = LibraryCall(atomic.operation, atomic.target.dtype, value, 1, False, atomic.order, loads, shared)
    return Instruction(call=call, behaviour=_behaviour(call, scope, device))


def _behaviour(call: LibraryCall, scope: str, device: Device) -> Behaviour | None:
    """Return what the device library does with a call; None where that was neither measured nor read."""
    if device.target is None or (scope not in _GLOBAL and not call.shared):
        return None
    if device.target.library == "hip":
        known = device_library().has(device.release, device.headers)  # a release's own, not a checkout's or edited ones
        return hip_library.behaviour(device.release, call) if known else None
    if device.target.measured is None:
        return None
    return library_of(device.release, device.headers).behaviour(device.release, device.target.measured, call)


def library_call(site: Site, scope: str) -> LibraryCall:
    """The call that the code generator prints for a site."""
    value = site.value.dtype if isinstance(site.value, Pointer) else dtype_of(site.value.dtype).name
    shared = scope.startswith("shared")
    if site.tma:
        return LibraryCall("box" if is_boxed(site.call) else "bulk", site.target.dtype, value, pointer=True)
    pointer = isinstance(site.value, Pointer)
    return LibraryCall(
        site.operation, site.target.dtype, value, site.width, pointer, site.order or 0, site.returns, shared
    )


def _elements(size: int, dtype: str) -> int:
    """Return how many elements an access of so many bytes has."""
    return max(1, 8 * size // dtype_of(dtype).bits)
