"""Find what numbers in memory decide in a run: which sides of branches run at all, and which loops run often enough."""

from __future__ import annotations

from tlcheck.execute.events import Observer
from tlcheck.snapshot.ir import Stmt, While
from tlcheck.snapshot.walk import first_line


class UntriedWays(Observer):
    """Notes which ways a run takes.

    untried: by statement, the lines of sides of branches that have not run, and of loops that ended early.
    """

    def __init__(self) -> None:
        self.untried: dict[int, int] = {}

    def steered(self, stmt: Stmt) -> None:
        """A side of a branch, or a loop: nothing has run yet."""
        if not isinstance(stmt, While):
            self.untried[id(stmt)] = first_line(stmt)

    def branched(self, stmt: Stmt) -> None:
        """It runs."""
        self.untried.pop(id(stmt), None)
