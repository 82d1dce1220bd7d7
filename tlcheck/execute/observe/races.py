"""Two accesses of one element that nothing orders."""

from __future__ import annotations

from dataclasses import dataclass, field

from tlcheck.execute.memory.state import Origin
from tlcheck.reasons import ATOMICS_ORDER, SOURCE_RACE, Reason
from tlcheck.snapshot.ir import Stmt

SEVERAL = -2  # SEVERAL - w as an access's thread: several threads of warp w
RACING = "in the source"
A_BARRIER = "a barrier"  # what may be missing, besides what waits
AGREEMENT, BLOCKS = "agreement on the value", "an order of the blocks"
HALVES = "one thread for both halves of a byte"
EXCHANGE = "a shuffle that waits for what is read"  # one stands there, and may do so


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One thread's access. kind: read, write or atomic; proxy: generic or async.

    thread: -1 for a bulk copy, SEVERAL - w where several threads of warp w made it.
    """

    kind: str
    proxy: str
    block: tuple[int, int, int]
    thread: int
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class Race:
    """Two accesses of one element of a buffer that nothing orders. missing: what would have to stand between them.

    parameter: the name of the tensor's parameter, empty for shared memory. index: of the element, in the buffer's shape
    where that is known. sure: all that may order blocks was followed. seed: of the inputs.
    """

    buffer: str
    parameter: str
    index: tuple[int, ...]
    first: Access
    second: Access
    missing: str
    sure: bool = False
    seed: int = 0

    @property
    def name(self) -> str:
        """The parameter, or the buffer that is none: what claims go by."""
        return self.parameter or self.buffer

    @property
    def across(self) -> bool:
        """Whether the two are of different blocks."""
        return self.first.block != self.second.block


@dataclass(frozen=True, slots=True, eq=False)
class Clash:
    """Two accesses of the source to one element that nothing orders.

    line: of the second one, 0 where it is not known. index: the element's place in its memory. first: None for what is
    under way, as an asynchronous copy. An iteration of T.Parallel is in an access's kind, and no thread. own: the
    second one reads what it has written itself, as others have: it may be no race. sure: as for a `Race`.
    """

    line: int
    index: tuple[int, ...]
    first: Access | None
    second: Access
    own: bool = False
    sure: bool = False


@dataclass(frozen=True, slots=True)
class Contest:
    """A race in the source, which is the author's own: who race, and the source line (0: unknown).

    atomics: it is none if atomics of the author's order the blocks, which may be. clash: both accesses. wait:
    of an access to what a copy is about to write, the wait that was to cover the copy and does not.
    """

    who: str
    line: int
    atomics: bool = False
    clash: Clash | None = field(default=None, compare=False)
    wait: Stmt | None = field(default=None, compare=False)

    def words(self, what: str) -> Reason:
        """`blocks race for C (line 7) in the source`."""
        where = f" (line {self.line})" if self.line else ""
        if self.atomics:
            return Reason(ATOMICS_ORDER, f"blocks access {what}{where} that atomics may order")
        return Reason(SOURCE_RACE, f"{self.who} race for {what}{where} {RACING}")
