"""The installed releases around another one."""

from __future__ import annotations

from tlcheck.program.release import Release
from tlcheck.toolchain import environment
from tlcheck.toolchain.releases import RELEASES
from tlcheck.toolchain.resolve import recipe_of


def installed_around(toolchain: str, release: str, requirements: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the installed releases before and after that of a toolchain, the nearest first.

    toolchain: as the user named it. One that is no release, such as a checkout, comes after the release it is of.
    """
    own, is_release = Release.of(release), recipe_of(toolchain) is not None
    there = [r for r in RELEASES if environment.find(environment.release_recipe(r, requirements)) is not None]
    there.sort(key=Release.of)
    older = [r for r in reversed(there) if Release.of(r) < own or (Release.of(r) == own and not is_release)]
    return older, [r for r in there if Release.of(r) > own]
