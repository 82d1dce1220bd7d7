"""Whether the contents of memory, or numbers from outside, decide where a statement accesses and whether it runs.

A statement is *fixed* if no number that is read from a tensor, and no scalar or size from outside, takes part in its
indices, in its conditions or in those of the statements around it: then it makes the same accesses on all inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from tlcheck.program.roles import is_address
from tlcheck.signatures.barriers import is_sync_threads
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Bind, Evaluate, Expr, For, Function, If, Stmt, Store, Thread, While
from tlcheck.snapshot.walk import expressions, postorder, statements, with_surroundings

_CHOICES = ("select", "predicated")


class Steering:
    """A record of what decides about the statements of one function."""

    def __init__(self, function: Function, sizes: Collection[str] = ()) -> None:
        """sizes: names of numbers from outside that are known."""
        self._function = function
        self._around = dict(with_surroundings(function.body))
        self._numbers = {s.var.uid for s in self._around if isinstance(s, (For, Thread))}
        shapes = postorder([e for b in function.buffers for e in (*b.shape, *b.strides)])
        self._numbers |= {e.uid for e in (*function.params, *shapes) if e.op == "var" and e.value in sizes}
        self._memory = {b.data.uid for b in function.buffers}
        self._spread()
        self._leaves = any(map(self._is_steered_exit, self._around))

    def is_fixed(self, stmt: Stmt | None) -> bool:
        """Whether a statement makes the same accesses on all inputs. No for one that is not of this function."""
        if stmt is None or stmt not in self._around or self._leaves:
            return False
        return not any(self._is_steered(s) for s in (stmt, *self._around[stmt]))

    def runs_always(self, stmt: Stmt | None) -> bool:
        """Whether a statement runs on all inputs, wherever it accesses."""
        if stmt is None or stmt not in self._around or self._leaves:
            return False
        return not any(self._is_steered(s) for s in self._around[stmt])

    def reads_always(self, stmt: Stmt | None, buffer: str) -> bool:
        """Whether a statement reads the same elements of a buffer on all inputs, whatever else it accesses."""
        if stmt is None or not self.runs_always(stmt):
            return False
        always = set(_read_anyway(expressions(stmt)))
        loads = [e for e in postorder(expressions(stmt)) if e.op == "load" and e.buffer]
        read = [e for e in loads if e.buffer and str(e.buffer.data.value) == buffer]
        return bool(read) and all(e in always and not self.depends(e.args) for e in read)

    def steered(self) -> Iterator[Stmt]:
        """The statements of which memory decides whether those in them run, or where they access, in order."""
        return (stmt for stmt in statements(self._function.body) if self._is_steered(stmt))

    def around(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """The statements around one, the outermost first."""
        return self._around.get(stmt, ())

    def depends(self, roots: Iterable[Expr]) -> bool:
        """Whether contents of memory, or numbers from outside, decide the value of any of these expressions."""
        left = list(roots)
        while left:
            e = left.pop()
            if is_address(e):
                first, *others = e.args
                left += [*(first.args if first.op == "load" else ()), *others]
            elif self._is_foreign(e):
                return True
            else:
                left += e.args
        return False

    def _is_foreign(self, e: Expr) -> bool:
        """Whether it is memory whose contents come from outside, or a number that does."""
        if e.op == "load":
            return e.buffer is None or e.buffer.data.uid in self._memory
        return e.op == "unknown" or (e.op == "var" and e.dtype != "handle" and e.uid not in self._numbers)

    def _spread(self) -> None:
        """Find the variables that are numbers of the kernel's own, and the buffers that hold others."""
        while True:
            before = len(self._numbers), len(self._memory)
            for stmt in self._around:
                if isinstance(stmt, Bind) and not self.depends([stmt.value]):
                    self._numbers.add(stmt.var.uid)
                elif isinstance(stmt, Store):
                    roots = [stmt.value, *stmt.indices, *([] if stmt.predicate is None else [stmt.predicate])]
                    if self.depends(roots) or any(self._is_steered(s) for s in self._around[stmt]):
                        self._memory.add(stmt.buffer.data.uid)
                elif isinstance(stmt, Evaluate):
                    self._memory |= set(_named(stmt.value))
            if before == (len(self._numbers), len(self._memory)):
                return

    def _is_steered(self, stmt: Stmt) -> bool:
        if isinstance(stmt, (If, While, For, Thread)):
            return self.depends(expressions(stmt))
        if isinstance(stmt, Store):
            where = [*stmt.indices, *([] if stmt.predicate is None else [stmt.predicate])]
            return self.depends(where) or self._chooses(stmt.value)
        return any(self._chooses(e) for e in expressions(stmt)) if isinstance(stmt, (Evaluate, Bind)) else False

    def _is_steered_exit(self, stmt: Stmt) -> bool:
        """Whether memory, or numbers from outside, decide whether threads leave a loop or the kernel here."""
        signatures = (signature_of(e) for e in postorder(expressions(stmt)))
        leaves = any(signature.leaves is not None for signature in signatures if signature is not None)
        return leaves and any(self._is_steered(s) for s in self._around[stmt])

    def _chooses(self, root: Expr) -> bool:
        """Whether memory decides which elements an expression reads, or which of its parts counts."""
        for e in postorder([root]):
            if is_address(e) and self.depends([e]):
                return True
            if e.op == "load" and self.depends(e.args):
                return True
            chooses = e.op in _CHOICES or name_of_call(e) == "if_then_else"
            if chooses and self.depends(e.args[:1] if e.op != "predicated" else e.args[1:]):
                return True
        return False


def _named(root: Expr) -> Iterator[int]:
    """The pointers whose memory a call may write."""
    for e in postorder([root]):
        if is_address(e):
            target = e if e.op == "load" else e.args[1] if e.value == "tvm_access_ptr" else e.args[0]
            yield target.buffer.data.uid if target.buffer is not None else target.uid


def barriers_of(function: Function) -> Iterator[Stmt]:
    """The statements that are T.sync_threads."""
    for stmt in statements(function.body):
        if isinstance(stmt, Evaluate) and is_sync_threads(stmt.value):
            yield stmt


def _read_anyway(roots: Iterable[Expr]) -> Iterator[Expr]:
    """The elements that expressions read whichever part of a choice counts."""
    left = list(roots)
    while left:
        e = left.pop()
        if e.op == "load":
            yield e
        if e.op == "predicated":
            left += e.args[1:]
        else:
            left += e.args[:1] if e.op in _CHOICES or name_of_call(e) == "if_then_else" else e.args
