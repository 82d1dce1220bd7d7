"""Define what a kernel's functions add, found by running them: one block, thread after thread, in plain Python
integers.

Slow and simple on purpose, and independent of tlcheck.prove, which it judges. Memory that the kernel declares has
made-up contents that depend only on (memory, element); registers that passes invented are run for real.
`UnsupportedError` where a function has something that is not interpreted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from tests.cpu.prove.oracle_run import Addition, Run
from tests.cpu.prove.oracle_text import Source, UnsupportedError, Values, compiled, evaluate
from tlcheck.snapshot.ir import Alloc, Attr, Block, Buffer, Expr, Function, Layout, Snapshot, Stmt, Thread
from tlcheck.snapshot.walk import expressions, postorder, statements

SIZE, PROMISED = 130, 192  # of a symbolic size, unless it is given: cuts a tile, or is a multiple where one is promised
MAX_LAYOUT = 1 << 17
UNGUARDED = ("lower-tile-op", "type-cast")  # newer releases cut tails after these
Table = tuple[dict[Any, Any], tuple[int, ...]]


class Kernel:
    """One snapshot: its layouts, and what its functions add in one block.

    sizes: values of symbolic sizes and scalars, by name; `SIZE` or `PROMISED` for others. content: the
    number that memory holds instead of a made-up one.
    """

    def __init__(self, snapshot: Snapshot, sizes: Mapping[str, int] | None = None, content: int | None = None) -> None:
        self.snapshot = snapshot
        self.content = content
        names = {str(e.value) for e in symbols(snapshot.checkpoints["intent"]) if e.dtype != "handle"}
        self.promises = any(map(_promises_multiple, statements(snapshot.checkpoints["intent"].body)))
        self.sizes = dict.fromkeys(names, PROMISED if self.promises else SIZE) | dict(sizes or {})
        self.layouts: dict[str, Layout] = {}
        for name in ("tile-ops", "intent", "lower-tile-op"):
            if name in snapshot.checkpoints:
                for data, layout in layouts(snapshot.checkpoints[name]):
                    self.layouts.setdefault(str(data.value), layout)
        self.declared = {str(b.data.value): b for b in _buffers(snapshot.checkpoints["intent"])}
        self._runs: dict[tuple[object, ...], list[Addition]] = {}
        self._tables: dict[str, tuple[dict[Any, Any], tuple[int, ...]]] = {}

    def additions(self, checkpoint: str, block: Mapping[str, int]) -> list[Addition]:
        """Everything that one block (`blockIdx.x` and so on -> value) adds. Raises UnsupportedError."""
        function = self.snapshot.checkpoints[checkpoint]
        key = (id(function), *block.values())
        if key not in self._runs:
            self._runs[key] = self._run(function, checkpoint == "intent", block)
        return self._runs[key]

    def _run(self, function: Function, is_source: bool, block: Mapping[str, int]) -> list[Addition]:
        if any(_reduces(e) for s in statements(function.body) for e in postorder(expressions(s))):
            raise UnsupportedError("a TMA reduction")
        values = {e.uid: self.sizes[str(e.value)] for e in symbols(function) if str(e.value) in self.sizes}
        run = Run(self, function, is_source, block, values)
        run.run(function.body)
        return run.found

    def changed(self, snapshot: Snapshot) -> Kernel:
        """The same kernel with other functions; runs of those that it shares are not repeated."""
        other = Kernel(snapshot, self.sizes, self.content)
        other._runs = dict(self._runs)
        return other

    def multiset(self, checkpoint: str, root: str, block: Mapping[str, int]) -> Counter[object]:
        """Return what is to be compared of the additions to `root`: those in bounds where bounds cut them."""
        safe = self.snapshot.pass_configs.get("tl.disable_safe_memory_legalize", "False") not in ("True", "1")
        bounded = safe and checkpoint in ("intent", *UNGUARDED)
        return Counter(a.key for a in self.additions(checkpoint, block) if a.root == root and (a.inside or not bounded))

    def differs(self, checkpoint: str, root: str, block: Mapping[str, int]) -> str:
        """Return what is wrong with the additions to `root` there, in words; empty if nothing."""
        want, have = self.multiset("intent", root, block), self.multiset(checkpoint, root, block)
        askew = [a for a in self.additions(checkpoint, block) if a.root == root and a.lane == 0 and a.offset % a.width]
        missing, extra = want - have, have - want
        wrong = [*list(missing)[:1], *list(extra)[:1], *askew[:1]]
        return f"{missing.total()} missing, {extra.total()} extra, {len(askew)} misaligned: {wrong}" if wrong else ""

    def blocks(self) -> list[dict[str, int]]:
        """The first, the last and a middle block."""
        tags: dict[str, int] = {}
        for stmt in statements(self.snapshot.checkpoints["intent"].body):
            if isinstance(stmt, Thread) and stmt.tag.startswith("blockIdx"):
                tags[stmt.tag] = evaluate(stmt.extent, self.sizes)
        ends = [dict.fromkeys(tags, 0), {t: n - 1 for t, n in tags.items()}, {t: n // 2 for t, n in tags.items()}]
        return [e for i, e in enumerate(ends) if e not in ends[:i]]

    def image(self, root: str) -> tuple[dict[Any, Any], tuple[int, ...]]:
        """For a layout: logical index -> physical one; for a fragment: (thread, register's index) -> logical index.

        And the extents of the physical index.
        """
        if root not in self._tables:
            self._tables[root] = _image(self.layouts[root], self.sizes)
        return self._tables[root]


def _reduces(e: Expr) -> bool:
    """Whether a call is a TMA store that adds: its last argument but one says so."""
    return e.op == "call" and e.value == "tma_store" and len(e.args) > 2 and e.args[-2].value not in (0, False)


def _image(layout: Layout, sizes: Mapping[str, int]) -> tuple[dict[Any, Any], tuple[int, ...]]:
    shape = [evaluate(e, sizes) for e in layout.input_shape]
    total = layout.replicas
    for extent in shape:
        total *= extent
    if total > MAX_LAYOUT:
        raise UnsupportedError("a layout is too large")
    source = Source({})
    outputs = [*layout.index, *([layout.thread] if layout.thread is not None else [])]
    compute = compiled(f"({''.join(source.number(e) + ',' for e in outputs)})", {})
    found: dict[Any, Any] = {}
    top = [0] * len(layout.index)
    for point in product(*(range(n) for n in shape), range(layout.replicas)):
        values: Values = {v.uid: p for v, p in zip(layout.vars, point, strict=False)}
        if layout.replica is not None:
            values[layout.replica.uid] = point[-1]
        image = compute(values)
        physical = image[: len(layout.index)]
        top = [max(a, b) for a, b in zip(top, physical, strict=True)]
        if layout.thread is None:
            found[point[:-1]] = physical
        elif found.setdefault((image[-1] + layout.thread_start, physical), point[:-1]) != point[:-1]:
            raise UnsupportedError("a fragment puts two elements in one register")
    return found, tuple(t + 1 for t in top)


def layouts(function: Function) -> Iterator[tuple[Expr, Layout]]:
    for stmt in statements(function.body):
        if isinstance(stmt, Block):
            yield from stmt.layouts


def _buffers(function: Function) -> list[Buffer]:
    inner = [s.buffer for s in statements(function.body) if isinstance(s, Alloc)]
    names = [str(b.data.value) for b in (*function.buffers, *inner)]
    twice = [n for n, count in Counter(names).items() if count > 1]
    if twice:
        raise UnsupportedError(f"several buffers are named {twice[0]}")
    return [*function.buffers, *inner]


def _promises_multiple(stmt: Stmt) -> bool:
    return isinstance(stmt, Attr) and stmt.key == "tl.assume" and stmt.value is not None and stmt.value.op == "eq"


def symbols(function: Function) -> Iterator[Expr]:
    """Symbolic sizes and scalar parameters."""
    for buffer in function.buffers:
        yield from (e for e in postorder((*buffer.shape, *buffer.strides)) if e.op == "var")
    yield from function.params
