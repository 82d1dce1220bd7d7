"""Define what is run: a case with its build arguments, and its compiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tlcheck.case import Case


@dataclass(frozen=True)
class LoadedCase:
    """A case with its build arguments."""

    case: Case
    args: dict[str, Any]
    name: str


@dataclass(frozen=True)
class CompiledKernel:
    """names: the parameters in order. launch: called with one value for each. source: the CUDA source."""

    names: tuple[str, ...]
    launch: Callable[..., Any]
    source: str
