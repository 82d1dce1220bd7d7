"""Operators that a script registers with torch (`torch.library`): they run as a GPU would run them.

torch's dispatcher calls an implementation below torch's functions, where nothing says that tensors are on the GPU; it
has none for the GPU, since all tensors are on the CPU to it; and for a tensor without values it calls, in place of the
implementation, the function that only tells the shapes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_OWN = ("aten", "prim", "prims")  # torch's
_ON_GPU = ("CUDA", "CompositeExplicitAutograd")
_AROUND = ("", "CompositeImplicitAutograd", "Autograd", "AutogradCUDA")  # they run what a script has written, too


class Operators:
    """A record of what a script has registered. mode: the one that it runs in."""

    def __init__(self, mode: TorchFunctionMode) -> None:
        self._mode = mode
        self._run: dict[str, Callable[..., Any]] = {}  # name with overload -> its implementation for the GPU
        self._names: set[str] = set()  # without overload

    def watch(self) -> None:
        """Note from now on what is registered."""
        library: Any = torch.library.Library
        register = library.impl

        @functools.wraps(register)
        def impl(own: Any, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> Any:
            key = dispatch_key or own.dispatch_key
            name = op_name if isinstance(op_name, str) else op_name.name()
            name = str(name) if "::" in name else f"{own.ns}::{name}"
            if own.ns in _OWN or key not in (*_ON_GPU, *_AROUND, "CPU") or fn is torch.library.fallthrough_kernel:
                return register(own, op_name, fn, dispatch_key, **options)
            if key == "CPU":
                return None if name in self._run else register(own, op_name, fn, dispatch_key, **options)
            self._names.add(name.partition(".")[0])
            inside = self._inside(fn)
            if key in _ON_GPU and (key == "CUDA" or name not in self._run):
                self._run[name] = inside
            if key.endswith("CUDA"):
                register(own, op_name, inside, key.replace("CUDA", "CPU"), **options)
            return register(own, op_name, inside, dispatch_key, **options)

        library.impl = impl

    def has(self, func: Any) -> bool:
        """Whether it is an operator that has been registered."""
        if isinstance(func, torch._ops.OpOverload):
            return func.name().partition(".")[0] in self._names
        return isinstance(func, torch._ops.OpOverloadPacket) and func._qualified_op_name in self._names

    def implementation(self, func: Any) -> Callable[..., Any] | None:
        """Return what runs on a GPU for an operator; None where nobody has registered it."""
        return self._run.get(func.name()) if self._run and isinstance(func, torch._ops.OpOverload) else None

    def _inside(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self._mode:
                return function(*args, **kwargs)

        return run
