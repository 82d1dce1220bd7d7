"""Kernels of Triton, where it is installed: as TileLang's, they are not launched."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

import torch


class _PatchingFinder:
    """Finds some modules where Python finds them, and changes each once it is executed."""

    def __init__(self, changes: Mapping[str, Callable[[Any], None]]) -> None:
        self._changes = changes

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Implement `importlib.abc.MetaPathFinder`."""
        spec = PathFinder.find_spec(name, path) if name in self._changes else None
        if spec is None or spec.loader is None:
            return None
        execute, change = spec.loader.exec_module, self._changes[name]

        @functools.wraps(execute)
        def execute_and_change(module: types.ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


class _Driver:
    """A driver of one GPU, as torch tells of it."""

    def get_current_target(self) -> Any:
        """Triton's name of it."""
        compiler: Any = importlib.import_module("triton.backends.compiler")
        properties: Any = torch.cuda.get_device_properties(0)
        arch = properties.gcnArchName
        kind, number = ("hip", arch) if arch else ("cuda", 10 * properties.major + properties.minor)
        return compiler.GPUTarget(kind, number, properties.warp_size)

    def get_active_torch_device(self) -> Any:
        return torch.device("cuda", 0)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: Any = None) -> int:
        return 0


def install(launched: Callable[[Sequence[Any]], None], bench: Callable[..., Any]) -> None:
    """launched: is told of the arguments of a kernel, which may write what it is given. bench: in Triton's place."""

    def launch(*args: Any, **kwargs: Any) -> None:
        launched([*args, *kwargs.values()])

    def change_kernels(module: Any) -> None:
        module.KernelInterface.__getitem__ = lambda self, grid: launch
        module.JITFunction.run = lambda self, *args, **kwargs: launch(*args, **kwargs)

    def change_tuner(module: Any) -> None:
        module.Autotuner.run = lambda self, *args, **kwargs: launch(*args, **kwargs)

    def change_testing(module: Any) -> None:
        module.do_bench = module.do_bench_cudagraph = bench

    def change_driver(module: Any) -> None:
        module.driver.set_active(_Driver())

    changes = {
        "triton.runtime.driver": change_driver,
        "triton.runtime.jit": change_kernels,
        "triton.runtime.autotuner": change_tuner,
        "triton.testing": change_testing,
    }
    for name, change in changes.items():
        if name in sys.modules:
            change(sys.modules[name])
    sys.meta_path.insert(0, _PatchingFinder(changes))
