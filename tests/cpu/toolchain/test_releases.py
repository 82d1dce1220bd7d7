"""The table of releases: complete, exact, and in agreement with the project's other pins."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tlcheck.toolchain.releases import PINNED, RELEASES, TORCH, KnownRelease, pins_of

ROOT = Path(__file__).parents[3]


def test_covers_every_release_in_order() -> None:
    posts = ["0.1.6.post2", "0.1.7", "0.1.7.post1", "0.1.7.post2", "0.1.7.post3"]
    assert list(RELEASES) == posts + [f"0.1.{n}" for n in range(8, 16)]


@pytest.mark.parametrize("release", RELEASES.values(), ids=lambda release: release.version)
def test_fixes_what_takes_part_in_lowering(release: KnownRelease) -> None:
    pins = {requirement.name: requirement for requirement in map(Requirement, release.pins)}
    expected = {"apache-tvm-ffi"} if Version(release.version) >= Version("0.1.7") else set()
    expected |= {"z3-solver"} if Version(release.version) > Version("0.1.7") else set()
    exact = {name for name, pin in pins.items() if [spec.operator for spec in pin.specifier] == ["=="]}
    assert expected <= exact
    assert set(pins) - expected <= {"nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"}


def test_a_local_build_has_the_pins_of_its_release() -> None:
    assert pins_of("0.1.15+cu128.git1234") == RELEASES["0.1.15"].pins != ()


def test_an_unlisted_release_has_no_pins() -> None:
    assert pins_of("9.9") == ()


def test_agrees_with_the_project() -> None:
    assert f"torch=={TORCH}" in (ROOT / "constraints.txt").read_text().splitlines()
    assert f'tilelang = ["tilelang=={PINNED}", "torch=={TORCH}",' in (ROOT / "pyproject.toml").read_text()
    assert PINNED in RELEASES
