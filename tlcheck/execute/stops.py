"""Define why an execution stops before its end."""

from __future__ import annotations

from dataclasses import dataclass

from tlcheck import reasons
from tlcheck.reasons import Reason, ReasonKind
from tlcheck.snapshot.ir import Stmt


class Stopped(Exception):  # noqa: N818
    """An execution that cannot go on; str() says why in a few words. kind: what then is undecided for."""

    kind: ReasonKind

    def __init__(self, text: str, kind: ReasonKind) -> None:
        super().__init__(text)
        self.kind = kind

    @property
    def reason(self) -> Reason:
        """Return why the outputs are undecided."""
        return Reason(self.kind, str(self))


# Reasons that say nothing of the kernel: another run, or another machine, may not have them.
TIME, MEMORY = Reason(reasons.TIME, "time"), Reason(reasons.OUT_OF_MEMORY, "memory")


class NotModelled(Stopped):
    """A construct that is not known here; its name is the text."""

    def __init__(self, text: str, kind: ReasonKind = reasons.NOT_MODELLED) -> None:
        super().__init__(text, kind)


class LeavesAxis(NotModelled):
    """An atomic of the source whose index leaves an axis of a tensor, where nobody knows what that means."""

    def __init__(self, buffer: str) -> None:
        super().__init__(f"an atomic whose index leaves an axis of {buffer}", reasons.SOURCE_STOPS)
        self.buffer = buffer


class Entangled(NotModelled):
    """Threads that wait for each other, while others of their branch wait only because these do."""

    def __init__(self, text: str) -> None:
        super().__init__(text, reasons.ENTANGLED)


class BudgetSpent(Stopped):
    """More statements or bytes than were allowed."""


class OutOfStatements(BudgetSpent):
    """More statements than were allowed."""

    def __init__(self, text: str = "more statements than allowed") -> None:
        super().__init__(text, reasons.STATEMENTS)


class OutOfBytes(BudgetSpent):
    """More memory than was allowed."""

    def __init__(self) -> None:
        super().__init__("more memory than allowed", reasons.BYTES)


class SourceIllegal(Stopped):
    """The source itself does what the machine forbids, on all inputs tried: `illegal`, in this block.

    hangs: whether the lowered kernel comes to no end either.
    """

    def __init__(self, text: str, illegal: Illegal, block: tuple[int, int, int], hangs: bool = False) -> None:
        super().__init__(text, reasons.SOURCE_STOPS)
        self.illegal, self.block, self.hangs = illegal, block, hangs


class SourceUnclear(Stopped):
    """The source says something that has no single meaning, such as a tile's place that differs between threads."""

    def __init__(self, text: str) -> None:
        super().__init__(text, reasons.SOURCE_UNCLEAR)


@dataclass
class Illegal(Stopped):
    """An access that the machine forbids: what, where (a source line, 0 if unknown), in which world and lane, of
    which buffer. stmt: the statement as lowered, where one is to blame. index, extent: of the element and the buffer,
    where an index is out of bounds. block, seed: those of the world, once the kernel has stopped: each run counts its
    worlds by itself.
    """

    what: str
    line: int
    world: int
    lane: int
    buffer: str = "?"
    stmt: Stmt | None = None
    index: tuple[int, ...] = ()
    extent: tuple[int, ...] = ()
    block: tuple[int, int, int] = (0, 0, 0)
    seed: int = 0

    def __post_init__(self) -> None:
        self.kind = reasons.LOWERED_STOPS

    def __str__(self) -> str:
        return self.what


class Unkept(Illegal):
    """A promise of the author's that does not hold on these inputs."""


class Unaligned(Illegal):
    """An address, a size or a coordinate that is no multiple of what the access needs."""


class Overrun(Illegal):
    """More arrivals at an mbarrier than it is made for."""


@dataclass
class Deadlock(Illegal):
    """Threads that wait for what never happens."""

    def __str__(self) -> str:
        return f"deadlock: {self.what}"


@dataclass
class AbsentLanes(Deadlock):
    """Part of a warp that waits in an instruction for the rest, which waits elsewhere. exchange: that instruction."""

    exchange: Stmt | None = None
