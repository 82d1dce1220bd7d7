"""Find which job a node gets next."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

INSTALL = 90.0  # seconds to make a toolchain: what is measured with a near index
IMPORT = 6.0  # to import tilelang

Work = TypeVar("Work")


@dataclass(frozen=True)
class QueuedJob(Generic[Work]):
    """A job. what: the same for the same kernel with any toolchain, so that one says how long another will take.

    alike: the same for jobs that one process may do one after the other. awaited: judging waits for it.
    """

    toolchain: str
    what: Hashable
    work: Work
    alike: Hashable = None
    awaited: bool = False


class Placement(Generic[Work]):
    """The jobs that wait, and what is known of nodes. It knows no Ray: the simulation in benchmarks/ has the same.

    A node goes on with a toolchain that it has. It begins with another one only if that has so much left that it is
    worth it. Of a toolchain, what is awaited comes first, then kernels that nobody has seen, then those that took
    longest elsewhere.
    """

    def __init__(self) -> None:
        # Heaps; what is in one and not in `_alike` has been taken as one of several.
        self._waiting: defaultdict[str, list[tuple[float, int, QueuedJob[Work]]]] = defaultdict(list)
        self._alike: defaultdict[Hashable, dict[int, QueuedJob[Work]]] = defaultdict(dict)  # by number, in order
        self._left: Counter[str] = Counter()  # jobs of each toolchain
        self._added = 0
        self._took: dict[Hashable, float] = {}
        self._total = self._count = 0.0  # seconds, and jobs, of all that ended
        self._using: defaultdict[str, set[str]] = defaultdict(set)  # toolchain -> nodes
        self._installed: dict[str, frozenset[str]] = {}  # node -> toolchains
        self._unfit: set[tuple[str, str]] = set()  # nodes and toolchains

    def __len__(self) -> int:
        return self._left.total()

    def add(self, job: QueuedJob[Work]) -> None:
        """Have a job wait."""
        self._added += 1
        number = -self._added if job.awaited else self._added
        heapq.heappush(self._waiting[job.toolchain], (-math.inf, number, job))
        self._alike[job.toolchain, job.alike][number] = job
        self._left[job.toolchain] += 1

    def empty(self) -> list[QueuedJob[Work]]:
        """Take all that waits."""
        found = [job for alike in self._alike.values() for job in alike.values()]
        self._waiting.clear()
        self._alike.clear()
        self._left.clear()
        return found

    def joins(self, node: str, installed: Iterable[str]) -> None:
        """A node is there. installed: toolchains that it need not make."""
        self._installed[node] = frozenset(installed)

    def leaves(self, node: str) -> None:
        """A node is gone."""
        self._installed.pop(node, None)
        for nodes in self._using.values():
            nodes.discard(node)

    @property
    def nodes(self) -> Collection[str]:
        """The nodes that are there."""
        return self._installed.keys()

    def cannot(self, node: str, toolchain: str) -> None:
        """A node cannot have a toolchain."""
        self._unfit.add((node, toolchain))
        self._using[toolchain].discard(node)

    def unplaceable(self) -> str | None:
        """A toolchain that has jobs and that no node can have."""
        for toolchain, left in self._left.items():
            if left and self._installed and all((node, toolchain) in self._unfit for node in self._installed):
                return toolchain
        return None

    def ended(self, job: QueuedJob[Work], seconds: float) -> None:
        """A job took so long."""
        self._took[job.what] = seconds
        self._total, self._count = self._total + seconds, self._count + 1

    def take(self, node: str) -> QueuedJob[Work] | None:
        """The node's next job; None where nothing that waits is worth its while."""
        left = {name: number for name, number in self._left.items() if number and (node, name) not in self._unfit}
        own = {name: number for name, number in left.items() if node in self._using[name]}
        chosen = max(own, key=lambda name: own[name] / len(self._using[name])) if own else self._new(node, left)
        if chosen is None:
            return None
        self._using[chosen].add(node)
        waiting = self._waiting[chosen]
        while True:
            key, number, job = heapq.heappop(waiting)
            alike = self._alike[job.toolchain, job.alike]
            if number not in alike:
                continue
            seconds = self._took.get(job.what)
            if seconds is None or job.awaited or key != -math.inf:
                return self._taken(job.toolchain, alike, number)
            heapq.heappush(waiting, (-seconds, number, job))

    def _new(self, node: str, left: Mapping[str, int]) -> str | None:
        """A toolchain for the node to begin with: the one of which most is left for each node that has it."""
        mean = self._total / self._count if self._count else 1.0

        def gain(name: str) -> float:
            cost = IMPORT if name in self._installed[node] else INSTALL
            return left[name] * mean / (len(self._using[name]) + 1) - (cost if self._using[name] else 0.0)

        best = max(left, key=gain, default=None)
        return best if best is not None and gain(best) > 0 else None

    def alike(self, job: QueuedJob[Work]) -> int:
        """Return how many jobs wait that the process of this one may do, too."""
        return len(self._alike[job.toolchain, job.alike])

    def take_alike(self, job: QueuedJob[Work], most: int) -> list[QueuedJob[Work]]:
        """Some of these."""
        waiting = self._alike[job.toolchain, job.alike]
        return [self._taken(job.toolchain, waiting, number) for number in [*waiting][:most]]

    def _taken(self, toolchain: str, waiting: dict[int, QueuedJob[Work]], number: int) -> QueuedJob[Work]:
        self._left[toolchain] -= 1
        return waiting.pop(number)
