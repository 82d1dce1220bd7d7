"""A GPU by way of CUDA's driver: modules, memory, tensor maps and launches. Needs libcuda alone."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_DYNAMIC_SIZE, _STATIC_SIZE, _MOST_SHARED = 8, 1, 97  # CUfunction_attribute, CUfunction_attribute, CUdevice_attribute
_MAP_BYTES = 128
_FLUSHED = 1 << 28  # bytes: several times the L2 cache of an H200


def _list(form: Any, values: Sequence[int]) -> Any:
    """An array of C."""
    return (form * max(1, len(values)))(*values)


class DeviceError(Exception):
    """A record of what the driver answered instead of doing it."""


@dataclass(frozen=True, slots=True)
class TensorMap:
    """The arguments of cuTensorMapEncodeTiled: lists have the innermost dimension first; strides are in bytes.

    window: those of cuTensorMapEncodeIm2col instead of a box: lower and upper corner, channels and pixels.
    hints: interleave, swizzle, promotion and fill.
    """

    dtype: int
    tensor: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...]
    hints: tuple[int, ...]
    box: tuple[int, ...] = ()
    window: tuple[tuple[int, ...], tuple[int, ...], int, int] | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of a kernel. shared: dynamic bytes. values: of its parameters, in objects of ctypes."""

    function: ctypes.c_void_p
    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    shared: int
    values: tuple[Any, ...]


class Device:
    """The first GPU. A kernel's fault makes it useless: one process for each kernel."""

    def __init__(self) -> None:
        """Raises DeviceError where there is none."""
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise DeviceError(str(error)) from None
        self._device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(self._device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        self._tensors: dict[str, tuple[ctypes.c_uint64, int]] = {}
        self._flush: ctypes.c_uint64 | None = None  # what is written to empty the L2 cache

    @property
    def about(self) -> dict[str, str]:
        """The GPU's name and the newest CUDA that its driver knows."""
        name, version = ctypes.create_string_buffer(256), ctypes.c_int()
        self._call("cuDeviceGetName", name, 256, self._device)
        self._call("cuDriverGetVersion", ctypes.byref(version))
        return {"device": name.value.decode(), "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}"}

    def module(self, cubin: bytes) -> ctypes.c_void_p:
        """Load compiled code."""
        found = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(found), cubin)
        return found

    def put(self, name: str, octets: npt.NDArray[np.uint8]) -> None:
        """Make a tensor of these bytes, or write them over the one of that name."""
        if name not in self._tensors:
            address = ctypes.c_uint64()
            self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(1, octets.size)))
            self._tensors[name] = address, octets.size
        whole = np.ascontiguousarray(octets)
        address, _ = self._tensors[name]
        self._call("cuMemcpyHtoD_v2", address, whole.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(whole.size))

    def get(self, name: str) -> npt.NDArray[np.uint8]:
        """The bytes of a tensor."""
        address, size = self._tensors[name]
        found = np.empty(size, np.uint8)
        self._call("cuMemcpyDtoH_v2", found.ctypes.data_as(ctypes.c_void_p), address, ctypes.c_size_t(size))
        return found

    def launch(
        self,
        module: ctypes.c_void_p,
        kernel: str,
        grid: tuple[int, int, int],
        threads: tuple[int, int, int],
        arguments: Sequence[Any],
    ) -> None:
        """Run a kernel to its end, with all the shared memory there is. arguments: as for `prepared`."""
        self.start(self.prepared(module, kernel, grid, threads, arguments))
        self.wait()

    def prepared(
        self,
        module: ctypes.c_void_p,
        kernel: str,
        grid: tuple[int, int, int],
        threads: tuple[int, int, int],
        arguments: Iterable[Any],
        dynamic: int | None = None,
    ) -> Launch:
        """A launch that has not begun.

        arguments: the name of a tensor, a TensorMap, or a number of ctypes. dynamic: bytes of shared memory, None for
        all there is.
        """
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        shared = self._room(function) if dynamic is None else dynamic
        self._call("cuFuncSetAttribute", function, _DYNAMIC_SIZE, shared)
        return Launch(function, grid, threads, shared, tuple(map(self._argument, arguments)))

    def start(self, launch: Launch) -> None:
        """Begin a launch."""
        values = launch.values
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        grid, threads = launch.grid, launch.threads
        self._call("cuLaunchKernel", launch.function, *grid, *threads, launch.shared, None, pointers, None)

    def wait(self) -> None:
        """Return when all that has begun is over."""
        self._call("cuCtxSynchronize")

    def milliseconds(self, launches: Sequence[Launch]) -> float:
        """Time launches that follow one another, after what was in the L2 cache has left it."""
        if self._flush is None:
            self._flush = ctypes.c_uint64()
            self._call("cuMemAlloc_v2", ctypes.byref(self._flush), ctypes.c_size_t(_FLUSHED))
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            self._call("cuEventCreate", ctypes.byref(event), 0)
        self._call("cuMemsetD8Async", self._flush, ctypes.c_ubyte(0), ctypes.c_size_t(_FLUSHED), None)
        self._call("cuEventRecord", events[0], None)
        for launch in launches:
            self.start(launch)
        self._call("cuEventRecord", events[1], None)
        self.wait()
        took = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(took), *events)
        for event in events:
            self._call("cuEventDestroy_v2", event)
        return took.value

    def forget(self) -> None:
        """Free all tensors."""
        for address, _ in self._tensors.values():
            self._call("cuMemFree_v2", address)
        self._tensors.clear()

    def _room(self, function: ctypes.c_void_p) -> int:
        """The most dynamic shared memory that a block of this kernel may have."""
        whole, own = ctypes.c_int(), ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(whole), _MOST_SHARED, self._device)
        self._call("cuFuncGetAttribute", ctypes.byref(own), _STATIC_SIZE, function)
        return whole.value - own.value

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, str):
            return self._tensors[argument][0]
        if isinstance(argument, TensorMap):
            return self._map(argument)
        return argument

    def _map(self, m: TensorMap) -> Any:
        room = ctypes.create_string_buffer(_MAP_BYTES + 64)
        aligned = (ctypes.addressof(room) + 63) & -64
        wide, narrow, rank = ctypes.c_uint64, ctypes.c_uint32, len(m.sizes)
        name = "cuTensorMapEncodeTiled"
        form: list[Any] = [_list(narrow, m.box)]
        if m.window is not None:
            lower, upper, channels, pixels = m.window
            corners = [_list(ctypes.c_int, lower), _list(ctypes.c_int, upper)]
            name, form = "cuTensorMapEncodeIm2col", [*corners, channels, pixels]
        shape = (self._tensors[m.tensor][0], _list(wide, m.sizes), _list(wide, m.strides[1:]))
        self._call(name, ctypes.c_void_p(aligned), m.dtype, rank, *shape, *form, _list(narrow, m.steps), *m.hints)
        return (ctypes.c_char * _MAP_BYTES).from_buffer(room, aligned - ctypes.addressof(room))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorName(code, ctypes.byref(text))
            raise DeviceError(f"{name}: {(text.value or b'?').decode()}")
