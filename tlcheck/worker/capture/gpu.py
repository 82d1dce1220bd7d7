"""Describe what `torch.cuda` answers about a GPU that is not there; see also `tlcheck.worker.assumed_device`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from tlcheck.targets.target import Target

_MEMORY = 80 * 2**30


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


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


@contextlib.contextmanager
def _context(*args: Any, **kwargs: Any) -> Any:
    yield args[0] if args else None
