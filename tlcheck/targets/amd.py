"""AMD's targets: ROCm documentation, "AMD GPU specifications" and "Hardware features"; the CDNA3 and CDNA4 ISA guides.
Units of LDS and registers: LLVM, `AMDGPUBaseInfo.cpp`. A barrier waits for surviving waves: their `S_BARRIER`.

A wavefront is a warp, the local data share (LDS) is shared memory, a compute unit is a multiprocessor.
"""

from __future__ import annotations

from tlcheck.targets.target import AMD, Limits, Target

WARP = 64
_SIMDS = 4
_KILO = 2**10
# Families of instructions, and calls for which the device library has functions (tl_templates/hip): cp.async, dp4a.
_CDNA3 = frozenset({"mfma", "cp.async", "dp4a"})
_CDNA4 = frozenset({"mfma.cdna4", "ds_read_tr"})
# Eight bits are one format on each arch, whatever the kernel says: FNUZ on gfx942, OCP on gfx950 (hip_fp8.h of
# tl_templates/hip; ROCm documentation, "Data types and precision support").
_FNUZ = {"float8_e4m3fn": "float8_e4m3fnuz", "float8_e5m2": "float8_e5m2fnuz"}


def _target(arch: str, minor: int, shared: int, unit: int, units: int) -> Target:
    """shared: KiB of LDS; unit: bytes of its smallest share. units: compute units of MI300X, MI355X.

    A thread's registers are its VGPRs and AGPRs together: a SIMD has 512 of both for each lane.
    """
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
        shared_unit=unit,
        register_unit=8 * WARP,
        register_files=_SIMDS,
    )
    instructions = _CDNA3 if minor == 4 else _CDNA3 | _CDNA4
    formats = _FNUZ if minor == 4 else {fnuz: ocp for ocp, fnuz in _FNUZ.items()}
    return Target(AMD, arch, (9, minor), WARP, limits, "hip", None, instructions, formats, skips_ended=True)


TARGETS = (_target("gfx942", 4, 64, 512, 304), _target("gfx950", 5, 160, 1280, 256))
