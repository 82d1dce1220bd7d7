"""The command line's frame: help, errors, exit codes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from types import SimpleNamespace

import pytest

from tlcheck import __version__
from tlcheck.cli.main import COMMANDS, main
from tlcheck.errors import UsageError

HEAVY = ("numpy", "rich", "tvm", "packaging")


def run_command(monkeypatch: pytest.MonkeyPatch, error: BaseException | None = None, code: int = 0) -> int:
    """`main` with a `check` that raises, or returns a code."""

    def run(_: Namespace) -> int:
        if error:
            raise error
        return code

    def add_arguments(_: ArgumentParser) -> None:
        pass

    module = SimpleNamespace(add_arguments=add_arguments, run=run)
    monkeypatch.setattr("importlib.import_module", lambda _: module)
    return main(["check"])


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)


def test_help_imports_nothing_heavy() -> None:
    code = f"""
import sys
from tlcheck.cli.main import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = set({HEAVY}) & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        (
            "tlcheck.cli.check",
            ("numpy", "tlcheck.prove.plans", "tlcheck.execute.machine", "tlcheck.golden.comparison", "tvm"),
        ),
        ("tlcheck.verdicts.judging", ("tlcheck.execute.machine", "tlcheck.execute.memory.pages", "tvm")),
        (
            "tlcheck.cli.gate",
            ("numpy", "tlcheck.prove.plans", "tlcheck.execute.machine", "tlcheck.page.gate_page", "tvm"),
        ),
    ],
)
def test_nothing_is_imported_before_it_is_needed(module: str, unneeded: tuple[str, ...]) -> None:
    """Another process than the command's proves, only executions need what executes, and a gate may know all."""
    code = f"import sys, {module}; print(sorted(set({unneeded}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"tlcheck {__version__}\n"


@pytest.mark.parametrize("argv", [[], ["toolchain"], ["toolchain", "path"], ["doctor", "--nonsense"]])
def test_bad_usage_is_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("tlcheck: error: ")
    assert said.endswith(" --help` lists all)\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["check", "--bloks", "1"], "--blocks"),
        (["golden", "check", "--stats"], "--stat"),
        (["golden", "chek"], "check"),
        (["diff", "a", "b", "--format", "markdwn"], "markdown"),
    ],
)
def test_a_word_that_is_not_known_is_told_from_its_neighbour(
    argv: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(argv)
    assert f"; did you mean {meant}? (`tlcheck " in capsys.readouterr().err


def test_a_commands_code_is_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_command(monkeypatch, code=3) == 3


def test_a_usage_error_is_one_line_and_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(monkeypatch, UsageError("no such file: x.py")) == 2
    assert capsys.readouterr() == ("", "tlcheck: error: no such file: x.py\n")


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "tlcheck: interrupted\n"


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        run_command(monkeypatch, ZeroDivisionError())


def test_a_reader_that_goes_away_is_no_error() -> None:
    """As in `tlcheck ... | head -1`."""
    command = f"{sys.executable} -m tlcheck toolchain path current | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", f"sleep 0.1; {command}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("0.1.99", "; if there is such a release, run `tlcheck toolchain install 0.1.99`\n"),
        ("0.1.7.post9", "; did you"),
    ],
)
def test_an_unknown_release_is_not_recommended(
    release: str, said: str, cache: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["toolchain", "path", release]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "installed: run" not in err


def test_a_missing_toolchain_end_to_end(cache: object) -> None:
    command = [sys.executable, "-m", "tlcheck", "toolchain", "path", "0.1.7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expected = "tlcheck: error: toolchain 0.1.7 is not installed: run `tlcheck toolchain install 0.1.7`\n"
    assert (done.returncode, done.stderr) == (2, expected)


@pytest.mark.parametrize(("word", "hint"), [("chek", "; did you mean check? "), ("zzz", " (")])
def test_a_command_that_is_not_there(word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 2
    assert capsys.readouterr().err.startswith(f"tlcheck: error: no command '{word}'{hint}")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_folder_that_cannot_be_written_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    assert run_command(monkeypatch, OSError(number, os.strerror(number), "out/report.html")) == 2
    assert capsys.readouterr().err == f"tlcheck: error: out/report.html: {os.strerror(number)}\n"


def test_an_error_that_is_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="bad descriptor"):
        run_command(monkeypatch, OSError(errno.EBADF, "bad descriptor"))
