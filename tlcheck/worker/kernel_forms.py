"""The forms that a kernel takes in the releases, and how each gives its PrimFunc.

A kernel is a PrimFunc, a function that returns one, or a JIT function: an object with `get_tir` since 0.1.7, a plain
function with `__wrapped__` in 0.1.6. An autotuner may lie around a JIT function; it is taken off.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import CodeType
from typing import Any

import tilelang
from tilelang import tvm

from tlcheck.worker.failures import RequestError

_PrimFunc = (getattr(tvm, "tirx", None) or tvm.tir).PrimFunc
_TILELANG = Path(tilelang.__file__).parent
_UNBOUND_SIZE = re.compile(r"Cannot find value for constexpr variable `(\w+)`")  # T.const in a traced kernel


@dataclass(frozen=True)
class Built:
    """A PrimFunc and the configuration of passes that its JIT function would lower it with."""

    prim_func: Any
    pass_configs: Mapping[str, Any]


def is_kernel(value: Any) -> bool:
    """Whether this is surely a kernel: any other function shows it only when called."""
    return isinstance(value, _PrimFunc) or _is_jit(_without_autotuner(value))


def parse_value(text: str) -> Any:
    """A build argument as the user typed it: a Python literal, else a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def build(kernel: Any, args: Mapping[str, Any], name: str) -> Built:
    """The PrimFunc for these build arguments. Raises RequestError if they do not fit, and what the kernel raises."""
    kernel = _without_autotuner(kernel)
    check_args(kernel, args, name)
    if isinstance(kernel, _PrimFunc):
        return Built(kernel, {})
    function, configs = _builder(kernel)
    try:
        prim_func = function(**args)
    except ValueError as error:
        if unbound := _UNBOUND_SIZE.search(str(error)):
            raise RequestError(f"{name} needs --arg {unbound[1]}=...") from error
        raise
    if not isinstance(prim_func, _PrimFunc):
        raise RequestError(f"{name} returned {type(prim_func).__name__}, not a PrimFunc: is it a kernel?")
    # TileLang makes a kernel that does nothing of a parameter with a negative dimension
    for buffer in prim_func.buffer_map.values():
        shape = [int(dim) if hasattr(dim, "value") else dim for dim in buffer.shape]
        if any(isinstance(dim, int) and dim < 0 for dim in shape):
            raise RequestError(f"{name}: {buffer.name} would have the shape {tuple(shape)}: see the build arguments")
    own = dict((prim_func.attrs or {}).get("tilelang_pass_configs") or {})  # T.annotate_pass_configs
    return Built(prim_func, {**own, **configs})


def _builder(kernel: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function that makes the PrimFunc, and the JIT function's configuration of passes."""
    if hasattr(kernel, "get_tir"):
        kernel.target = tvm.target.Target.current()  # the arch asked for, not the one of the decorator
        return kernel.get_tir, dict(kernel.pass_configs or {})
    if _is_jit(kernel):
        options = kernel(__return_compile_arguments=True)
        return kernel.__wrapped__, dict(options["pass_configs"] or {})
    return kernel, {}


def check_args(kernel: Any, args: Mapping[str, Any], name: str) -> None:
    """Raise RequestError for build arguments that are missing or unknown."""
    kernel = _without_autotuner(kernel)
    if isinstance(kernel, _PrimFunc):
        parameters: dict[str, inspect.Parameter] = {}
        tensors = open_ended = False
    else:
        parameters = dict(_signature(kernel).parameters)
        tensors = bool(getattr(getattr(kernel, "func", None), "tensor_args", None))
        open_ended = tensors or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    known = [key for key, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    for key in args:
        if key not in known and not open_ended:
            raise RequestError(f"{name} has no build argument {key!r}; {_known(key, known)}")
    missing = [key for key in known if parameters[key].default is inspect.Parameter.empty and key not in args]
    if missing and not tensors:  # in such a function some parameters are tensors, which are not built with
        raise RequestError(f"{name} needs {' '.join(f'--arg {key}=...' for key in missing)}")


def numbers(kernel: Any) -> dict[str, int]:
    """Return the build arguments that are whole numbers by default."""
    kernel = _without_autotuner(kernel)
    if isinstance(kernel, _PrimFunc):
        return {}
    defaults = {name: parameter.default for name, parameter in _signature(kernel).parameters.items()}
    return {name: value for name, value in defaults.items() if type(value) is int}


def _known(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"it takes {', '.join(known)}" if known else "it takes none"


def code_of(kernel: Any) -> CodeType | None:
    """The code object of the user's function, None where the release does not keep it."""
    kernel = _without_autotuner(kernel)
    for attribute in ("func", "orig_func", "__wrapped__"):
        kernel = getattr(kernel, attribute, None) or kernel
    code = getattr(kernel, "__code__", None)
    return code if isinstance(code, CodeType) else None


def configs_as_text(configs: Mapping[str, Any]) -> dict[str, str]:
    return {str(key.value if isinstance(key, Enum) else key): str(value) for key, value in configs.items()}


def _signature(kernel: Any) -> inspect.Signature:
    found = getattr(kernel, "signature", None)
    return found if isinstance(found, inspect.Signature) else inspect.signature(kernel)


def _without_autotuner(value: Any) -> Any:
    value = getattr(value, "jit_impl", value)
    while _comes_from(value, "autotuner"):
        value = value.__wrapped__
    return value


def _is_jit(value: Any) -> bool:
    return not isinstance(value, type) and (hasattr(value, "get_tir") or _comes_from(value, "jit"))


def _comes_from(value: Any, package: str) -> bool:
    """Whether this is a user's function wrapped by that package of tilelang."""
    if not inspect.isfunction(value) or not hasattr(value, "__wrapped__"):
        return False
    return (_TILELANG / package) in Path(value.__code__.co_filename).parents
