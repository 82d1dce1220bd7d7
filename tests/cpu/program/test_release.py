"""TileLang's releases in their order."""

from __future__ import annotations

import pytest

from tlcheck.program.release import UNKNOWN, Release
from tlcheck.toolchain.releases import RELEASES


def test_known_releases_are_in_order() -> None:
    found = [Release.of(text) for text in RELEASES]
    assert found == sorted(found)
    assert len(set(found)) == len(found)
    assert all(release.is_known and release < UNKNOWN for release in found)


def test_a_post_release_comes_after_its_release() -> None:
    assert Release.of("0.1.7") < Release.of("0.1.7.post1") < Release.of("0.1.7.post3") < Release.of("0.1.8")
    assert Release.of("0.1.9") < Release.of("0.1.10")


@pytest.mark.parametrize("text", ["0.1.15+cu128.git1a2b3c4d", "0.1.15.dev3", "0.1.15rc1", "0.1.15"])
def test_local_builds_and_those_on_the_way_count_as_the_release(text: str) -> None:
    assert Release.of(text) == Release.of("0.1.15")
    assert Release.of(text).text == text.partition("+")[0]


@pytest.mark.parametrize("text", ["", "main", "unknown+git"])
def test_what_is_no_release_is_unknown_and_keeps_its_text(text: str) -> None:
    found = Release.among({"tilelang": text})
    assert (found, found.is_known, found.text) == (UNKNOWN, False, text.partition("+")[0])
    assert Release.among({}) == UNKNOWN
    assert found > Release.of("99.0")
