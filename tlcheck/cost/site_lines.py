"""The line of the kernel's file that a site comes from."""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.execute.observe.cost.sites import CountedSite
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.ir import Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements


class SourceLines:
    """Lines of a source kernel. TileLang drops those of some statements that it makes of a tile operator."""

    def __init__(self, source: Function) -> None:
        self._known: dict[tuple[str, str], set[int]] = {}
        for stmt in statements(source.body):
            if stmt.line:
                for name in _buffers(stmt):
                    for word in ("", *_operators(stmt)):
                        self._known.setdefault((word, name), set()).add(stmt.line)

    def of(self, site: CountedSite) -> int:
        """Return that of the one operator of the source that names the buffer, for what only operators become.

        Else the statement's own, else that of the one statement that names the buffer; 0 for none.
        """
        own = 0 if site.stmt is None else site.stmt.line
        word = "gemm" if site.space == "tensor cores" or site.form.startswith("ldmatrix") else ""
        word = "copy" if site.form in ("bulk copy", "cp.async") else word
        found = self._known.get((word, site.buffer), set())
        return next(iter(found)) if len(found) == 1 and (word or not own) else own


def _buffers(stmt: Stmt) -> Iterator[str]:
    """The names of the buffers that a statement names."""
    found = [stmt.buffer] if isinstance(stmt, Store) else []
    found += [e.buffer for e in postorder(expressions(stmt)) if e.buffer is not None]
    for buffer in found:
        yield buffer.name
        yield str(buffer.data.value)


def _operators(stmt: Stmt) -> Iterator[str]:
    """Yield what a statement's tile operator is: `gemm` or `copy`."""
    for e in postorder(expressions(stmt)):
        if e.op == "call":
            yield from (word for word in ("gemm", "copy") if word in name_of_call(e))
