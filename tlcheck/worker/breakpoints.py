"""`breakpoint()` in a kernel. Its Python runs only while the kernel is built: the call is put into the TIR.

There the interpreter stops for a debugger (`tlcheck.execute.observe.kernel_console`). Elsewhere it means nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tilelang import tvm

from tlcheck.worker.statement_lines import caller

_tir = getattr(tvm, "tirx", None) or tvm.tir


def watch() -> None:
    """Put calls from now on into the TIR."""
    sys.breakpointhook = _call


def _call(*_args: object, **_options: object) -> Any:
    """`tlcheck_breakpoint(file, line, name, value, ...)` with the variables that the user's code has names for."""
    frame = sys._getframe(1)
    file, line = caller(frame) or ("", 0)
    own = frame.f_locals if frame.f_code.co_filename == file else {}
    scope = list(_scope())
    named = [
        part
        for name, value in own.items()
        if isinstance(value, _tir.Var) and any(value.same_as(v) for v in scope)
        for part in (name, value)
    ]
    return _tir.call_extern("handle", "tlcheck_breakpoint", file, line, *named)


def _scope() -> Iterator[Any]:
    """The loop, block and thread variables around what is being built: a Python name may be one of a loop before."""
    builder = tvm.script.ir_builder.IRBuilder
    for frame in builder.current().frames if builder.is_in_scope() else ():
        if hasattr(frame, "iter_var"):
            yield frame.iter_var.var
        yield from getattr(frame, "vars", ())
