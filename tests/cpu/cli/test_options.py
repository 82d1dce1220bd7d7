"""Options that the commands share, as settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.cli.main import main
from tlcheck.cli.options import LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, read
from tlcheck.cli.projects import one_project, projects
from tlcheck.config import Config
from tlcheck.errors import UsageError
from tlcheck.lower.session import Settings


def settings(*argv: str, config: Config | None = None) -> Settings:
    parser = Parser()
    add_lowering_arguments(parser)
    return read(LoweringOptions, parser.parse_args(argv)).settings(config or Config())


def test_defaults() -> None:
    assert settings() == Settings(toolchain="pinned", timeout=300.0)


def test_every_option_has_its_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    argv = "--arch sm_80,sm_90 --toolchain 0.1.7 --arg n=1 --arg m=x --timeout 2.5 --jobs 3 --no-fork --pythonpath src"
    argv += " --pass-config TL_DISABLE_WGMMA=True"
    assert settings(*argv.split()) == Settings(
        toolchain="0.1.7",
        arch=("sm_80", "sm_90"),
        args={"n": "1", "m": "x"},
        pass_configs={"TL_DISABLE_WGMMA": "True"},
        pythonpath=(str(tmp_path / "src"),),
        timeout=2.5,
        jobs=3,
        fork=False,
        said=("--arg", "n=1", "--arg", "m=x", "--pass-config", "TL_DISABLE_WGMMA=True", "--pythonpath", "src"),
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


def test_each_file_has_the_settings_of_its_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "kernels").mkdir(parents=True)
        (tmp_path / name / "kernels" / "k.py").touch()
        (tmp_path / name / "pyproject.toml").write_text(f'[tool.tlcheck]\n\ntoolchain = "0.1.{len(name)}"\n')
    (tmp_path / "stray.py").touch()
    monkeypatch.chdir(tmp_path / "two")
    found = projects(["../one/kernels", "kernels/k.py", "../stray.py"])
    assert [each.config.file for each in found] == [tmp_path / name / "pyproject.toml" for name in ("one", "two")]
    assert [[s.path.name for s in each.selections] for each in found] == [["k.py"], ["k.py", "stray.py"]]
    assert found[0].config.place("toolchain") == "toolchain in ../one/pyproject.toml:3"
    assert found[0].config.place("arch") == ""
    with pytest.raises(UsageError, match=r"one/kernels/k.py and kernels/k.py are of two projects"):
        one_project(["../one/kernels", "kernels/k.py"])


def test_an_error_about_a_setting_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    (tmp_path / "k.py").write_text("import tilelang\n")
    monkeypatch.chdir(tmp_path)
    for line, words in {
        'toolchain = "0.1.7"': "toolchain 0.1.7 is not installed",
        'arch = ["sm90"]': "did you mean sm_90?",
        'paths = ["kernles"]': "no such file or folder",
    }.items():
        (tmp_path / "pyproject.toml").write_text(f"[tool.tlcheck]\n{line}\n")
        assert main(["check", *([] if "paths" in line else ["k.py"])]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert f"({line.partition(' ')[0]} in pyproject.toml:2)" in error


def test_a_value_that_is_wrong_names_no_function_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--blocks", "many"], ["--seeds", "x"], ["--jobs", "x"]):
        with pytest.raises(SystemExit):
            main(["check", "k.py", *argv])
        said = capsys.readouterr().err
        assert argv[1] in said
        assert "_blocks" not in said
        assert "count value" not in said
