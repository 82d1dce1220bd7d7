"""Help: `-h` shows what is usual, `--help` everything; colours; completion."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tlcheck.cli import completion
from tlcheck.cli.main import COMMANDS, main, parser_of
from tlcheck.cli.usage import USAGES

EXAMPLES = [(name, command) for name, told in USAGES.items() for command, _ in told.examples]


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_short_help_has_the_usual_options_and_long_help_all(capsys: pytest.CaptureFixture[str]) -> None:
    short, long = shown(capsys, "check", "-h"), shown(capsys, "check", "--help")
    assert short.startswith("usage: tlcheck check [options] [CASE ...]\n")
    assert all(option in short for option in ("--toolchain", "-k EXPR", "examples:", "all 3"))
    assert "--no-fork" not in short
    assert "--no-fork" in long
    assert len(short.splitlines()) < len(long.splitlines()) / 1.5
    assert "tlcheck check kernels.py:42\n" in short
    assert "tlcheck check kernels.py:42\n" in long


LOWERING = "check run fix reduce report cost trace gate bisect diff matrix dump layout capture fuzz init".split()


@pytest.mark.parametrize("name", LOWERING)
def test_a_command_that_lowers_a_kernel_sets_pass_configurations(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert "--pass-config NAME=VALUE" in shown(capsys, name, "--help")


def test_a_command_with_few_options_has_one_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "doctor", "-h") == shown(capsys, "doctor", "--help")


@pytest.mark.parametrize("name", USAGES)
def test_usual_options_are_options_of_the_command(name: str) -> None:
    command, _, action = name.partition(" ")
    parser = parser_of(command)
    known = (dict(parser.actions())[action] if action else parser)._option_string_actions
    assert [option for option in USAGES[name].options if option not in known] == []


@pytest.mark.parametrize(("name", "command"), EXAMPLES)
def test_examples_are_understood(name: str, command: str) -> None:
    _, first, *words = shlex.split(command)
    assert command.startswith(f"tlcheck {name}")
    parser_of(first).command_line(words[: words.index(">")] if ">" in words else words)


def test_every_command_that_takes_something_has_an_example() -> None:
    actions = [f"{name} {action}" for name in COMMANDS for action, _ in parser_of(name).actions()]
    assert len(actions) > 12
    everything = [*COMMANDS, *actions]
    assert [name for name in everything if name not in USAGES or not USAGES[name].examples] == ["doctor"]


def test_an_action_shows_its_own_examples(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(capsys, "golden", "accept", "--help")
    assert "examples:\n  # all that waits\n  tlcheck golden accept --reason" in said
    assert "golden review" not in said


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("golden", "toolchain", "cache")])
def test_options_with_a_value_say_their_default(name: str) -> None:
    unsaid = [
        action.option_strings
        for action in parser_of(name)._actions
        if action.option_strings and action.default not in (None, [], False, "", "==SUPPRESS==")
        if not action.required and "default" not in (action.help or "")
    ]
    assert unsaid == []


@pytest.mark.parametrize(("wanted", "coloured"), [("always", True), ("never", False), ("auto", False)])
def test_color(
    wanted: str, coloured: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("FORCE_COLOR", "")
    assert main(["explain", "--color", wanted]) == 0
    assert ("\x1b[" in capsys.readouterr().out) == coloured


@pytest.mark.parametrize("argv", [("--timeout", "soon"), ("-j", "many")])
def test_a_value_that_is_none_is_told_without_the_name_of_a_function(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, str]
) -> None:
    with pytest.raises(SystemExit):
        main(["check", "k.py", *argv])
    assert f": invalid value: {argv[1]!r} (" in capsys.readouterr().err


def test_a_command_without_colours_has_no_such_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["case", "k.py::f", "--color", "never"])
    assert "unrecognized arguments: --color" in capsys.readouterr().err


def test_bash_completes_commands_options_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    ask = """
complete -p tlcheck > /dev/null
for words in "ga" "check --pass" "explain --color ne" "toolchain inst"; do
  COMP_WORDS=(tlcheck $words) COMP_CWORD=$(wc -w <<< "$words") COMPREPLY=()
  _shtab_tlcheck
  echo "${COMPREPLY[@]}"
done
"""
    done = subprocess.run(["bash", "-c", script + ask], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["gate", "--pass-config", "never", "install"]


def test_zsh_knows_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    script = capsys.readouterr().out
    assert script.startswith("#compdef tlcheck")
    assert [name for name in COMMANDS if f"    {name}:'" not in script] == []


def test_files_and_folders_are_completed() -> None:
    whole = completion._whole()
    (commands,) = (action for action in whole._actions if action.choices)
    check = dict(commands.choices or {})["check"]
    kinds = {action.dest: getattr(action, "complete", None) for action in check._actions}
    assert kinds["cases"] == kinds["output"] != kinds["save"] is not None
    assert kinds["arch"] is None
