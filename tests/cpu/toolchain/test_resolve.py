"""Test what each way of naming a toolchain means, and what is said about one that is not there."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.cpu.toolchain.stand_ins import Index
from tlcheck.errors import UsageError
from tlcheck.toolchain.environment import PYTHON_TAG
from tlcheck.toolchain.index import latest_release
from tlcheck.toolchain.releases import PINNED, RELEASES
from tlcheck.toolchain.resolve import Toolchain, recipe_of, resolve


def test_pinned_is_a_release() -> None:
    recipe = recipe_of("pinned", ["einops"])
    assert recipe is not None
    assert (recipe.name, recipe.tilelang, recipe.pins) == (PINNED, f"tilelang=={PINNED}", RELEASES[PINNED].pins)
    assert recipe.requirements == ("einops",)


def test_the_users_packages_decide_the_folder_in_any_order(cache: Path) -> None:
    names = {
        recipe.folder.name
        for own in ([], ["a", "b"], ["b", "a"], ["a"])
        if (recipe := recipe_of("0.1.7", own)) is not None
    }
    assert len(names) == 3
    assert f"0.1.7-{PYTHON_TAG}" in names


def test_latest_is_the_newest_of_the_index(index: Index) -> None:
    index.tilelang("9.1")
    index.tilelang("9.10")
    assert latest_release() == "9.10"


def test_latest_of_an_index_without_it(index: Index) -> None:
    with pytest.raises(UsageError, match=r"latest tilelang: .*tilelang"):
        latest_release()


def test_current_is_the_active_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert resolve("current") == Toolchain("current", "interpreter", Path(sys.executable))
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    assert resolve("current").python == tmp_path / "bin" / "python"


def test_an_interpreter_by_its_path() -> None:
    assert resolve(sys.executable) == Toolchain(sys.executable, "interpreter", Path(sys.executable))


@pytest.mark.parametrize("name", ["", "nonsense", "0.1.x", "./missing", "/"])
def test_nonsense(name: str) -> None:
    with pytest.raises(UsageError, match="is no toolchain: a release such as"):
        resolve(name)


def test_a_release_that_is_not_installed_says_what_to_run(cache: Path) -> None:
    with pytest.raises(UsageError, match=r"run `tlcheck toolchain install 0\.1\.8 --with 'a>1'`"):
        resolve("0.1.8", ["a>1"])


def test_a_release_before_the_first_known_one_is_not_suggested(cache: Path) -> None:
    with pytest.raises(UsageError) as error:
        resolve("0.1.5")
    assert str(error.value) == (
        "toolchain 0.1.5 is not installed: it is older than 0.1.6.post2, the first release that tlcheck knows"
    )


def test_a_command_that_is_suggested_can_be_pasted(cache: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "my builds" / "tilelang-0.1.15+git1-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"one")
    with pytest.raises(UsageError) as error:
        resolve(str(wheel))
    command = str(error.value).split("`")[1]
    assert shlex.split(command) == ["tlcheck", "toolchain", "install", str(wheel)]


def test_a_wheel_is_known_by_its_content(tmp_path: Path, cache: Path) -> None:
    wheel = tmp_path / "tilelang-0.1.15+git1-py3-none-any.whl"
    wheel.write_bytes(b"one")
    first = recipe_of(str(wheel))
    wheel.write_bytes(b"two")
    second = recipe_of(str(wheel))
    assert first is not None
    assert second is not None
    assert first.name.startswith("0.1.15+git1-wheel-")
    assert first.folder != second.folder
    assert first.pins == RELEASES["0.1.15"].pins


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torch-2.13.0-py3-none-any.whl", "is a wheel of torch, not of tilelang"),
        ("tilelang.whl", "[Ii]nvalid wheel filename"),
    ],
)
def test_a_wrong_wheel(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UsageError, match=message):
        resolve(str(tmp_path / name))


def test_a_missing_wheel(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such wheel"):
        resolve(str(tmp_path / "tilelang-1.0-py3-none-any.whl"))


@pytest.mark.parametrize(("name", "meant"), [("1.15", "0.1.15"), ("latst", "latest"), ("v0.1.7x", "0.1.7")])
def test_a_word_that_is_nearly_one(name: str, meant: str, cache: Path) -> None:
    with pytest.raises(UsageError, match=rf"; did you mean {meant}\?$"):
        resolve(name)
