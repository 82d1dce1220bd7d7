"""The device that a kernel is told it runs on, where there may be no GPU at all."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from tlcheck.errors import UsageError
from tlcheck.targets.lookup import target
from tlcheck.targets.target import AMD, Target
from tlcheck.worker import triton_driver
from tlcheck.worker.failures import RequestError

_HIP = "7.2.0"  # of a torch that is built for ROCm
# The modules in which TileLang's releases ask whether ROCm is installed: to them it is.
_ASKING = ("tilelang.rocm.target", "tilelang.utils.target")


def known_target(arch: str) -> Target:
    """The target with this name. Raises RequestError for one that is not known."""
    try:
        return target(arch)
    except UsageError as error:
        raise RequestError(str(error)) from error


def pretend(arch: str) -> None:
    """Make torch, and Triton with it, report one device of this arch, whatever there is: kernels choose tiles by it."""
    found = known_target(arch)
    try:
        import torch
    except ImportError:
        return
    limits, (major, minor) = found.limits, found.capability
    properties = SimpleNamespace(
        name=f"{found.family.upper()} {arch}",
        major=major,
        minor=minor,
        multi_processor_count=limits.multiprocessors,
        total_memory=80 * 2**30,
        warp_size=found.warp,
        max_threads_per_multi_processor=limits.resident_threads,
        shared_memory_per_block=limits.static_shared,
        shared_memory_per_block_optin=limits.shared,
        shared_memory_per_multiprocessor=limits.multiprocessor_shared,
        regs_per_multiprocessor=limits.multiprocessor_registers,
        L2_cache_size=50 * 2**20,
        gcnArchName=arch if found.family == AMD else "",
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
    triton_driver.pretend()
    version: Any = torch.version
    version.hip = _HIP if found.family == AMD else None
    if found.family == AMD:
        version.cuda = None
        _have_rocm()


def _have_rocm() -> None:
    """TileLang finds ROCm, so that it compiles for the device that torch reports."""
    for name in _ASKING:
        module: Any = sys.modules.get(name)
        if hasattr(module, "check_hip_availability"):
            module.check_hip_availability = _always(True)


def _always(answer: Any) -> Any:
    return lambda *args, **kwargs: answer
