"""The files around the code: the action, the hook, the workflow, the changelog and its files."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tlcheck import __version__
from tlcheck.cli.main import parser_of

ROOT = Path(__file__).parents[2]
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")
CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


def inputs() -> dict[str, str]:
    """The inputs of the action with their defaults."""
    part = ACTION.partition("\ninputs:\n")[2].partition("\noutputs:")[0]
    return dict(re.findall(r"^  ([\w-]+):\n(?:    .*\n)*?    default: (.*)$", part, re.MULTILINE))


def test_the_action_uses_every_input_and_no_other() -> None:
    assert set(inputs()) == set(re.findall(r"inputs\.([\w-]+)", ACTION))
    assert set(inputs()) == set(
        re.findall(r"^\| `([\w-]+)` \|", CI.partition("| input |")[2].partition("\n\n")[0], re.M)
    )


def run_step(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The action's own script, with a `tlcheck` that prints its arguments."""
    (script,) = re.findall(r"- name: Run\n(?:.*\n)*?      run: \|\n((?:        .*\n)+)", ACTION)
    env = {"COMMAND": command, "CASES": "", "TO": "latest", "ARGS": "", "REPORTS": "out", "PATH": "/usr/bin:/bin"}
    told = 'tlcheck() { printf "%s\\n" "$@"; }\n'
    return subprocess.run(["bash", "-ec", told + script], env={**env, **variables}, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("command", "variables"),
    [("check", {}), ("check", {"CASES": "a.py b/", "ARGS": "--arch sm_90"}), ("gate", {"TO": "0.1.15", "CASES": "k/"})],
)
def test_the_action_gives_the_command_what_it_takes(command: str, variables: dict[str, str]) -> None:
    done = run_step(command, **variables)
    name, *words = done.stdout.splitlines()
    args = parser_of(name).command_line(words)
    assert (done.returncode, name) == (0, command)
    assert args.cases == variables.get("CASES", "").split()
    assert args.output == Path("out")
    assert getattr(args, "new", "0.1.15") == "0.1.15"
    assert args.arch == ("sm_90" if "ARGS" in variables else None)


def test_the_action_refuses_another_command() -> None:
    done = run_step("matrix")
    assert (done.returncode, done.stdout) == (2, "::error::command is check or gate, not matrix\n")


def test_the_hook_is_understood_and_passes_no_file_names() -> None:
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    (entry,) = re.findall(r"^  entry: tlcheck (.*)$", hook, re.MULTILINE)
    name, *words = shlex.split(entry)
    assert parser_of(name).command_line(words).quiet
    assert "  pass_filenames: false\n" in hook  # a changed file may be a script that nobody wants to be run
    assert "- id: tlcheck\n" in hook
    assert f"rev: v{__version__}" in CI


def test_the_workflow_runs_the_readmes_commands_on_every_python() -> None:
    (pythons,) = re.findall(r"python: \[(.*)\]", WORKFLOW)
    assert re.findall(r"\d\.\d+", pythons) == [f"3.{minor}" for minor in range(10, 15)]
    for command in ("pip install .", "tlcheck toolchain install", "tlcheck check cases/atomics.py::tile_small"):
        assert re.search(rf"^(\$ )?{re.escape(command)}( |$)", README, re.MULTILINE)
        assert command in WORKFLOW
    for command in ("tlcheck toolchain install 0.1.14 0.1.15", "tlcheck gate --from 0.1.14 --to 0.1.15 "):
        assert command in README
        assert command in WORKFLOW
    assert "run: .ci/run\n" in WORKFLOW


def test_fragments_of_the_changelog_are_one_line_of_a_known_kind() -> None:
    fragments = [file for file in (ROOT / "changelog.d").iterdir() if file.name != "README.md"]
    for file in fragments:
        assert re.fullmatch(r"[\w-]+\.(added|changed|fixed)\.md", file.name), file.name
        assert re.fullmatch(r"[^-\n].{10,158}\n", file.read_text(encoding="utf-8")), file.name


def test_the_changelog_is_short() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert lines.count("<!-- towncrier release notes start -->") == 1
    assert sum(line.startswith("- ") for line in lines) <= 30
    assert max(map(len, lines)) <= 160


def test_releasing_names_the_files_that_hold_the_version() -> None:
    text = (ROOT / "RELEASING.md").read_text(encoding="utf-8")
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "`pyproject.toml`" in text
    assert "`tlcheck.__version__`" in text
    for target in re.findall(r"`make ([\w -]+)`", text):
        for name in target.split():
            assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), name
