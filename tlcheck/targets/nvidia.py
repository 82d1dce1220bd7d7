"""NVIDIA's targets: CUDA Programming Guide, "Compute Capabilities", tables of features and technical specifications.

Kernels compiled for `sm_90a` run on compute capability 9.0 only, and may use instructions that `sm_90` lacks; `f`
stands for a family of capabilities. TileLang's names have neither, and it compiles for the `a` form itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlcheck.targets.target import NVIDIA, Limits, Target

WARP = 32
WARPGROUP = 4 * WARP  # the threads of one wgmma
_KILO = 2**10
_RESERVED = 1 * _KILO  # shared memory of each block that the driver keeps for itself, from 8.0 on


@dataclass(frozen=True, slots=True)
class _Capability:
    """One row. shared: KiB of a multiprocessor. threads, blocks: resident on one. multiprocessors: of the usual part,
    which persistent kernels ask for.

    suffixes: of names that CUDA knows beside the plain one.
    """

    shared: int
    threads: int
    blocks: int
    multiprocessors: int
    suffixes: str = ""


_CAPABILITIES = {
    70: _Capability(96, 2048, 32, 80),
    72: _Capability(96, 2048, 32, 8),
    75: _Capability(64, 1024, 16, 72),
    80: _Capability(164, 2048, 32, 108),
    86: _Capability(100, 1536, 16, 84),
    87: _Capability(164, 1536, 16, 16),
    88: _Capability(100, 1536, 16, 16),
    89: _Capability(100, 1536, 24, 142),
    90: _Capability(228, 2048, 32, 132, "a"),
    100: _Capability(228, 2048, 32, 148, "af"),
    101: _Capability(228, 1536, 24, 20, "af"),  # CUDA 12's name of 110
    103: _Capability(228, 2048, 32, 160, "af"),
    110: _Capability(228, 1536, 24, 20, "af"),
    120: _Capability(100, 1536, 24, 188, "af"),
    121: _Capability(100, 1536, 24, 48, "af"),
}
# Families of instructions -> the first and the last capability that has them (PTX ISA, "Target ISA Notes").
_NEWEST = max(_CAPABILITIES)
_INSTRUCTIONS = {
    "dp4a": (61, _NEWEST),
    "barrier": (70, _NEWEST),  # barriers that have names
    "mma": (70, _NEWEST),
    "ldmatrix": (75, _NEWEST),
    "mma.sp": (80, _NEWEST),
    "cp.async": (80, _NEWEST),
    "mbarrier": (80, _NEWEST),
    "stmatrix": (90, _NEWEST),
    "cluster": (90, _NEWEST),
    "elect": (90, _NEWEST),
    "cp.async.bulk": (90, _NEWEST),
    "setmaxnreg": (90, _NEWEST),
    "wgmma": (90, 90),
    "tcgen05": (100, 110),
    "cp.async.bulk.gather4": (100, _NEWEST),
    "st.bulk": (100, _NEWEST),
    "clusterlaunchcontrol": (100, _NEWEST),
    "mma.block_scale": (120, _NEWEST),
}
_OWN_INSTRUCTIONS = 90  # from here on TileLang compiles for the `a` form (contrib/nvcc.py, get_target_arch)


def _target(number: int, suffix: str, row: _Capability) -> Target:
    reserved = _RESERVED if number >= 80 else 0
    limits = Limits(
        static_shared=48 * _KILO,
        shared=row.shared * _KILO - reserved,
        multiprocessor_shared=row.shared * _KILO,
        block=(1024, 1024, 64),
        threads=1024,
        resident_threads=row.threads,
        resident_blocks=row.blocks,
        registers=255,
        multiprocessor_registers=64 * _KILO,
        grid=(2**31 - 1, 2**16 - 1, 2**16 - 1),
        multiprocessors=row.multiprocessors,
    )
    return Target(
        NVIDIA,
        arch_of(number) + suffix,
        divmod(number, 10),
        WARP,
        limits,
        "cuda",
        number,
        frozenset(name for name, (first, last) in _INSTRUCTIONS.items() if first <= number <= last),
    )


def arch_of(capability: int) -> str:
    """The arch of a compute capability: `sm_90` of 90."""
    return f"sm_{capability}"


def compiled_as(target: Target) -> str:
    """The arch that TileLang has nvcc compile a target for."""
    suffix = "a" if (target.measured or 0) >= _OWN_INSTRUCTIONS else ""
    return target.arch + suffix if target.arch[-1].isdigit() else target.arch


TARGETS = tuple(_target(n, suffix, row) for n, row in _CAPABILITIES.items() for suffix in ("", *row.suffixes))
