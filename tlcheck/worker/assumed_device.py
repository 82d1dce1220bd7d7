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
_MEMORY = 80 * 2**30
_KINDS = {"cuda": 2, "hip": 10}  # DLPack's numbers
# The modules in which TileLang's releases ask whether ROCm is installed: to them it is.
_ASKING = ("tilelang.rocm.target", "tilelang.utils.target")


def known_target(arch: str) -> Target:
    """The target with this name. Raises RequestError for one that is not known."""
    try:
        return target(arch)
    except UsageError as error:
        raise RequestError(str(error)) from error


def pretend(arch: str) -> None:
    """Make torch, Triton and TVM report one device of this arch, whatever there is: kernels choose tiles by it."""
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
        total_memory=_MEMORY,
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
    _answer_tvm(_KINDS[found.kind], properties)
    version: Any = torch.version
    version.hip = _HIP if found.family == AMD else None
    if found.family == AMD:
        version.cuda = None
        _have_rocm()


def _answer_tvm(wanted: int, properties: Any) -> None:
    """TileLang's cost models ask TVM for the device, libraries for its capability while they are imported.

    wanted: its kind, as DLPack numbers them. properties: as torch reports them.
    """
    tilelang: Any = sys.modules.get("tilelang")
    if tilelang is None:
        return
    # by the numbers of tvm::runtime::DeviceAttrKind
    answers = {
        0: 1,
        1: 1024,
        2: properties.warp_size,
        3: properties.shared_memory_per_block,
        4: f"{properties.major}.{properties.minor}",
        5: properties.name,
        6: 1_980_000,
        7: properties.multi_processor_count,
        8: "[1024, 1024, 64]",
        11: 12080,
        12: 12080,
        13: properties.L2_cache_size,
        14: _MEMORY,
        15: _MEMORY,
    }
    device: Any = tilelang.tvm.runtime.Device
    ask = getattr(device._GetDeviceAttr, "asks", device._GetDeviceAttr)

    def attribute(self: Any, kind: int, index: int, attr: int) -> Any:
        return answers[attr] if kind == wanted and attr in answers else ask(self, kind, index, attr)

    attribute.asks = ask  # type: ignore[attr-defined]
    device._GetDeviceAttr = attribute
    driver: Any = sys.modules.get("tilelang.carver.arch.driver.cuda_driver")
    if driver is not None:  # not imported here: in old releases that needs a device, and aborts in 0.1.8
        driver.get_cuda_device_properties = _always(properties)


def _have_rocm() -> None:
    """TileLang finds ROCm, so that it compiles for the device that torch reports."""
    for name in _ASKING:
        module: Any = sys.modules.get(name)
        if hasattr(module, "check_hip_availability"):
            module.check_hip_availability = _always(True)


def _always(answer: Any) -> Any:
    return lambda *args, **kwargs: answer
