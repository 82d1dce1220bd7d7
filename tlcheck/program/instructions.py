"""What the device library of a release makes of a vector atomic on an arch: facts read off its `atomic.h`."""

from __future__ import annotations

from dataclasses import dataclass

from tlcheck.program.atomics import Pointer, Site
from tlcheck.snapshot.dtypes import dtype_of

PAIRS = frozenset(("float16", "bfloat16"))
RELAXED = 0
GLOBAL_ONLY = "exists for global memory only, the destination is shared memory"
ORDERED = (0, 1, 7)  # first release that adds one 16-bit value with a memory order by an instruction of its own
SCALAR_FLOATS = (0, 1, 7)  # first release with float32 vectors before sm_90, as scalar atomics
QUADS = (0, 1, 12)  # first release with 4 lanes of 16 bits, and that converts float32 values to 16 bits
QUADS_RETURNED = (0, 1, 13)  # first release whose 4 lanes of 16 bits give back the previous values


@dataclass(frozen=True, slots=True)
class Device:
    """arch: compute capability, 90 for sm_90. release: TileLang's, without post-releases."""

    arch: int
    release: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Instruction:
    """destination, source: the alignment that their addresses need, in elements. missing: why the device has none."""

    destination: int = 1
    source: int = 1
    missing: str = ""


def instruction(site: Site, scope: str, device: Device) -> Instruction:
    """How the device does the atomic of a site whose destination lies in `scope`."""
    dtype, shared = site.target.dtype, scope.startswith("shared")
    if dtype in PAIRS and shared and site.operation == "add" and _ordered(site, device):
        return Instruction(missing=f"with a memory order {GLOBAL_ONLY}")
    if site.width == 1 or site.tma:
        return Instruction()
    if site.operation != "add" or dtype not in (*PAIRS, "float32"):
        return Instruction(missing="does not exist")
    if not isinstance(site.value, Pointer) and dtype_of(site.value.dtype).lanes == 1:
        return Instruction(missing=f"is given one value for {site.width} lanes")
    unread = _misread(site, device)
    if unread:
        return Instruction(missing=unread)
    return _floats(site, shared, device) if dtype == "float32" else _pairs(site, shared, device)


def _ordered(site: Site, device: Device) -> bool:
    """Whether it is done by an instruction with a memory order."""
    return (site.order or RELAXED) != RELAXED and (site.width > 1 or device.release >= ORDERED)


def _misread(site: Site, device: Device) -> str:
    """The library reads the values behind a pointer as if they had the destination's type."""
    have, want = site.value.dtype, site.target.dtype
    if not isinstance(site.value, Pointer) or have == want:
        return ""
    if have == "float32" and want in PAIRS and device.release >= QUADS:
        return ""
    return f"reads values of {have} as {want}"


def _floats(site: Site, shared: bool, device: Device) -> Instruction:
    if device.arch >= 90:
        return Instruction(site.width, site.width, GLOBAL_ONLY if shared else "")
    if device.release < SCALAR_FLOATS:
        return Instruction(missing=f"exists from sm_90 on, the target is sm_{device.arch}")
    return Instruction(1, site.width)


def _pairs(site: Site, shared: bool, device: Device) -> Instruction:
    source = 1 if isinstance(site.value, Pointer) and site.value.dtype == "float32" else 2
    if site.width == 2:
        return Instruction(2, source)
    if device.release < (QUADS_RETURNED if site.returns else QUADS):
        return Instruction(missing="is not in this release's device library, which has it for float32 only")
    if device.arch < 90 or site.returns:
        return Instruction(2, source)
    return Instruction(4, source, GLOBAL_ONLY if shared else "")
