"""Footprints: what one atomic adds and where, over its threads, lanes and loops, as polynomials of one algebra."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tlcheck.algebra.algebra import FragmentTable
from tlcheck.algebra.evaluate import Dimension
from tlcheck.algebra.polynomial import Poly
from tlcheck.program.atomics import Site
from tlcheck.program.layouts import fragment_table
from tlcheck.snapshot.ir import Buffer, Layout

TAGS = {f"{kind}Idx.{dim}": -1 - 3 * k - i for k, kind in enumerate(("block", "thread")) for i, dim in enumerate("xyz")}
BLOCKS = frozenset(uid for tag, uid in TAGS.items() if tag.startswith("block"))
THREADS = frozenset(uid for tag, uid in TAGS.items() if tag.startswith("thread"))


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """An element that a lane's value reads: `element` of `root`; through `table` for the register `element` of
    `thread`.

    when: polynomials that are not 0 where it is read: on one side of a choice. Empty: everywhere.
    """

    root: str
    scope: str
    element: Poly
    thread: Poly = field(default_factory=dict)
    table: FragmentTable | None = None
    when: tuple[Poly, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """One atomic's additions.

    space: what is enumerated, outermost first; LANE is the lane of a vector instruction.
    outer: loops that are not enumerated: uid -> (start, extent).
    target: offset in the root, in elements, with the destination's layout; `indices` without. inside: polynomials
    that are >= 0 in bounds.
    conditions: polynomials that are >= 0 where it runs. flags: polynomials that are not 0 where it runs.
    anchored: compared up to a constant offset, see `sum_comparison.anchored`.
    needed: flags that have to hold wherever it runs, for the value to be the one that is read here.
    reads: polynomials that are >= 0 where all that it reads is in bounds: the author answers for that, as for `inside`.
    perhaps: the same of an atomic that may read some of it in some lanes only: there it may be read at other times.
    launch: uid of each dimension of blocks -> how many there are. start: the innermost coordinate of a box of TMA.
    """

    site: Site
    space: tuple[Dimension, ...]
    outer: Mapping[int, tuple[Poly, Poly]]
    target: Poly
    inside: tuple[Poly, ...]
    conditions: tuple[Poly, ...]
    flags: tuple[Poly, ...]
    needed: tuple[Poly, ...]
    form: str
    leaves: tuple[Leaf, ...]
    indices: tuple[Poly, ...]
    anchored: bool = False
    reads: tuple[Poly, ...] = ()
    perhaps: tuple[Poly, ...] = ()
    launch: Mapping[int, Poly] = field(default_factory=dict)
    start: Poly = field(default_factory=dict)


class Memory:
    """The layouts of a kernel's buffers: roots as the kernel declares them, and where their elements lie.

    starts: root -> the first thread that touches it in the source, where that is not thread 0.
    """

    def __init__(
        self, declared: Mapping[str, Buffer], layouts: Mapping[str, Layout], starts: Mapping[str, int]
    ) -> None:
        self.declared = declared
        self.layouts = layouts
        self._starts = starts
        self._tables: dict[int, FragmentTable | None] = {}

    def table(self, root: str) -> FragmentTable | None:
        """The fragment of a root read backwards; None if it has none that can be."""
        layout = self.layouts.get(root)
        if layout is None or layout.thread is None:
            return None
        if id(layout) not in self._tables:
            self._tables[id(layout)] = fragment_table(layout)
        return self._tables[id(layout)]

    def thread_start(self, root: str) -> int:
        """The thread that the fragment of a root counts from: up to 0.1.11 only the branch that uses it says so."""
        return self.layouts[root].thread_start or self._starts.get(root, 0)
