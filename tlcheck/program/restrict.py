"""Reads of a tensor that nvcc may move ahead of a barrier, since TileLang calls each pointer `__restrict__`.

What is read through such a pointer is written through it alone: nvcc takes that for the thread's own pointer. Where
one thread stores an element and all read it behind a barrier, nvcc takes the thread's own value, and lets the others
read before the barrier (nvcc 13.0: `ld.global` above `bar.sync`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tlcheck.program.divergence import variables_of_threads
from tlcheck.signatures.barriers import is_sync_threads
from tlcheck.snapshot.equality import key_of
from tlcheck.snapshot.ir import Evaluate, Expr, For, Function, If, Seq, Stmt, Store, While
from tlcheck.snapshot.walk import children, expressions, postorder

_SIGNATURE = re.compile(r"__global__[^{;]*")
_PLAIN = re.compile(r"\*\s*(\w+)\s*[,)]")  # a parameter that is a pointer without `__restrict__`
_RESTRICTED = re.compile(r"__restrict__\s+(\w+)")
_Key = tuple[object, ...]


def read_early(function: Function, printed: str) -> tuple[str, int] | None:
    """A tensor that is read so, and the line of the store; None where there is none. printed: the CUDA."""
    signatures = _SIGNATURE.findall(printed)
    plain = {name for signature in signatures for name in _PLAIN.findall(signature)}
    plain -= {name for signature in signatures for name in _RESTRICTED.findall(signature)}
    names = {p.uid: str(p.value) for p in function.params if p.dtype == "handle" and p.value not in plain}
    return next(_Walk(names, frozenset(variables_of_threads(function, _differs))).reads(function.body, ()), None)


def _differs(e: Expr, threads: set[int] | frozenset[int]) -> bool:
    """Whether the threads of a block may have different values; registers may."""
    return any(x.op == "load" or (x.op == "var" and x.uid in threads) for x in postorder([e]))


@dataclass
class _Stored:
    """A store of one element by some threads. guards: the conditions; passed: a barrier has come since."""

    line: int
    guards: frozenset[_Key]
    passed: bool = False


@dataclass
class _Walk:
    """Goes through a kernel in order, through loops twice. pointers: of tensors, by uid; threads: their variables."""

    pointers: dict[int, str]
    threads: frozenset[int]
    stored: dict[_Key, _Stored] = field(default_factory=dict)

    def reads(self, stmt: Stmt, guards: Sequence[_Key]) -> Iterator[tuple[str, int]]:
        """The tensors read too early, with the lines of their stores."""
        yield from self._read(stmt, guards)
        if isinstance(stmt, Evaluate) and is_sync_threads(stmt.value):
            for known in self.stored.values():
                known.passed = True
        elif isinstance(stmt, Store) and guards and stmt.buffer.data.uid in self.pointers:
            if not any(_differs(e, self.threads) for e in stmt.indices):
                self.stored[self._place(stmt.buffer.data.uid, stmt.indices)] = _Stored(stmt.line, frozenset(guards))
        elif isinstance(stmt, If):
            inside = (*guards, key_of(stmt.condition)) if _differs(stmt.condition, self.threads) else guards
            yield from self.reads(stmt.then, inside)
            if stmt.orelse is not None:
                yield from self.reads(stmt.orelse, (*guards, ("not", *key_of(stmt.condition))))
        for child in () if isinstance(stmt, If) else children(stmt) * (1 + isinstance(stmt, (For, While))):
            yield from self.reads(child, guards)

    def _read(self, stmt: Stmt, guards: Sequence[_Key]) -> Iterator[tuple[str, int]]:
        for e in () if isinstance(stmt, Seq) else postorder(expressions(stmt)):
            if e.op == "load" and e.buffer is not None and e.buffer.data.uid in self.pointers:
                known = self.stored.get(self._place(e.buffer.data.uid, e.args))
                if known is not None and known.passed and not known.guards <= set(guards):
                    yield self.pointers[e.buffer.data.uid], known.line

    def _place(self, pointer: int, indices: Sequence[Expr]) -> _Key:
        return pointer, *map(key_of, indices)
