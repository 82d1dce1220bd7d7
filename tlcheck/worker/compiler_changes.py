"""Whether a kernel file has changed the compiler: what it lowers to then follows from more than its IR."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from operator import is_
from types import ModuleType
from typing import Any

from tilelang import tvm

try:
    from tvm_ffi.registry import list_global_func_names
except ImportError:  # 0.1.6.post2
    list_global_func_names = tvm.ffi.registry.list_global_func_names

_PACKAGES = ("tilelang", "tvm", "tvm_ffi")


@dataclass(frozen=True)
class CompilerState:
    """The compiler of this process. functions: of each module, name -> what is there. registered: names of functions
    that native code may call. variables: of the environment.

    What is changed below that, such as one method of a class, is not seen.
    """

    functions: Mapping[str, Mapping[str, Any]]
    registered: frozenset[str]
    variables: Mapping[bytes, bytes]

    def is_as_before(self) -> bool:
        """Whether all is still there, as it was when this was made; what was imported since may have come."""
        return (
            self.variables == os.environb
            and self.registered == _registered()
            and all(
                module in sys.modules and _has(vars(sys.modules[module]), functions)
                for module, functions in self.functions.items()
            )
        )


def _has(content: Mapping[str, Any], functions: Mapping[str, Any]) -> bool:
    return all(map(is_, map(content.get, functions), functions.values()))  # 18,000 after each kernel


def present() -> CompilerState:
    """The compiler as it is now."""
    functions = {
        module: {name: value for name, value in list(vars(content).items()) if callable(value)}
        for module, content in list(sys.modules.items())
        if module.partition(".")[0] in _PACKAGES and isinstance(content, ModuleType)
    }
    # not os.environ: what is read there counts as read by the kernel
    return CompilerState(functions, _registered(), dict(os.environb))


def _registered() -> frozenset[str]:
    return frozenset(map(str, list_global_func_names()))
