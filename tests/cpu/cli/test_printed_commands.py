"""Every command that a report prints works when it is pasted."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cpu import wrong_kernels
from tests.cpu.checking import RIGHT, installed
from tlcheck.cli.main import main
from tlcheck.files import cache_root
from tlcheck.gate import bisect
from tlcheck.toolchain.releases import PINNED

_PRINTED = re.compile(r"`(tlcheck [^`]+)`|(?:since when|by which pass): (tlcheck [^;\n]+)")
_OF_A_TERMINAL = ("tlcheck golden review",)


def printed(text: str) -> list[str]:
    """The commands of a report, each once, without those that need a terminal, and those that pages tell of a CASE."""
    found = [one or other.strip() for one, other in _PRINTED.findall(text)]
    pasted = [command for command in dict.fromkeys(found) if "CASE" not in command.split()]
    return [command for command in pasted if command not in _OF_A_TERMINAL]


def run(capsys: pytest.CaptureFixture[str], words: list[str]) -> tuple[int, str]:
    """A command's exit code, and all that it prints."""
    code = main(words)
    said = capsys.readouterr()
    return code, said.out + said.err


def pasted(capsys: pytest.CaptureFixture[str], words: list[str], known: dict[str, int]) -> None:
    """Run a command, and all that it and those print: each once. A rule's page shows commands of its own example."""
    known[shlex.join(["tlcheck", *words])] = 0
    code, text = run(capsys, words)
    assert code in (0, 1, 3), text
    for command in printed(text) if words[0] != "explain" else ():
        argv = shlex.split(command)[1:]
        if shlex.join(["tlcheck", *argv]) not in known:
            pasted(capsys, argv, known)


def test_commands_are_found() -> None:
    text = (
        "help: use it; `tlcheck explain TLO001`\nsince when: tlcheck bisect k.py::f; by which pass: tlcheck bisect x\n"
    )
    assert printed(text) == ["tlcheck explain TLO001", "tlcheck bisect k.py::f", "tlcheck bisect x"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "my kernels"
    folder.mkdir()
    wrong_kernels.written("gemm", folder)
    shutil.copy(RIGHT, folder / "right.snapshot.json")
    (folder / "pyproject.toml").write_text("[tool.tlcheck]\n")
    monkeypatch.chdir(tmp_path)
    return folder


def test_of_goldens(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(project)
    known: dict[str, int] = {}
    pasted(capsys, ["golden", "check", "right.snapshot.json"], known)
    assert list(known) == [
        "tlcheck golden check right.snapshot.json",
        "tlcheck golden update right.snapshot.json --new-only",
        "tlcheck golden accept --reason TEXT",
    ]
    assert run(capsys, ["golden", "check", "right.snapshot.json"])[0] == 0


REPORTS = (
    "check CASE --arch sm_80 --toolchain 0.1.9 --blocks 2 --seeds 1 --pythonpath my",
    "check CASE --arch sm_80 --toolchain 0.1.9 --quick",
    "bisect CASE --arch sm_80 --from 0.1.9 --to 0.1.9",
    "bisect CASE --arch sm_80 --passes --toolchain 0.1.9",
    "gate CASE --arch sm_80 --from PINNED --to 0.1.9",
    "run CASE --arch sm_80 --toolchain 0.1.9 --device cpu",
    "matrix CASE --arch sm_80 --toolchains 0.1.9,PINNED",
    "golden check CASE --arch sm_80 --toolchain 0.1.9",
    "trace CASE --arch sm_80 --toolchain 0.1.9 --element C[0,0]",
    "dump CASE --arch sm_80 --toolchain 0.1.9 -o out",
)


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.xdist_group("0.1.9")
@pytest.mark.usefixtures("kept_results", "project")
def test_of_reports(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A bisect without a range takes the known releases: here those that have lowered the kernel already."""
    for release in ("0.1.9", PINNED):
        installed(release)
    monkeypatch.setattr(bisect, "RELEASES", ("0.1.9", PINNED))
    case = [str(Path("my kernels", "kernels.py::gemm")), *"--arg m=32 --arg n=32 --arg k=160 --arg block=32".split()]
    known: dict[str, int] = {}
    for words in REPORTS:
        spelled = words.replace("PINNED", PINNED).split()
        argv = [part for word in spelled for part in (case if word == "CASE" else [word])]
        pasted(capsys, argv, known)
    assert len(known) > len(REPORTS)


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("project")
def test_of_the_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In a cache with one toolchain: the doctor imports each."""
    folder = installed(PINNED).python.parents[1]
    root = tmp_path / "cache"
    (root / "toolchains").mkdir(parents=True)
    (root / "toolchains" / folder.name).symlink_to(folder)
    (root / "torch").symlink_to(cache_root() / "torch")
    monkeypatch.setenv("TLCHECK_CACHE", str(root))
    pasted(capsys, ["doctor"], {})
