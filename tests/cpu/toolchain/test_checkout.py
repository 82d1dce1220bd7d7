"""A TileLang by its path: which release it is of, where it is imported, what is said about one that cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cpu.toolchain.stand_ins import Index, Steps
from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.toolchain import environment
from tlcheck.toolchain.checkout import Checkout, read_checkout
from tlcheck.toolchain.environment import release_recipe
from tlcheck.toolchain.identity import identify
from tlcheck.toolchain.install import install
from tlcheck.toolchain.releases import PINNED, RELEASES
from tlcheck.toolchain.resolve import resolve


def write(file: Path, text: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with a built library, of a version that it does not name."""
    root = tmp_path / "tree"
    write(root / "tilelang" / "__init__.py", "import torch\nplace = 'the checkout'\n")
    write(root / "tilelang" / "libinfo.py")
    write(root / "build" / "lib" / "libtilelang.so", "built here")
    return root


@pytest.fixture
def release(index: Index, reporter: Steps) -> Path:
    """The folder of an installed release 9.1 with a library of its own."""
    library = {"tilelang/lib/libtilelang.so": "\x7fELF\x02\x01" + "\0" * 58}
    index.wheel("tilelang", "9.1", {"tilelang/__init__.py": "import torch\n", **library}, ("torch",))
    return install(release_recipe("9.1"), reporter).folder


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def read(path: Path) -> Checkout:
    found = read_checkout(path)
    assert found is not None
    return found


def test_the_version_is_the_one_it_states(tree: Path, cache: Path) -> None:
    write(tree / "VERSION", "0.1.14\n")
    assert read(tree) == Checkout(tree, "0.1.14", "")
    assert read(tree / "tilelang") == read(tree)  # by either path


def test_or_that_of_the_metadata_beside_it(tree: Path, cache: Path) -> None:
    write(tree / "tilelang-0.1.13+cu128.dist-info" / "METADATA")
    found = read(tree)
    assert (found.version, found.release) == ("0.1.13+cu128", "0.1.13")


@pytest.mark.slow
def test_or_that_of_the_toolchain_with_the_same_library(release: Path, tree: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot tell which release .* write it into the file .*VERSION"):
        read_checkout(tree)
    copied = environment.site_packages(release) / "tilelang" / "lib" / "libtilelang.so"
    (tree / "build" / "lib" / "libtilelang.so").write_bytes(copied.read_bytes())
    assert read(tree).version == "9.1"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.1.9+cuda.git1a2b", "0.1.9"),
        ("0.1.15.post1", "0.1.15"),
        ("0.1.99", list(RELEASES)[-1]),
        ("0.1.16.dev3", "0.1.15"),
        ("0.1.2", next(iter(RELEASES))),
    ],
)
def test_a_version_that_is_no_release_has_what_the_one_before_needs(
    version: str, expected: str, tree: Path, cache: Path
) -> None:
    assert Checkout(tree, version, "").release == expected


@pytest.mark.slow
def test_an_unknown_release_that_is_installed_is_its_own(release: Path, tree: Path) -> None:
    assert Checkout(tree, "9.1+git", "").release == "9.1"
    assert Checkout(tree, "9.2", "").release == list(RELEASES)[-1]


@pytest.mark.slow
def test_it_is_imported_in_the_environment_of_its_release(
    release: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With that environment's torch, and whatever is on the user's path."""
    write(tree / "VERSION", "9.1")
    write(tree.parent / "own" / "tilelang" / "__init__.py", "raise SystemExit('another one')")
    monkeypatch.setenv("PYTHONPATH", str(tree.parent / "own"))
    found = resolve(str(tree))
    assert (found.kind, found.python) == ("checkout", release / "bin" / "python")
    told = subprocess.run(
        [found.python, "-c", "import tilelang, torch; print(tilelang.place, torch.answer)"],
        env={**found.env}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout == "the checkout 42\n"
    assert identify(found).release == "9.1"


def test_without_that_in_the_active_one_if_it_imports_there(
    tree: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tree / "VERSION", PINNED)
    with pytest.raises(UsageError, match=rf"release {PINNED}, which is not .* `tlcheck toolchain install .*tree --"):
        resolve(str(tree), ["own"])
    own = write(tree.parent / "own" / "torch.py").parent
    monkeypatch.setenv("PYTHONPATH", str(own))
    found = resolve(str(tree))
    assert found.python == Path(sys.executable)
    assert found.env == {"PYTHONPATH": f"{tree}:{own}"}


@pytest.mark.slow
def test_installing_one_makes_the_environment_of_its_release(
    index: Index, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index.tilelang(PINNED)
    for pin in RELEASES[PINNED].pins:
        name, _, version = pin.partition("==")
        index.wheel(name.replace("-", "_"), version, {})
    write(tree / "VERSION", f"{PINNED}+git1a2b")
    assert main(["toolchain", "install", str(tree)]) == 0
    assert capsys.readouterr().out.startswith(f"{PINNED}: installed in ")
    assert main(["toolchain", "path", str(tree)]) == 0
    assert capsys.readouterr().out == f"{release_recipe(PINNED).folder}/bin/python\n"


def test_the_commit(tree: Path, cache: Path) -> None:
    write(tree / "VERSION", PINNED)
    git(tree.parent, "init", "-q")
    git(tree.parent, "commit", "-q", "--allow-empty", "-m", "zero")
    assert read(tree).commit == ""  # copied into a repository that knows nothing of it
    git(tree, "add", "tilelang")
    git(tree, "commit", "-q", "-m", "one")
    head = git(tree, "rev-parse", "--short=9", "HEAD")
    assert read(tree).commit == head
    write(tree / "tilelang" / "__init__.py", "edited = 1\n")
    assert read(tree).commit == f"{head}+"


def test_one_that_is_not_built(tree: Path) -> None:
    (tree / "build" / "lib" / "libtilelang.so").unlink()
    with pytest.raises(UsageError, match=r"has no built libraries \(libtilelang\*\.so .*: build it first"):
        resolve(str(tree))


@pytest.mark.parametrize(
    ("name", "message"),
    [("renamed", "Python finds it only in a folder called `tilelang`"), ("a:b", "its name has a ':'")],
)
def test_a_folder_that_python_would_not_find(tree: Path, name: str, message: str) -> None:
    renamed = tree.rename(tree.with_name(name)) if ":" in name else (tree / "tilelang").rename(tree / name)
    with pytest.raises(UsageError, match=message):
        resolve(str(renamed))


def test_a_version_that_is_none(tree: Path) -> None:
    write(tree / "VERSION", "one day")
    with pytest.raises(UsageError, match="VERSION has no version of TileLang: 'one day'"):
        resolve(str(tree))
