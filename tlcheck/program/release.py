"""TileLang's releases, in their order: what a kernel means depends on the one that lowered it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from packaging.version import InvalidVersion, Version


@dataclass(frozen=True, order=True, slots=True)
class Release:
    """A release. One that is not known comes after all others: a build without a version is likely to be new.

    numbers: `0.1.7` as (0, 1, 7); a build on the way to a release counts as that release.
    post: number of the post-release, 0 for none.
    text: as it is written, without what a local build adds to it.
    """

    numbers: tuple[int, ...]
    post: int = 0
    text: str = field(default="", compare=False)

    @classmethod
    def of(cls, text: str) -> Release:
        """Read a release; what is not one equals UNKNOWN."""
        return _read(text)

    @classmethod
    def among(cls, versions: Mapping[str, str]) -> Release:
        """The release among the versions of a toolchain."""
        return _read(versions.get("tilelang", ""))

    @property
    def is_known(self) -> bool:
        """Whether a build said which release it is."""
        return self != UNKNOWN


UNKNOWN = Release((1 << 30,))


@cache
def _read(text: str) -> Release:
    public = text.partition("+")[0]
    try:
        version = Version(public)
    except InvalidVersion:
        return Release(UNKNOWN.numbers, text=public)
    return Release(version.release, version.post or 0, public)
