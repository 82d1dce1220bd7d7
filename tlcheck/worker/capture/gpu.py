"""Describe what `torch.cuda` answers about a GPU that is not there; see also `tlcheck.worker.device`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import torch
from tilelang import tvm

from tlcheck.targets.target import Target

_MEMORY = 80 * 2**30
_KINDS = {"cuda": 2, "hip": 10}  # DLPack's numbers


class Event:
    """An event without time; one millisecond after any other."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def record(self, *args: Any) -> None: ...

    def wait(self, *args: Any) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        return 1.0


class Stream:
    """Takes everything and does nothing; may be entered."""

    cuda_stream = 0
    device = torch.device("cuda", 0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *args: object) -> None: ...

    def synchronize(self) -> None: ...

    def wait_stream(self, *args: Any) -> None: ...

    def wait_event(self, *args: Any) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def query(self) -> bool:
        return True


class Graph:
    """`torch.cuda.CUDAGraph`: what is captured in it runs once, while it is captured."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def capture_begin(self, *args: Any, **kwargs: Any) -> None: ...

    def capture_end(self) -> None: ...

    def replay(self) -> None: ...

    def reset(self) -> None: ...


_NOTHING = (
    "synchronize", "empty_cache", "set_device", "manual_seed", "manual_seed_all", "seed", "init", "ipc_collect",
    "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_accumulated_memory_stats", "set_stream",
    "set_rng_state", "_lazy_init", "set_per_process_memory_fraction", "_sleep", "cudart",
)  # fmt: skip
_CONTEXTS = ("device", "device_of", "stream", "graph")
_VALUES: dict[str, Any] = {
    "memory_allocated": 0,
    "max_memory_allocated": 0,
    "memory_reserved": 0,
    "max_memory_reserved": 0,
    "mem_get_info": (_MEMORY, _MEMORY),
    "is_bf16_supported": True,
    "is_initialized": True,
    "is_current_stream_capturing": False,
    "can_device_access_peer": True,
    "memory_summary": "",
}


def install(target: Target) -> None:
    """Replace what asks a device, which is of this target."""
    answers: dict[str, Callable[..., Any] | type] = {name: _always(value) for name, value in _VALUES.items()}
    answers |= {name: _always(None) for name in _NOTHING} | dict.fromkeys(_CONTEXTS, _context)
    stream = Stream()
    answers |= {"current_stream": _always(stream), "default_stream": _always(stream)}
    answers |= {"Event": Event, "Stream": Stream, "ExternalStream": Stream, "CUDAGraph": Graph}
    answers |= {"get_rng_state": lambda *args, **kwargs: torch.get_rng_state()}
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    for name in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, name, _always(None))
    torch.cuda.nvtx.range = _context  # type: ignore[assignment, unused-ignore]
    if target.kind == "cuda":
        torch.version.cuda = torch.version.cuda or "12.8"
    _answer_tvm(_KINDS[target.kind])


def _answer_tvm(wanted: int) -> None:
    """TileLang's cost models ask TVM for the device. wanted: its kind, as DLPack numbers them."""
    properties = torch.cuda.get_device_properties(0)
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
    device: Any = tvm.runtime.Device
    ask = device._GetDeviceAttr

    def attribute(self: Any, kind: int, index: int, attr: int) -> Any:
        return answers[attr] if kind == wanted and attr in answers else ask(self, kind, index, attr)

    device._GetDeviceAttr = attribute
    driver: Any = sys.modules.get("tilelang.carver.arch.driver.cuda_driver")
    if driver is not None:  # not imported here: in old releases that needs a device, and aborts in 0.1.8
        driver.get_cuda_device_properties = _always(properties)


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


@contextlib.contextmanager
def _context(*args: Any, **kwargs: Any) -> Any:
    yield args[0] if args else None
