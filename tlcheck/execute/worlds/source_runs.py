"""Describe what sources leave, kept for kernels with an equal source: after another pass, or of another release.

A source that runs again on the same inputs in the same blocks leaves the same. Whoever judges many kernels of one
source says so in `Request.sources`; its run is then made once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tlcheck.snapshot.encode import Encoder

if TYPE_CHECKING:  # who asks need not import what executes, and NumPy
    from tlcheck.execute.memory.pages import Pages
    from tlcheck.execute.memory.values import Array
    from tlcheck.execute.worlds.inputs import Draw
    from tlcheck.execute.worlds.invocation import Invocation
    from tlcheck.program.release import Release
    from tlcheck.snapshot.ir import Function

_BYTES = 1 << 28  # of tensors that are kept
_MOST = 32  # runs that are kept, counted once more where they are every release's


@dataclass(frozen=True, eq=False)
class SourceRun:
    """A source's run that has come to its end, on the inputs of `draw`.

    before: see `BothLevels`. asks: whether it hangs on the release that lowers the kernel.
    by_chance, moved: of further runs of the same source, by what was changed in them; they are added as they are made.
    """

    invocation: Invocation
    draw: Draw
    before: Mapping[tuple[str, int], Pages]
    asks: bool
    by_chance: dict[Draw, Sequence[Mapping[str, Pages]]] = field(default_factory=dict)
    moved: dict[tuple[Draw, int], tuple[Mapping[str, Pages], bool]] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Count the bytes of the tensors' pages."""
        others = [left for runs in self.by_chance.values() for left in runs]
        further = [*others, *(left for left, _ in self.moved.values())]
        return sum(pages.flat.nbytes for left in (self.invocation.left, *further) for pages in left.values())


class SourceRuns:
    """The last runs of sources, by all that they hang on.

    A run that never asked which release lowers the kernel is every release's. In another process nothing is kept yet.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, Release | None], SourceRun] = {}
        self._digests: list[tuple[Mapping[int, Mapping[str, Array]], str]] = []

    def __reduce__(self) -> tuple[type[SourceRuns], tuple[()]]:
        return SourceRuns, ()

    def find(self, key: str, release: Release) -> SourceRun | None:
        """The run with this key (see `key`), if it is kept and holds for the release."""
        own, anyones = self._kept.get((key, release)), self._kept.get((key, None))
        if own is not None or anyones is None:
            return own
        return self.keep(key, release, replace(anyones, by_chance={}, moved={}))

    def keep(self, key: str, release: Release, run: SourceRun) -> SourceRun:
        """Keep a run of a release, and drop the oldest ones where there are too many, or tensors take too much."""
        for whose in (release, *([] if run.asks else [None])):
            self._kept.pop((key, whose), None)
            self._kept[key, whose] = run
        left = sum(kept.bytes for kept in {id(kept): kept for kept in self._kept.values()}.values())
        for oldest in list(self._kept):
            if left <= _BYTES and len(self._kept) <= _MOST:
                break
            dropped = self._kept.pop(oldest)
            left -= 0 if any(kept is dropped for kept in self._kept.values()) else dropped.bytes
        return run

    def key(self, source: Function, given: Mapping[int, Mapping[str, Array]] | None, *others: object) -> str:
        """Return what a run hangs on, as text that is equal for equal sources. others: what `repr` says all of."""
        encoder = Encoder()
        function = encoder.function(source)
        text = json.dumps([function, encoder.table])
        return hashlib.sha256(repr((text, self._digest(given), others)).encode()).hexdigest()

    def _digest(self, given: Mapping[int, Mapping[str, Array]] | None) -> str:
        """Return the digest of a case's own inputs; for the same object computed once."""
        if given is None:
            return ""
        for known, digest in self._digests:
            if known is given:
                return digest
        found = hashlib.sha256()
        for seed, arrays in given.items():
            for name, array in arrays.items():
                found.update(repr((seed, name, str(array.dtype), array.shape)).encode())
                found.update(array.reshape(-1).view("u1").data)
        self._digests = [*self._digests[-1:], (given, found.hexdigest())]
        return found.hexdigest()
