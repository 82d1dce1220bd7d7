"""Define what a kernel at a checkpoint is like, as far as executing it depends on that."""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.execute.compile.parallel import is_shared_out
from tlcheck.signatures.signature import Collective, Completion, Signature
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Alloc, Expr, For, Function
from tlcheck.snapshot.walk import expressions, postorder, statements

_POINTERS = ("region", "tvm_access_ptr", "access_ptr", "address_of")  # operands of tile operators and atomics


def is_tiled(function: Function, checkpoint: Checkpoint) -> bool:
    """Whether a kernel still has what LowerTileOp takes away: tile operators, T.Parallel, fragments of the block.

    A parallel loop that is there afterwards is one that every thread runs: T.finalize_reducer leaves such.
    """
    for stmt in statements(function.body):
        if not checkpoint.is_lowered and is_shared_out(stmt):
            return True
        if isinstance(stmt, Alloc) and stmt.buffer.scope == "local.fragment":
            return True
        if any(e.op == "call" and e.value == "region" for e in postorder(expressions(stmt))):
            return True
    return False


def draws_anywhere(function: Function) -> bool:
    """Whether a source kernel draws random numbers in a T.Parallel."""
    loops = [stmt for stmt in statements(function.body) if isinstance(stmt, For) and stmt.kind == "parallel"]
    inner = (e for loop in loops for s in statements(loop) for e in postorder(expressions(s)))
    return any(e.op == "call" and str(e.value).startswith("rng_rand") for e in inner)


def has_integers(function: Function) -> bool:
    """Whether a source kernel may have integers that nobody has written: in memory of its own, from lanes that take
    no part in a shuffle, or made of such a float, by a cast, an atomic or a tile operator.

    Nobody reads what is in an mbarrier.
    """
    for stmt in statements(function.body):
        if isinstance(stmt, Alloc) and not _is_float(stmt.buffer.dtype) and "barrier" not in stmt.buffer.scope:
            return True
        if any(not _is_float(e.dtype) and _may_be_unset(e) for e in postorder(expressions(stmt))):
            return True
    return False


def _may_be_unset(e: Expr) -> bool:
    if e.op == "cast":
        return _is_float(e.args[0].dtype)
    operands = [a.args[0].dtype for a in e.args if e.op == "call" and a.value in _POINTERS and a.args]
    values = [a.dtype for a in e.args if operands and a.op != "float" and _is_float(a.dtype)]
    if {_is_float(dtype) for dtype in (*operands, *values)} == {True, False}:
        return True
    signature = signature_of(e)
    return signature is not None and signature.exchanges


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def meets_all(function: Function) -> bool:
    """Whether all blocks of a kernel wait for one another (T.sync_grid)."""
    return any(signature.collective is Collective.GRID for signature in _signatures(function))


def has_copies(function: Function) -> bool:
    """Whether a kernel as lowered has asynchronous copies into shared memory, or products into tensor memory."""
    copying = (Completion.CP_ASYNC_GROUP, Completion.MBARRIER, Completion.TENSOR_COMMIT)
    return any(signature.asynchronous in copying for signature in _signatures(function))


def _signatures(function: Function) -> Iterator[Signature]:
    """The signatures of the instructions of a kernel."""
    for stmt in statements(function.body):
        calls = [e for e in postorder(expressions(stmt)) if e.op == "call"]
        yield from filter(None, map(signature_of, calls))
