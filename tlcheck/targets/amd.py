"""AMD's targets: ROCm documentation, "AMD GPU specifications" and "Hardware features"; the CDNA3 and CDNA4 ISA guides.

A wavefront is a warp, the local data share (LDS) is shared memory, a compute unit is a multiprocessor.
"""

from __future__ import annotations

from tlcheck.targets.target import AMD, Limits, Target

WARP = 64
_KILO = 2**10


def _target(arch: str, minor: int, shared: int, units: int) -> Target:
    """shared: KiB of LDS. units: compute units of MI300X, MI355X."""
    limits = Limits(
        static_shared=shared * _KILO,
        shared=shared * _KILO,
        multiprocessor_shared=shared * _KILO,
        block=(1024, 1024, 1024),
        threads=1024,
        resident_threads=2048,
        resident_blocks=32,
        registers=512,
        multiprocessor_registers=128 * _KILO,
        grid=(2**31 - 1, 2**16 - 1, 2**16 - 1),
        multiprocessors=units,
    )
    return Target(AMD, arch, (9, minor), WARP, limits, "hip", None, frozenset({"mfma"}))


TARGETS = (_target("gfx942", 4, 64, 304), _target("gfx950", 5, 160, 256))
