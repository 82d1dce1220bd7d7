"""Find which function of the script a kernel comes from, and with which arguments."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import tilelang
from tilelang import tvm

from tlcheck.worker import kernel_forms
from tlcheck.worker.dependencies import is_standard

_PACKAGES = (str(Path(tilelang.__file__).parent), str(Path(__file__).parents[2]))
_LONGEST = 60  # characters of one argument
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # another one in each run
_Var = (getattr(tvm, "tirx", None) or tvm.tir).Var


@dataclass(frozen=True)
class _TensorShape:
    """A tensor's stand-in: a call must not keep the device's memory."""

    dtype: Any
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """A call of a JIT function. given: the arguments that were passed, as text, tensors as their dtype and shape.

    values: the same as they are, but for tensors. file, line: where the function begins. jit: it itself, None for a
    bare PrimFunc.
    """

    name: str
    file: str
    line: int
    given: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    jit: Any = None

    @property
    def label(self) -> str:
        """`NAME[k=v,...]` with the arguments that are no tensors."""
        args = ",".join(f"{key}={self.given[key]}" for key, value in self.values.items() if not _is_tensor(value))
        return f"{self.name}[{args}]" if args else self.name

    def origin(self, script: str) -> dict[str, Any] | None:
        """See `tlcheck.lower.runs.CapturedOrigin`. None where the function is no module's, or an argument has no
        literal.
        """
        sources = {key: _source(value) for key, value in self.values.items()}
        if self.jit is None or None in sources.values():
            return None
        own = Path(self.file).resolve() == Path(script)
        for name, module in sys.modules.copy().items():
            if kernel_forms.code_of(vars(module).get(self.name)) is kernel_forms.code_of(self.jit):
                return {"module": "" if own else name, "function": self.name, "args": sources}
        return None


_current: ContextVar[Call | None] = ContextVar("call", default=None)  # tuners compile in several threads
_built: dict[Any, Call] = {}  # by what it made, where that is compiled later
_submitted: ContextVar[tuple[str, int]] = ContextVar("submitted", default=("", 1))  # to a pool, from there


def note() -> None:
    """Note from now on which JIT function is being compiled, in pools of threads too."""
    _note_pools()
    module: Any = importlib.import_module("tilelang.jit")  # `tilelang.jit` is the decorator
    implementation: Any = getattr(module, "JITImpl", None)
    if implementation is None:
        _note_built(module._JitImplementation)
        return
    compile_function = implementation.compile

    @functools.wraps(compile_function)
    def compile_noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        with calling(self, args, kwargs):
            return compile_function(self, *args, **kwargs)

    implementation.compile = compile_noted
    make = implementation.get_tir

    @functools.wraps(make)
    def make_noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = make(self, *args, **kwargs)
        _built[made] = call_of(self, args, kwargs)
        return made

    implementation.get_tir = make_noted


def _note_pools() -> None:
    """Work of a pool has the context that it was submitted in."""
    pool: Any = ThreadPoolExecutor
    submit = pool.submit

    @functools.wraps(submit)
    def submit_noted(self: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        context = contextvars.copy_context()
        context.run(_submitted.set, _place())
        return submit(self, context.run, function, *args, **kwargs)

    pool.submit = submit_noted


def _note_built(decorator: Any) -> None:
    """The same in 0.1.6, where a JIT function is a plain one: by the PrimFunc that it makes."""
    decorate = decorator.__call__

    def decorate_noted(self: Any, func: Any) -> Any:
        if not inspect.isfunction(func):
            return decorate(self, func)

        @functools.wraps(func)
        def build(*args: Any, **kwargs: Any) -> Any:
            made = func(*args, **kwargs)
            _built[made] = call_of(func, args, kwargs)
            return made

        decorated = decorate(self, build)
        decorated.__wrapped__ = func
        return decorated

    decorator.__call__ = decorate_noted


@contextlib.contextmanager
def calling(jit: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Note, while this is open, that a JIT function is being compiled."""
    token = _current.set(call_of(jit, args, kwargs))
    try:
        yield
    finally:
        _current.reset(token)


def current(prim_func: Any) -> Call:
    """The call that a kernel comes from; for a PrimFunc that is compiled as it is, where that happens."""
    if call := _current.get() or _built.get(prim_func):
        return call
    name = str(dict(prim_func.attrs or {}).get("global_symbol", "kernel"))
    file, line = _place()
    buffers = [prim_func.buffer_map[var] for var in prim_func.params if var in prim_func.buffer_map]
    return Call(name, file, line, {str(b.name): f"{b.dtype}{_shape(b)}" for b in buffers})


def call_of(jit: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """A call of this JIT function with these arguments."""
    code = kernel_forms.code_of(jit)
    name = code.co_name if code else getattr(jit, "__name__", "kernel")
    values = _bound(jit, args, {key: value for key, value in kwargs.items() if not key.startswith("__")})
    values = {key: _without_content(value) for key, value in values.items()}
    given = {key: _text(value) for key, value in values.items()}
    return Call(name, *((code.co_filename, code.co_firstlineno) if code else _place()), given, values, jit)


def kind_of(target: Any) -> str:
    """Return what the script compiles for: `cuda`, for example; empty where it leaves that open."""
    kind = getattr(target, "kind", None)
    text = str(getattr(kind, "name", "") or target or "auto").split()[0]
    keys = [str(key) for key in getattr(target, "keys", ())]
    return "cutedsl" if "cutedsl" in keys else "" if text == "auto" else text


def _bound(jit: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    signature = getattr(jit, "signature", None) or inspect.signature(getattr(jit, "func", jit))
    try:
        return dict(signature.bind_partial(*args, **kwargs).arguments)
    except TypeError:
        return dict(kwargs)


def _without_content(value: Any) -> Any:
    return _TensorShape(value.dtype, tuple(value.shape)) if _is_tensor(value) else value


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _text(value: Any) -> str:
    if _is_tensor(value):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    plain = type(value).__name__ in ("dtype", "DataType")
    shown = str(value.name) if isinstance(value, _Var) else str(value) if plain else repr(value)
    text = _ADDRESS.sub("", " ".join(shown.split()))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _shape(buffer: Any) -> str:
    return f"[{', '.join(map(str, buffer.shape))}]"


def _source(value: Any) -> str | None:
    """The value as Python source that needs nothing but torch; None where there is none."""
    if _is_tensor(value):
        return f"torch.empty({tuple(value.shape)}, dtype={value.dtype}, device='meta')"
    if type(value).__name__ in ("dtype", "DataType"):
        return repr(str(value).removeprefix("torch."))
    plain = isinstance(value, (int, float, str, bool, type(None)))
    sequence = isinstance(value, (tuple, list)) and all(isinstance(item, (int, float, str, bool)) for item in value)
    return repr(value) if plain or sequence else None


def _place() -> tuple[str, int]:
    """File and line of the user's that this was called from; in a pool's thread, that the work was submitted from."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(("<", *_PACKAGES)) and not is_standard(file):
            return file, frame.f_lineno
        frame = frame.f_back
    return _submitted.get()
