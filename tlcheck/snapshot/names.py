"""Names under which a function's variables and buffers are shown.

A variable has its own name, with a number only where another one of that name is visible: one more loop somewhere else
does not rename anything.
"""

from __future__ import annotations

import math

from tlcheck.snapshot.ir import Alloc, Buffer, Expr, Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements

ViewKey = tuple[str, tuple[int, ...]]


class Names:
    """Display names in nested scopes; `declare` as the text goes down."""

    def __init__(self, function: Function) -> None:
        self._views = _views(function)
        self._shown: dict[int, str] = {}
        self._active: set[str] = set()
        self._scopes: list[list[str]] = [[]]

    def open(self) -> None:
        self._scopes.append([])

    def close(self) -> None:
        self._active.difference_update(self._scopes.pop())

    def declare(self, var: Expr) -> str:
        """A name for a variable that starts to exist here."""
        self._shown[var.uid] = name = self._free(str(var.value), self._scopes[-1])
        return name

    def of(self, var: Expr) -> str:
        """The name of a variable; one that nothing declares exists everywhere."""
        if var.uid not in self._shown:
            self._shown[var.uid] = self._free(str(var.value), self._scopes[0])
        return self._shown[var.uid]

    def view(self, buffer: Buffer) -> str:
        """The name of a buffer: that of its memory, numbered for other element types and shapes than the first."""
        views = self._views.get(buffer.data.uid, [])
        key = view_key(buffer)
        number = views.index(key) if key in views else 0
        return f"{self.of(buffer.data)}.{number}" if number else self.of(buffer.data)

    def views(self, data: Expr) -> list[ViewKey]:
        """Element types and shapes under which the function uses a pointer's memory, the main one first."""
        return self._views.get(data.uid, [])

    def _free(self, base: str, scope: list[str]) -> str:
        name, number = base, 0
        while name in self._active:
            number += 1
            name = f"{base}_{number}"
        self._active.add(name)
        scope.append(name)
        return name


def view_key(buffer: Buffer) -> ViewKey | None:
    """Element type and shape; None where the shape is no constant, as where TVM makes up a buffer for a pointer."""
    sizes = [extent.value for extent in buffer.shape]
    shape = tuple([size for size in sizes if isinstance(size, int)])
    return (buffer.dtype, shape) if len(shape) == len(sizes) else None


def _views(function: Function) -> dict[int, list[ViewKey]]:
    """Return views by pointer: declared ones first, then in order of use."""
    found: dict[int, list[ViewKey]] = {}
    for buffer in (*function.buffers, *(b for s in statements(function.body) for b in _buffers(s))):
        key, views = view_key(buffer), found.setdefault(buffer.data.uid, [])
        if key is not None and key not in views and not (views and _is_flat(key, views[0])):
            views.append(key)
    return found


def _is_flat(key: ViewKey, main: ViewKey) -> bool:
    """Whether a view is the main one with a single index: the number of indices tells them apart."""
    return key == (main[0], (math.prod(main[1]),))


def _buffers(stmt: Stmt) -> list[Buffer]:
    """The buffers that a statement itself names."""
    found = [stmt.buffer] if isinstance(stmt, (Alloc, Store)) else []
    used = list(postorder(expressions(stmt)))
    invented = {e.args[0] for e in used if e.op == "call" and e.value == "address_of" and _is_invented(e.args[0])}
    return found + [e.buffer for e in used if e.buffer is not None and e not in invented]


def _is_invented(e: Expr) -> bool:
    """Whether the buffer of a load was made up for a pointer to one element: it ends just after it."""
    if e.buffer is None or len(e.args) != 1 or len(e.buffer.shape) != 1:
        return False
    index, extent = e.args[0], e.buffer.shape[0]
    return index.op == extent.op == "int" and extent.value == int(index.value or 0) + 1
