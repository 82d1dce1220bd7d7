"""Source lines of statements, for the releases whose IR has none (before 0.1.13).

The functions of `tilelang.language` that make atomics and tile operators, and the builder's function that makes stores,
are wrapped to note who calls them. The statements that hold their calls then get a TVM span with file and line, as
newer releases give to all statements: passes keep spans and look at them for messages only, so the lowered code is the
same.

Newer releases give a statement that a macro of TileLang's makes, as T.reduce_sum is one, the line of the loop, branch
or launch around it. It gets that of the macro's call.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import tilelang
import tilelang.language
from tilelang import tvm

_tir = getattr(tvm, "tirx", None) or tvm.tir
_PREFIX = _tir.__name__.rpartition(".")[2]
_HAS_SPANS = hasattr(getattr(tilelang, "ir", None), "get_stmt_span")
_OPERATORS = (  # how the names of functions begin that make calls
    "atomic_",
    "copy",
    "gemm",
    "fill",
    "clear",
    "reduce_",
    "cumsum",
    "cummax",
    "finalize_reducer",
    "transpose",
    "c2d_im2col",
)
_TILELANG = str(Path(tilelang.__file__).parent)


@dataclass
class StatementLines:
    """The calls and stores made since `watch`: TVM call node, or buffer, and where it was written."""

    _calls: list[tuple[Any, str, int]] = field(default_factory=list)
    _stores: list[tuple[Any, tuple[str, int] | None]] = field(default_factory=list)

    def watch(self) -> None:
        """Note what kernels make from now on; call it before the kernel file is imported."""
        if _HAS_SPANS:
            _tir.call_intrin = self._watched(_tir.call_intrin, lambda call: _is_operator(call) and _is_of_macro())
            return
        for name, function in list(vars(tilelang.language).items()):
            if name.startswith(_OPERATORS) and inspect.isfunction(function):
                setattr(tilelang.language, name, self._watched(function))
        _tir.call_intrin = self._watched(_tir.call_intrin, _is_operator)  # by macros, which return none of their calls
        for module in (_builder(), getattr(tilelang.language, _PREFIX, None)):
            if module is not None and inspect.isfunction(getattr(module, "buffer_store", None)):
                module.buffer_store = self._watched_store(module.buffer_store)

    def stamp(self, prim_func: Any) -> Any:
        """The same PrimFunc with the noted lines as spans of its statements."""
        if not self._calls and not self._stores:
            return prim_func
        if _HAS_SPANS:
            self._set_spans(prim_func.body)
            return prim_func
        names = [f"{_PREFIX}.{name}" for name in _STAMPED if hasattr(_tir, name)]
        places = self._places(prim_func.body)

        def stamped(statement: Any) -> Any:
            return self._stamped(statement, places)

        return prim_func.with_body(_tir.stmt_functor.ir_transform(prim_func.body, None, stamped, names))

    def _set_spans(self, body: Any) -> None:
        """Give statements that hold noted calls their lines, in place."""
        noted = {hash(call): (call, file, line) for call, file, line in self._calls}

        def visit(node: Any) -> None:
            if isinstance(node, _tir.Evaluate) and (found := noted.get(hash(node.value))) is not None:
                call, file, line = found
                if node.value.same_as(call):
                    tilelang.ir.set_stmt_span(node, tilelang.ir.make_span(file, line))

        _tir.stmt_functor.post_order_visit(body, visit)

    def _places(self, body: Any) -> dict[int, tuple[Any, tuple[str, int]]]:
        """The stores of a kernel with their places, by hash; none if they are not those that were noted, in order."""
        stores: list[Any] = []

        def visit(node: Any) -> None:
            if isinstance(node, _tir.BufferStore):
                stores.append(node)

        _tir.stmt_functor.post_order_visit(body, visit)
        buffers = {hash(store.buffer) for store in stores}
        noted = [entry for entry in self._stores if hash(entry[0]) in buffers]
        pairs = list(zip(noted, stores, strict=False))
        if len(noted) != len(stores) or not all(entry[0].same_as(store.buffer) for entry, store in pairs):
            return {}
        return {hash(store): (store, entry[1]) for entry, store in pairs if entry[1] is not None}

    def _watched(
        self, function: Callable[..., Any], counts: Callable[[Any], bool] = lambda made: True
    ) -> Callable[..., Any]:
        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            made = function(*args, **kwargs)
            place = caller(sys._getframe(1)) if isinstance(made, _tir.Call) and counts(made) else None
            if place:
                self._calls.append((made, *place))
            return made

        return watched

    def _watched_store(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def watched(buffer: Any, *args: Any, **kwargs: Any) -> Any:
            self._stores.append((buffer, caller(sys._getframe(1))))
            return function(buffer, *args, **kwargs)

        return watched

    def _stamped(self, statement: Any, places: dict[int, tuple[Any, tuple[str, int]]]) -> Any:
        """The statement with a span if it is a noted store or its value holds a noted call, else None: unchanged."""
        found: list[tuple[str, int]] = []

        def visit(node: Any) -> None:
            if isinstance(node, _tir.Call):
                found.extend((file, line) for call, file, line in self._calls if node.same_as(call))

        _tir.stmt_functor.post_order_visit(statement.value, visit)
        store, place = places.get(hash(statement), (None, ("", 0)))
        if store is not None and store.same_as(statement):
            found.append(place)
        if not found:
            return None
        file, line = found[0]
        span = tvm.ir.Span(tvm.ir.SourceName(file), line, line, 1, 1)
        return _STAMPED[type(statement).__name__](statement, span)


_STAMPED: dict[str, Callable[[Any, Any], Any]] = {
    "Evaluate": lambda s, span: _tir.Evaluate(s.value, span),
    "BufferStore": lambda s, span: _tir.BufferStore(s.buffer, s.value, s.indices, s.predicate, span),
    "LetStmt": lambda s, span: _tir.LetStmt(s.var, s.value, s.body, span),
    "Bind": lambda s, span: _tir.Bind(s.var, s.value, span),
}


def _is_operator(call: Any) -> bool:
    """Whether a call is a tile operator: `tl.tileop.reduce`, in earlier releases `tl.reduce`."""
    name = str(getattr(call.op, "name", "")).rpartition(".")[2]
    return name.startswith(tuple(operator.rstrip("_") for operator in _OPERATORS))


def _is_of_macro() -> bool:
    """Whether a macro of TileLang's runs, and not one of the kernel's file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_inside(frame):
        if type(frame.f_locals.get("self")).__name__ == "Macro":
            return True
        frame = frame.f_back
    return False


def _is_inside(frame: FrameType) -> bool:
    """Whether a frame is TileLang's or this module's."""
    return frame.f_code.co_filename.startswith(("<", _TILELANG, __file__))


def _builder() -> Any:
    """The module whose functions make the statements of a kernel."""
    return getattr(getattr(getattr(tvm, "script", None), "ir_builder", None), _PREFIX, None)


def caller(frame: FrameType | None) -> tuple[str, int] | None:
    """File and line outside of TileLang that this frame came from; None where there is none."""
    while frame is not None:
        if not _is_inside(frame):
            return frame.f_code.co_filename, frame.f_lineno
        if place := _parsed(frame):
            return place
        frame = frame.f_back
    return None


def _parsed(frame: FrameType) -> tuple[str, int] | None:
    """Return what a frame of the script parser is looking at: 0.1.6 reads a kernel's source and never runs it."""
    source = getattr(getattr(frame.f_locals.get("self"), "diag", None), "source", None)
    line = getattr(frame.f_locals.get("node"), "lineno", None)
    return (source.source_name, source.start_line + line - 1) if source and line else None
