"""Which function of the script a kernel comes from, and with which arguments."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import tilelang

from tlcheck.worker import kernels

_PACKAGES = (str(Path(tilelang.__file__).parent), str(Path(__file__).parents[2]))
_LONGEST = 60  # characters of one argument


@dataclass(frozen=True)
class Call:
    """A call of a JIT function. given: the arguments that were passed, as text, tensors as their dtype and shape.

    build: those of them that are no tensors, as they are. file, line: where the function begins.
    """

    name: str
    file: str
    line: int
    given: Mapping[str, str] = field(default_factory=dict)
    build: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """`NAME[k=v,...]` with the arguments that are no tensors."""
        args = ",".join(f"{key}={self.given[key]}" for key in self.build)
        return f"{self.name}[{args}]" if args else self.name


_current: list[Call] = []


@contextlib.contextmanager
def calling(jit: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[None]:
    """While a JIT function is being compiled."""
    _current.append(call_of(jit, args, kwargs))
    try:
        yield
    finally:
        _current.pop()


def current(prim_func: Any) -> Call:
    """The call that a kernel comes from; for a PrimFunc that is compiled as it is, where that happens."""
    if _current:
        return _current[-1]
    name = str(dict(prim_func.attrs or {}).get("global_symbol", "kernel"))
    file, line = _place()
    return Call(name, file, line)


def call_of(jit: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """A call of this JIT function with these arguments."""
    code = kernels.code_of(jit)
    name = code.co_name if code else getattr(jit, "__name__", "kernel")
    values = _bound(jit, args, {key: value for key, value in kwargs.items() if not key.startswith("__")})
    build = {key: value for key, value in values.items() if not _is_tensor(value)}
    given = {key: _text(value) for key, value in values.items()}
    return Call(name, *_begin(code), given, build)


def _begin(code: CodeType | None) -> tuple[str, int]:
    return (code.co_filename, code.co_firstlineno) if code else _place()


def _bound(jit: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    signature = getattr(jit, "signature", None) or inspect.signature(getattr(jit, "func", jit))
    try:
        return dict(signature.bind_partial(*args, **kwargs).arguments)
    except TypeError:
        return dict(kwargs)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _text(value: Any) -> str:
    if _is_tensor(value):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    plain = type(value).__name__ in ("dtype", "DataType", "Var")
    text = " ".join((str(value) if plain else repr(value)).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _place() -> tuple[str, int]:
    """File and line outside of TileLang and tlcheck that this was called from."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if not file.startswith(("<", *_PACKAGES)):
            return file, frame.f_lineno
        frame = frame.f_back
    return "", 1
