"""Handlers of calls and attributes, by name. Each family's file registers its own; `load` imports all of them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import TypeVar

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.codes import Code, Computation, Step
from tlcheck.execute.stops import NotModelled
from tlcheck.signatures.table import FAMILY_OF
from tlcheck.snapshot.ir import Attr, Block, Expr, For, Store
from tlcheck.targets.target import Family, Target

CallHandler = Callable[["Expr", "KernelProgram"], "Computation | Code"]
AttributeHandler = Callable[["Attr", "KernelProgram"], "Step"]
BlockHandler = Callable[["Block", "KernelProgram"], None]
StoreHandler = Callable[["Store", "KernelProgram"], "Step | None"]
LoopHandler = Callable[["For", "KernelProgram"], "Step | None"]
H = TypeVar("H", CallHandler, AttributeHandler, BlockHandler)

CALLS: dict[str, CallHandler] = {}
EXTERNS: dict[str, CallHandler] = {}
OF_FAMILY: dict[str, CallHandler] = {}
"""What targets of one family have in the place of a handler for all: by the key of `_own`."""
FORMULAS: set[object] = set()
"""Handlers that do the same where floats are elements of a field (`execute.field`): they move values, or compute them
with what `compile.formulas` knows.
"""
ATTRIBUTES: dict[str, AttributeHandler] = {}
ANNOTATIONS: dict[str, BlockHandler] = {}
STORES: list[StoreHandler] = []
LOOPS: list[LoopHandler] = []
# Attributes that say nothing about what a kernel does.
WITHOUT_MEANING = frozenset(
    {
        "kWarpSpecializationScope",
        "lexical_alloc_scope",
        "tl.assume",
        "tl.assume_requires_runtime_check",
        "pragma_unroll_explicit",
        "storage_alignment",
        "tl.pipeline_context_num_stages",
        "warp_specialize",  # T.ws: the threads are named by the condition around it
    }
)


def call(*names: str, family: Family | None = None, formula: bool = False) -> Callable[[CallHandler], CallHandler]:
    """Register a handler of calls (tile operators, instructions, functions) of these names.

    family: the targets that it is for; None for all that have none of their own. formula: it is one of `FORMULAS`.
    """
    if family is None:
        return _into(CALLS, names, formula)
    return _into(OF_FAMILY, [_own(n, family) for n in names], formula)


def handler_of(name: str, external: bool, target: Target) -> CallHandler:
    """Return the handler of a call. Raises NotModelled for a name without one, or that the target lacks."""
    found = OF_FAMILY.get(_own(name, target.family)) or (EXTERNS if external else CALLS).get(name)
    if found is None:
        raise NotModelled(name)
    require(name, target)
    return found


def _own(name: str, family: Family) -> str:
    return f"{name} of {family}"


def require(name: str, target: Target) -> None:
    """Raise NotModelled for an instruction of a family that a target does not have."""
    family = FAMILY_OF.get(name)
    if family is not None and family.needs and family.needs not in target.instructions:
        raise NotModelled(f"{name} on {target.arch}")


def extern(*names: str, family: Family | None = None, formula: bool = False) -> Callable[[CallHandler], CallHandler]:
    """Register a handler of functions of the device library: names without template arguments and `::run`.

    The call that the handler gets has the function's full name as its value, and the function's arguments. family,
    formula: as for `call`.
    """
    return _into(EXTERNS, names, formula) if family is None else call(*names, family=family, formula=formula)


def attribute(*names: str) -> Callable[[AttributeHandler], AttributeHandler]:
    """Register a handler of attribute statements with these keys."""
    return _into(ATTRIBUTES, names)


def annotation(*names: str) -> Callable[[BlockHandler], BlockHandler]:
    """Register what to do, before a block is compiled, where it has an annotation with this key."""
    return _into(ANNOTATIONS, names)


def store(handler: StoreHandler) -> StoreHandler:
    """Register a handler of stores that mean more than they say; it returns None for those that do not."""
    STORES.append(handler)
    return handler


def loop(handler: LoopHandler) -> LoopHandler:
    """Register a handler of loops that run as a whole; it returns None for others."""
    LOOPS.append(handler)
    return handler


def is_without_meaning(key: str) -> bool:
    """Whether an attribute says nothing about what a kernel does."""
    return key in WITHOUT_MEANING or key.startswith("pragma_")


def _into(table: dict[str, H], names: Iterable[str], formula: bool = False) -> Callable[[H], H]:
    def register(handler: H) -> H:
        if formula:
            FORMULAS.add(handler)
        for name in names:
            if name in table:
                raise ValueError(f"{name} has two handlers")
            table[name] = handler
        return handler

    return register


def load() -> None:
    """Import every file of compile/ and ops/, so that what each of them registers is known."""
    for package in ("tlcheck.execute.compile", "tlcheck.execute.ops.tile", "tlcheck.execute.ops.thread"):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            importlib.import_module(f"{package}.{module.name}")
