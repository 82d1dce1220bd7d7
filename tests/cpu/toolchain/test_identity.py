"""A toolchain's identity, from the metadata of what is installed."""

from __future__ import annotations

import platform
import sys
import zipfile
from pathlib import Path

import pytest

from tests.cpu.toolchain.stand_ins import Index
from tlcheck.errors import UsageError
from tlcheck.toolchain.checkout import Checkout
from tlcheck.toolchain.identity import identify
from tlcheck.toolchain.resolve import Toolchain


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def unpack(wheel: Path, site: Path) -> None:
    """Install a wheel as pip does, which adds entries of its own to the RECORD."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    info = next(site.glob(f"{wheel.name.split('-')[0]}-*.dist-info"))
    with (info / "RECORD").open("a") as record:
        record.write(f"{info.name}/INSTALLER,sha256=abc,4\n../../bin/tilelang,sha256=def,100\n")


def interpreter(site: Path) -> Toolchain:
    return Toolchain("here", "interpreter", Path(sys.executable), {"PYTHONPATH": str(site)})


def test_versions_and_content_without_importing(index: Index, site: Path) -> None:
    unpack(index.tilelang("9.1", "raise SystemExit('imported')\n"), site)
    unpack(index.wheel("z3_solver", "4.15", {"z3/__init__.py": ""}), site)
    identity = identify(interpreter(site))
    assert identity.release == "9.1"
    assert identity.python == platform.python_version()
    assert identity.packages[-2:] == (("tilelang", "9.1"), ("z3-solver", "4.15"))


def test_content_changes_with_the_files_only(index: Index, tmp_path: Path) -> None:
    def content(name: str, source: str, extra: str = "") -> str:
        site = tmp_path / name
        unpack(index.tilelang("9.1", source), site)
        with (site / "tilelang-9.1.dist-info" / "RECORD").open("a") as record:
            record.write(extra)
        return identify(interpreter(site)).content

    first = content("a", "x = 1\n")
    assert content("b", "x = 1\n", "tilelang/__pycache__/x.pyc,sha256=1,1\n") == first
    assert content("c", "x = 2\n") != first


def test_no_tilelang(site: Path) -> None:
    with pytest.raises(UsageError, match="toolchain here: no tilelang is installed for"):
        identify(interpreter(site))


def test_an_interpreter_that_does_not_run(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(UsageError, match="does not run"):
        identify(Toolchain("broken", "interpreter", broken))


def test_a_checkout_has_its_own_version_even_beside_an_installed_tilelang(
    index: Index, site: Path, tmp_path: Path
) -> None:
    unpack(index.tilelang("9.1"), site)
    env = {"PYTHONPATH": f"{tmp_path}:{site}"}
    toolchain = Toolchain("checkout", "checkout", Path(sys.executable), env, Checkout(tmp_path, "9.2", ""))
    assert identify(toolchain).release == "9.2"
