"""Test what CASE arguments, --arg and --arch mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.errors import UsageError
from tlcheck.lower.scripts import is_script
from tlcheck.lower.selection import Selection, parse, parse_archs, parse_args, select


@pytest.fixture(autouse=True)
def _kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """k.py, a saved snapshot, a folder with an `@`, and a folder with files of all kinds."""
    monkeypatch.chdir(tmp_path)
    for name in ("k.py", "s.snapshot.json", "notes.txt", "at@home/k.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for name in ("b.py", "a.py", "deep/c.py", "_private.py", ".hidden.py", "__pycache__/d.py", ".venv/e.py", "f.txt"):
        (tmp_path / "all" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "all" / name).touch()


@pytest.mark.parametrize(
    ("case", "selection"),
    [
        ("k.py", Selection(Path("k.py"))),
        ("k.py::full", Selection(Path("k.py"), "full")),
        ("k.py@0.1.7", Selection(Path("k.py"), "", "0.1.7")),
        ("k.py::full@0.1.7", Selection(Path("k.py"), "full", "0.1.7")),
        ("k.py::full@/envs/a@b/python", Selection(Path("k.py"), "full", "/envs/a@b/python")),
        ("at@home/k.py::full@latest", Selection(Path("at@home/k.py"), "full", "latest")),
        ("all/@pinned", Selection(Path("all"), "", "pinned")),
        ("s.snapshot.json", Selection(Path("s.snapshot.json"))),
    ],
)
def test_the_parts_of_a_case(case: str, selection: Selection) -> None:
    assert parse(case) == selection


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("nowhere.py::full", "no such file or folder: nowhere.py"),
        ("", "no such file or folder: ''"),
        ("@0.1.7", "no such file or folder: @0.1.7"),
        ("k.py@", "no toolchain after the @"),
        ("k.py::", "no name after the ::"),
        ("all::full", "all is a folder"),
        ("s.snapshot.json::full", "takes neither :: nor @"),
        ("s.snapshot.json@0.1.7", "takes neither :: nor @"),
        ("notes.txt", "neither a kernel file"),
    ],
)
def test_a_case_that_makes_no_sense_is_one_line(case: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        parse(case)
    assert "\n" not in str(error.value)


def test_a_folder_is_its_kernel_files_without_hidden_and_private_ones() -> None:
    found = select(["all@0.1.7"])
    assert [s.path.as_posix() for s in found] == ["all/a.py", "all/b.py", "all/deep/c.py"]
    assert all(s.found and s.toolchain == "0.1.7" for s in found)


def test_a_hidden_folder_may_itself_be_named() -> None:
    assert [s.path.as_posix() for s in select(["all/.venv"])] == ["all/.venv/e.py"]


def test_a_folder_without_kernel_files() -> None:
    Path("empty").mkdir()
    with pytest.raises(UsageError, match=r"no kernel file \(\*\.py\) in empty"):
        select(["empty"])


def test_the_same_case_twice_is_one() -> None:
    assert select(["k.py::a", "k.py::b", "k.py::a"]) == [Selection(Path("k.py"), n) for n in ("a", "b")]


def test_build_arguments() -> None:
    assert parse_args(["n=512", "dtype=float16", "flag=a=b", "empty="]) == {
        "n": "512",
        "dtype": "float16",
        "flag": "a=b",
        "empty": "",
    }


@pytest.mark.parametrize("texts", [["n"], ["=3"], ["2n=3"], ["n=1", "n=2"]])
def test_bad_build_arguments(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--arg"):
        parse_args(texts)


def test_archs_in_order_and_once() -> None:
    assert parse_archs(["sm_90a", " sm_80", "gfx942", "sm_90a"]) == ("sm_90a", "sm_80", "gfx942")


@pytest.mark.parametrize("arch", ["", "90", "sm_9", "SM_90", "sm_90x", "gfx941"])
def test_an_unknown_arch(arch: str) -> None:
    with pytest.raises(UsageError, match="unknown arch"):
        parse_archs([arch])


def test_an_arch_that_is_nearly_one() -> None:
    with pytest.raises(UsageError, match=r"; did you mean sm_90\?$"):
        parse_archs(["sm90"])


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("import tilelang  # Case 1: backward", True),
        ('"""Case by case."""\nimport tilelang', True),
        ("from tlcheck import Case", False),
        ("import tlcheck.case as c", False),
        ("from own.cases import Case", False),
        ("import own\nsmall = own.Case(own.kernel)", False),
        ("not Python: Case", False),
        ("class Case: ...\nmine = Case()", True),
        ("from .mine import Case", True),
        ("from mine import Case", True),
        ("from .mine import Case\nimport tlcheck", False),
        ("from .theirs import Case", False),
    ],
)
def test_a_file_is_run_unless_its_code_names_cases(text: str, runs: bool, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Case: ...")
    (tmp_path / "theirs.py").write_text("from tlcheck.case import Case")
    file = tmp_path / "test_k.py"
    file.write_text(text)
    assert is_script(Selection(file)) is runs
    assert is_script(Selection(file, "add[n=64]")) is runs  # a kernel that running the file makes
    assert not is_script(Selection(file, "add"))
