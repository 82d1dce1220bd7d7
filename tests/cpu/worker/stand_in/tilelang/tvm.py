from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any


class PrimFunc:
    attrs: dict[str, Any] = {}  # noqa: RUF012
    buffer_map: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, on_lower: Callable[[], object]) -> None:
        self.on_lower = on_lower


class Target(nullcontext[None]):
    def __init__(self, fields: dict[str, str]) -> None:
        super().__init__()

    @staticmethod
    def current() -> None:
        return None


def pass_context(**options: Any) -> nullcontext[None]:
    return nullcontext()


tir = SimpleNamespace(PrimFunc=PrimFunc, Call=(), call_intrin=lambda *_: None, __name__="tvm.tir")
target = SimpleNamespace(Target=Target)
transform = SimpleNamespace(PassContext=pass_context)
instrument = SimpleNamespace(pass_instrument=lambda instrument: instrument)
