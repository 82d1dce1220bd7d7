"""The device that a kernel is told it runs on, where there may be no GPU at all."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from tlcheck.worker.failures import RequestError

# Compute capability -> streaming multiprocessors of the usual part, which persistent kernels ask for.
_MULTIPROCESSORS = {
    70: 80, 72: 8, 75: 72, 80: 108, 86: 84, 87: 16, 88: 16, 89: 142,
    90: 132, 100: 148, 101: 20, 103: 160, 110: 20, 120: 188, 121: 48,
}  # fmt: skip


def capability(arch: str) -> tuple[int, int]:
    """`sm_90` -> (9, 0). Raises RequestError for what is no CUDA arch."""
    found = re.fullmatch(r"sm_(\d{2,3})[af]?", arch)
    if found is None or int(found[1]) not in _MULTIPROCESSORS:
        known = ", ".join(f"sm_{number}" for number in _MULTIPROCESSORS)
        raise RequestError(f"unknown arch {arch!r}; known: {known} (with an `a` or `f` where CUDA has it)")
    return int(found[1]) // 10, int(found[1]) % 10


def pretend(arch: str) -> None:
    """Make torch report one CUDA device of this arch, whatever there is: kernels choose tiles by it."""
    major, minor = capability(arch)
    try:
        import torch
    except ImportError:
        return
    properties = SimpleNamespace(
        name=f"NVIDIA {arch}",
        major=major,
        minor=minor,
        multi_processor_count=_MULTIPROCESSORS[10 * major + minor],
        total_memory=80 * 2**30,
        warp_size=32,
        max_threads_per_multi_processor=2048 if minor == 0 else 1536,
        shared_memory_per_block=48 * 2**10,
        shared_memory_per_block_optin=_shared_memory(major, minor),
        shared_memory_per_multiprocessor=_shared_memory(major, minor) + 2**10,
        regs_per_multiprocessor=65536,
        L2_cache_size=50 * 2**20,
        gcnArchName="",
    )
    answers: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": (major, minor),
        "get_device_name": properties.name,
        "get_device_properties": properties,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, _always(answer))


def _always(answer: Any) -> Any:
    return lambda *args, **kwargs: answer


def _shared_memory(major: int, minor: int) -> int:
    """Bytes of shared memory that one block may have."""
    kilobytes = {7: 64 if minor else 96, 8: 99 if minor in (6, 9) else 163, 12: 99}
    return kilobytes.get(major, 227) * 2**10
