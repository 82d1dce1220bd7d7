"""A stand-in for TileLang: enough of its surface to find and build kernels, none of it to lower them.

Lowering one calls the function that the kernel was made with, so that a test decides what happens there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from . import tvm as tvm

__version__ = "0.0.1"


class JITImpl:
    """The object that `@tilelang.jit` makes."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        self.signature = inspect.signature(func)
        self.pass_configs: dict[str, Any] = {}
        self.target: Any = None

    def get_tir(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)


jit = JITImpl


def lower(prim_func: Any, target: Any, **options: bool) -> None:
    prim_func.on_lower()
