"""Options that the commands share, as settings."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tlcheck.cli.options import add_lowering_arguments, settings_of
from tlcheck.config import Config
from tlcheck.lower.session import Settings


def settings(*argv: str, config: Config | None = None) -> Settings:
    parser = argparse.ArgumentParser()
    add_lowering_arguments(parser)
    return settings_of(parser.parse_args(argv), config or Config())


def test_defaults() -> None:
    assert settings() == Settings(toolchain="pinned", timeout=300.0)


def test_every_option_has_its_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    argv = "--arch sm_80,sm_90 --toolchain 0.1.7 --arg n=1 --arg m=x --timeout 2.5 --jobs 3 --no-fork --pythonpath src"
    assert settings(*argv.split()) == Settings(
        toolchain="0.1.7",
        arch=("sm_80", "sm_90"),
        args={"n": "1", "m": "x"},
        pythonpath=(str(tmp_path / "src"),),
        timeout=2.5,
        jobs=3,
        fork=False,
    )


def test_the_project_where_the_command_line_is_silent() -> None:
    config = Config(arch=("sm_100",), toolchain="0.1.9", requirements=("einops",), pythonpath=(Path("/src"),))
    expected = Settings("0.1.9", ("sm_100",), pythonpath=("/src",), requirements=("einops",))
    assert settings(config=config) == expected
    assert settings("--arch", "sm_80", "--toolchain", "0.1.8", config=config).arch == ("sm_80",)
    assert settings("--pythonpath", "/more", config=config).pythonpath == ("/src", "/more")


@pytest.mark.parametrize("argv", [["--jobs", "0"], ["--jobs", "x"], ["--timeout", "-1"], ["--timeout", "inf"]])
def test_numbers_that_make_no_sense(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        settings(*argv)
    assert stop.value.code == 2
    assert argv[0] in capsys.readouterr().err
