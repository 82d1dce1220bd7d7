"""Triton, where it is installed, believes in the device that torch reports: some libraries ask it when imported."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any


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
        properties: Any = _torch().cuda.get_device_properties(0)
        arch = properties.gcnArchName
        kind, number = ("hip", arch) if arch else ("cuda", 10 * properties.major + properties.minor)
        return compiler.GPUTarget(kind, number, properties.warp_size)

    def get_active_torch_device(self) -> Any:
        return _torch().device("cuda", 0)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: Any = None) -> int:
        return 0


def change(changes: Mapping[str, Callable[[Any], None]]) -> None:
    """Change modules by name: those that are imported now, others once they are."""
    for name, work in changes.items():
        if name in sys.modules:
            work(sys.modules[name])
    sys.meta_path.insert(0, _PatchingFinder(changes))


def pretend() -> None:
    change({"triton.runtime.driver": lambda module: module.driver.set_active(_Driver())})


def _torch() -> Any:
    return importlib.import_module("torch")
