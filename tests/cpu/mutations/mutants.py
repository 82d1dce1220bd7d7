"""Wrong lowerings made from right ones: a mutant changes one thing at one checkpoint of a snapshot, or one layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.cpu.mutations.calls import CALLS
from tests.cpu.mutations.layouts import of_layouts
from tests.cpu.mutations.surroundings import around
from tests.cpu.mutations.tools import atomics, target, with_call
from tlcheck.snapshot.ir import Alloc, Function, Seq, Snapshot
from tlcheck.snapshot.walk import expressions, postorder, statements

LOWERED = ("lower-tile-op", "type-cast", "vectorize-loop", "device-tir")


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """kind: the mutator. checkpoints: where it shows. root: the destination of the changed atomic."""

    kind: str
    checkpoints: tuple[str, ...]
    root: str
    snapshot: Snapshot


def mutants(snapshot: Snapshot, checkpoints: Sequence[str] = LOWERED) -> Iterator[Mutant]:
    """All of them: of the first and the last atomic at each of `checkpoints`, and of the layouts."""
    for checkpoint in checkpoints:
        function = snapshot.checkpoints.get(checkpoint)
        for kind, root, changed in _of_function(function) if function is not None else ():
            kept = {n: f for n, f in snapshot.checkpoints.items() if n in ("intent", "tile-ops")}
            yield Mutant(kind, (checkpoint,), root, replace(snapshot, checkpoints={**kept, checkpoint: changed}))
    for kind, root, everywhere in of_layouts(snapshot):
        yield Mutant(kind, tuple(c for c in LOWERED if c in snapshot.checkpoints), root, everywhere)


def _of_function(function: Function) -> Iterator[tuple[str, str, Function]]:
    chosen = atomics(function)
    for call in chosen if len(chosen) < 2 else (chosen[0], chosen[-1]):
        load = target(call)
        root = str(load.args[1].value) if load.buffer is None else str(load.buffer.data.value)
        for kind, change in CALLS.items():
            new = change(call, function)
            if new is not None:
                changed = with_call(function, call, new)
                yield kind, root, _allocated(changed) if kind == "redirect to registers" else changed
        for kind, changed in around(function, call):
            yield kind, root, changed


def _allocated(function: Function) -> Function:
    """With the registers allocated that a redirected atomic goes to."""
    buffer = next(
        e.buffer
        for s in statements(function.body)
        for e in postorder(expressions(s))
        if e.buffer is not None and e.buffer.name == "staged"
    )
    return replace(function, body=Seq((Alloc(buffer), function.body)))
