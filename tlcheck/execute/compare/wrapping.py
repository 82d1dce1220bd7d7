"""Tells whether an output is wrong because small integers wrap in the source, and nowhere after it.

TIR computes in the type of the operands. TileLang's simplification takes the operation for one of all integers, as CUDA
takes it for one of `int`: it makes `max(i - a, 128)` of `uint8` to 128, where i is less.
"""

from __future__ import annotations

from dataclasses import replace

from tlcheck.execute.compare.equal_steps import equal
from tlcheck.execute.compare.output_outcome import Difference, said
from tlcheck.execute.request import Request
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.program.generated import operation_in_words
from tlcheck.program.promotion import is_promoted
from tlcheck.snapshot.ir import Snapshot, Stmt
from tlcheck.snapshot.walk import expressions, postorder

ADVICE = "compute in 32 bits: TileLang does not expect sums and products of 8 and 16 bits to wrap"


def wrapping_operation(snapshot: Snapshot, request: Request, name: str, found: Difference, stmt: Stmt | None) -> str:
    """Return the operation of a source statement that wraps, if the source leaves what the lowered kernel leaves where
    it does not; else empty. request: of the block and the seed in which the output is wrong.
    """
    operations = () if stmt is None else filter(is_promoted, postorder(expressions(stmt)))
    operation = next(map(operation_in_words, operations), "")
    if not operation or found.special:
        return ""
    try:
        source = levels_of(snapshot, request).invocations(early=found.early).source()
        source.options = replace(source.options, printed=True)
        source.run()
    except Stopped:
        return ""
    pages = source.left[name]
    left = pages.flat[pages.position_of(found.seed, found.element)].item()
    return operation if equal(said(left, []), found.got) else ""
