"""`tlcheck run --device cpu`: whom a wrong result is blamed on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cpu import wrong_kernels
from tests.cpu.checking import make_run, published
from tlcheck.cli import progress
from tlcheck.cli import run as command
from tlcheck.cli.main import main
from tlcheck.run.blame import Blame

CASES = Path(__file__).parent / "blamed_cases.py"
ATOMICS = Path(__file__).parents[3] / "cases" / "atomics.py"


def run(tmp_path: Path, case: str, file: Path = CASES, arch: str = "sm_80") -> tuple[int, dict[str, Any]]:
    output = tmp_path / "report.json"
    command = ["run", f"{file}::{case}", "--device", "cpu", "--arch", arch, "--toolchain", "0.1.15"]
    code = main([*command, "-o", str(output)])
    (found,) = published(output.read_text(), "run-cpu")["runs"]
    return code, found


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
class TestBlame:
    def test_a_right_kernel_agrees_on_both_sides(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(progress, "PAUSE", 0.01)
        code, found = run(tmp_path, "right")
        assert f" s: executing {CASES}::right sm_80\n" in capsys.readouterr().err
        assert (code, found["written"]["answer"], found["lowered"]["answer"]) == (0, "agrees", "agrees")
        assert found["blocks"] == {"executed": 2, "of": 2}

    def test_zeros_that_should_be_zeros_are_nobodys_fault(self, tmp_path: Path) -> None:
        code, found = run(tmp_path, "zeros")
        assert (code, found["written"]["answer"], found["lowered"]["answer"]) == (0, "agrees", "agrees")

    def test_an_output_that_is_added_to_begins_as_the_case_says(self, tmp_path: Path) -> None:
        code, found = run(tmp_path, "tile_x4", ATOMICS)
        assert (code, found["written"]["answer"], found["lowered"]["answer"]) == (0, "agrees", "agrees")

    def test_a_pass_configuration_goes_over_the_kernels_own(self, tmp_path: Path) -> None:
        answers = []
        file = wrong_kernels.written("replaced", tmp_path)
        for number, given in enumerate(([], ["--pass-config", "TIR_USE_ASYNC_COPY=False"])):
            output = tmp_path / f"{number}.json"
            command = ["run", f"{file}::replaced", "--device", "cpu", "--arch", "sm_80", "--toolchain", "0.1.15"]
            main([*command, *given, "-o", str(output)])
            answers += [found["lowered"]["answer"] for found in published(output.read_text(), "run-cpu")["runs"]]
        assert answers == ["differs", "agrees"]

    def test_a_kernel_that_is_written_wrongly_is_its_authors(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, found = run(tmp_path, "author")
        assert (code, found["written"]["answer"], found["lowered"]["answer"]) == (1, "differs", "agrees")
        element = found["written"]["findings"][0]["elements"][0]
        assert element["got"] == pytest.approx(1.5 * element["expected"], rel=1e-6)
        said = capsys.readouterr().out
        assert "-> the kernel's author: C[0] is" in said
        release = "or TileLang 0.1.15 builds another kernel from this file; other releases: "
        assert f"{release}tlcheck bisect {CASES}::author --arch sm_80\n" in said

    def test_an_overflow_is_its_authors(self, tmp_path: Path) -> None:
        """float64 would hold the sums, float16 does not."""
        code, found = run(tmp_path, "overflow")
        assert (code, found["written"]["answer"], found["lowered"]["answer"]) == (1, "differs", "agrees")
        assert found["written"]["findings"][0]["elements"][0]["got"] in (float("inf"), "inf", "Infinity")
        code, found = run(tmp_path, "in_range")
        assert (code, found["written"]["answer"], found["lowered"]["answer"]) == (0, "agrees", "agrees")

    def test_a_kernel_that_is_lowered_wrongly_is_tilelangs(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, found = run(tmp_path, "loop", wrong_kernels.written("loop", tmp_path))
        assert (code, found["written"]["answer"], found["lowered"]["answer"]) == (1, "agrees", "differs")
        (refuted,) = found["lowered"]["refuted"]
        assert refuted["buffer"] == "C"
        witness, said = refuted["finding"]["witness"], capsys.readouterr().out
        for level, value in (("written", witness["expected"]), ("lowered", witness["got"])):
            first, *_ = witness[level]
            assert first.startswith(f"C[{witness['index'][0]}] = {value}   ")
            assert re.search(
                rf"^        as {level}(, at device-tir)?\n          {re.escape(first)}$", said, re.MULTILINE
            )
        assert any(len(witness[level]) > 1 for level in ("written", "lowered"))
        assert "-> TileLang 0.1.15" in said

    def test_what_the_device_library_adds_is_tilelangs(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Pairs of bfloat16 as if they were float16: the TIR is right, so a proof knows."""
        code, found = run(tmp_path, "pairs")
        assert (code, found["written"]["answer"], found["lowered"]["answer"]) == (1, "agrees", "differs")
        assert [(c["basis"], c["finding"]["rule"]) for c in found["lowered"]["refuted"]] == [("proof", "TLA014")]
        assert "-> TileLang 0.1.15" in capsys.readouterr().out

    def test_the_trace_has_the_copies_of_the_run_that_was_wrong(self, tmp_path: Path) -> None:
        """With copies as late as they may be, the next row is copied when it is whole."""
        _, found = run(tmp_path, "carried", arch="sm_90")
        findings = {claim["finding"]["rule"]: claim["finding"] for claim in found["lowered"]["refuted"]}
        assert findings.keys() == {"TLR001", "TLO001"}
        witness = findings["TLO001"]["witness"]
        assert ", copies as early as they may be; " in witness["inputs"]
        for level, value in (("written", witness["expected"]), ("lowered", witness["got"])):
            assert witness[level][0].startswith(f"A[{', '.join(map(str, witness['index']))}] = {value}   ")

    @pytest.mark.parametrize("named", [True, False])
    def test_the_trace_of_a_wrong_element_has_the_same_inputs(
        self, named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, found = run(tmp_path, "loop", wrong_kernels.written("loop", tmp_path))
        witness = found["lowered"]["refuted"][0]["finding"]["witness"]
        element = ["--element", f"C[{', '.join(map(str, witness['index']))}]"] if named else []
        command = [
            "trace",
            f"{tmp_path / 'kernels.py'}::loop",
            "--arch",
            "sm_80",
            "--toolchain",
            "0.1.15",
            "--format",
            "json",
            *element,
        ]
        capsys.readouterr()
        assert main(command) == 1
        (traced,) = published(capsys.readouterr().out, "trace")["runs"]
        assert (traced["inputs"], traced["seed"], traced["index"]) == ("the case's", 0, witness["index"])
        values = traced["written"]["value"], traced["lowered"]["value"]
        assert values == (witness["expected"], witness["got"])

    def test_without_a_reference_only_tilelang_is_judged(self, tmp_path: Path) -> None:
        code, found = run(tmp_path, "alone")
        assert (code, found["written"]["answer"], found["lowered"]["answer"]) == (0, "no reference", "agrees")

    def test_inputs_that_crash_are_the_failure_of_their_case(self, tmp_path: Path) -> None:
        output = tmp_path / "report.json"
        cases = [f"{CASES}::crashed", f"{CASES}::right"]
        assert main(["run", *cases, "--device", "cpu", "--toolchain", "0.1.15", "-o", str(output)]) == 3
        crashed, right = (found["written"] for found in published(output.read_text(), "run-cpu")["runs"])
        assert crashed["answer"] == "not run"
        assert "SIGKILL" in crashed["reason"]
        assert right["answer"] == "agrees"

    @pytest.mark.parametrize(
        ("case", "function", "message"),
        [
            ("count", "too_few", "inputs gives 1 values, the kernel takes 2: A, C"),
            ("shape", "too_short", "inputs gives A of shape [255], the kernel takes [256]"),
            ("raised", "raising", "inputs raised ValueError: no numbers today"),
        ],
    )
    def test_inputs_that_do_not_fit_are_bad_usage(
        self, case: str, function: str, message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["run", f"{CASES}::{case}", "--device", "cpu", "--toolchain", "0.1.15"]) == 2
        line = 1 + CASES.read_text().splitlines().index(f"def {function}(args, generator, device):")
        said = capsys.readouterr().err
        assert message in said
        assert f"{CASES.name}:{line}: " in said


@pytest.mark.parametrize("option", [["--bench"], ["--sanitize", "memcheck"]])
def test_what_needs_a_gpu_is_refused(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{CASES}::right", "--device", "cpu", *option]) == 2
    assert f"{option[0]} needs a GPU" in capsys.readouterr().err


def test_what_was_executed_before_ctrl_c_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def until_ctrl_c(*_: object) -> Iterator[Blame]:
        yield Blame(make_run(), "agrees", "agrees")
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "blamed", until_ctrl_c)
    file = tmp_path / "k.py"
    file.write_text("")
    assert main(["run", str(file), "--device", "cpu"]) == 130
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "k.py::case sm_90 0.1.7   as written: agrees with the reference   as lowered: agrees with what is written"
    ]
    assert said.err == "tlcheck: interrupted\n"
