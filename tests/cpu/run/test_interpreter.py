"""`tlcheck run --device cpu --as-written`: the interpreter."""

from __future__ import annotations

import sys
from bdb import BdbQuit
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tlcheck.cli.main import main

CASES = Path(__file__).parent / "interpreted_cases.py"
RELEASE = ("--arch", "sm_90", "--toolchain", "0.1.15")


def interpret(case: str) -> int:
    return main(["run", f"{CASES}::{case}", "--device", "cpu", "--as-written", *RELEASE])


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, dict[str, Any]]]:
    """File, line and variables of each place at which a debugger would stop."""
    found: list[tuple[str, int, dict[str, Any]]] = []

    def stop() -> None:
        frame = sys._getframe(1)
        found.append((frame.f_code.co_filename, frame.f_lineno, dict(frame.f_globals)))

    monkeypatch.setattr(sys, "breakpointhook", stop)
    return found


@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
class TestInterpreter:
    @pytest.mark.slow
    def test_what_a_kernel_prints_is_said_once_for_each_block_and_a_debugger_stops_with_tiles_as_arrays(
        self, stops: list[tuple[str, int, dict[str, Any]]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert interpret("right") == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[:2] == [
            "block (0, 0, 0): tile: s = [[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15.]",
            "  [16. 17. 18. 19. 20. 21. 22. 23. 24. 25. 26. 27. 28. 29. 30. 31.]]",
        ]
        numbers = [line for line in lines if "block's number" in line]
        assert numbers == 2 * [f"block ({x}, 0, 0): block's number = {x}" for x in (0, 1)]
        assert lines[-1].endswith("as written: agrees with the reference")
        line = 1 + CASES.read_text().splitlines().index("                    breakpoint()")
        assert [(file, at) for file, at, _ in stops] == 2 * [(str(CASES), line)]
        first, second = (names for *_, names in stops)
        assert (first["bx"], first["k"], second["k"], first["block"]) == (1, 0, 1, (1, 0, 0))
        assert first["s"].tolist() == np.arange(32.0).reshape(2, 16).tolist()
        assert np.array_equal(first["r"], first["A"][32:])
        assert np.allclose(second["r"], first["A"][32:] + 1, rtol=0, atol=1e-6)

    def test_threads_that_print_different_values_are_said_together(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert interpret("plain") == 0
        said = capsys.readouterr().out
        assert said.count("thread = [ 0  1  2  3") == 2
        assert "as written: no reference\n" in said

    def test_who_leaves_the_debugger_ends_the_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def leave() -> None:
            raise BdbQuit

        monkeypatch.setattr(sys, "breakpointhook", leave)
        assert interpret("right") == 130

    def test_what_is_written_wrongly_is_its_authors(self, stops: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
        assert interpret("wrong") == 1
        said = capsys.readouterr().out
        assert "as written: DIFFERS from the reference" in said
        assert "-> the kernel's author: C[0] is" in said
        assert "as lowered" not in said

    @pytest.mark.slow
    def test_a_breakpoint_changes_no_verdict(self, stops: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", f"{CASES}::right", *RELEASE]) == 0
        assert "same results as the source in 2 of 2 blocks" in capsys.readouterr().out
        assert stops == []


def test_the_interpreter_needs_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{CASES}::right", "--as-written"]) == 2
    assert "add --device cpu" in capsys.readouterr().err
