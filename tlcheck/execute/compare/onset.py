"""The first checkpoint at which a kernel is wrong: those before the last one, run on what shows it there.

From the last one back, up to one that is right. What cannot be executed on the way is passed over, and said. The
checkpoints between are mixed: some still have tile operators, or fragments of a block whose layouts are known and not
applied yet (`kernel_traits.is_tiled`); in some, guards come later (`Checkpoint.is_unguarded`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.request import SOURCE, Request
from tlcheck.execute.worlds.courses import course_of
from tlcheck.execute.worlds.inputs import Course
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Snapshot

Judgement = Callable[[Execution], bool | str]


@dataclass(frozen=True, slots=True)
class Onset:
    """The checkpoint at which a kernel becomes wrong.

    skipped: checkpoints before that, up to one that is right, of which it is not known, each with the reason.
    """

    checkpoint: str
    skipped: tuple[tuple[str, str], ...] = ()


class Levels:
    """The checkpoints of a snapshot, executed as they are asked for, each request once."""

    def __init__(self, snapshot: Snapshot, request: Request) -> None:
        """request: of the last checkpoint; it may have gone wrong there in some block only."""
        self._snapshot, self._request = snapshot, request
        self._known: dict[Request, Execution] = {}

    def onset(
        self, blocks: Sequence[tuple[int, int, int]], seed: int, wrong: Judgement, *, rounded: bool = False
    ) -> Onset | None:
        """The first checkpoint that is wrong in these blocks, with the inputs of one seed.

        wrong: says of an execution whether it is, or why that is not known. rounded: it is wrong only with floats in
        their own types. None where not even the last one is, which runs in these blocks alone only if no earlier one is
        known to be wrong.
        """
        own = replace(self.showing(blocks, seed), brief=not rounded)
        names = [name for name in self._snapshot.checkpoints if name != SOURCE]
        found: Onset | None = None
        skipped: list[tuple[str, str]] = []
        for name in reversed(names[: names.index(own.checkpoint)]):
            answer = wrong(self.execution(replace(own, checkpoint=Checkpoint(name))))
            if isinstance(answer, str):
                skipped.insert(0, (name, answer))
            elif answer:
                found, skipped = Onset(name), []
            else:
                break
        if found is None:
            found = Onset(own.checkpoint) if wrong(self.execution(own)) is True else None
        return None if found is None else replace(found, skipped=tuple(skipped))

    def is_wrong_as_tir(self, blocks: Sequence[tuple[int, int, int]], seed: int, wrong: Judgement) -> bool:
        """Whether the last checkpoint is wrong not only as the CUDA that is made of it. Yes where that is not known."""
        return wrong(self.execution(replace(self.showing(blocks, seed), printed=False))) is not False

    def showing(self, blocks: Sequence[tuple[int, int, int]], seed: int) -> Request:
        """The request of these blocks and the inputs of one seed, with which the kernel is known to be wrong."""
        few = tuple(blocks) or self._request.blocks
        return replace(self._request, blocks=few, seeds=(seed,), course=self._course, contested=False)

    @cached_property
    def _course(self) -> Course | None:
        return course_of(self._snapshot, self._request)

    def execution(self, request: Request) -> Execution:
        """Return what a request comes to; each is executed once."""
        key = replace(request, given=None)
        if key not in self._known:
            self._known[key] = execute(self._snapshot, request)
        return self._known[key]
