"""A kernel in torch that writes S = 2 A + 1 and adds the rows of A to B, and the ways in which it may go wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from tlcheck.case import Case, Variant
from tlcheck.worker.gpu.loaded_case import CompiledKernel, LoadedCase
from tlcheck.worker.gpu.task import VerifyTask

Launch = Callable[[Any, Any, Any], None]
ROWS, COLUMNS = 24, 40


def inputs(args: Mapping[str, Any], generator: Any, device: Any) -> tuple[Any, ...]:
    a = torch.randn((args["rows"], COLUMNS), generator=generator)
    return a, torch.zeros_like(a), torch.zeros(COLUMNS)


def reference(args: Mapping[str, Any], a: Any, s: Any, b: Any) -> Mapping[str, Any]:
    return {"S": 2 * a.double() + 1, "B": b.double() + a.double().sum(dim=0)}


def large(args: Mapping[str, Any], generator: Any, device: Any) -> tuple[Any, ...]:
    a, s, b = inputs(args, generator, device)
    return a * 1e4, s, b


def longer(args: Mapping[str, Any], generator: Any, device: Any) -> tuple[Any, ...]:
    return inputs({"rows": ROWS + 1}, generator, device)


CASE = Case(
    None,
    {"rows": ROWS},
    inputs=inputs,
    reference=reference,
    terms=ROWS,
    variants={"large": Variant(large), "longer": Variant(longer)},
)


def right(a: Any, s: Any, b: Any) -> None:
    s.copy_(2 * a + 1)
    b += a.sum(dim=0)


def subject(case: Case = CASE) -> LoadedCase:
    return LoadedCase(case, dict(case.args), "case")


def compiled(launch: Launch) -> CompiledKernel:
    return CompiledKernel(("A", "S", "B"), launch, "")


def task(**changes: Any) -> VerifyTask:
    fields: dict[str, Any] = {"output": "", "file": "", "name": "", "device": "cpu"}
    effects: dict[str, Any] = {"poisoned": ("S",), "updated": ("B",), "float_atomics": True}
    return VerifyTask(**{**fields, **effects, **changes})
