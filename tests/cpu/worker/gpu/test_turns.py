"""Two processes that take turns by a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tlcheck.worker.gpu import timing
from tlcheck.worker.gpu.task import Rounds

ROOT = Path(__file__).parents[4]
TURN = """
import gc, sys, time
gc.disable()  # torch is imported
sys.path[:0] = [{root!r}, *{path!r}]
from pathlib import Path
from tlcheck.worker.gpu import timing
from tlcheck.worker.gpu.task import Rounds
place = int(sys.argv[1])
for number, _ in enumerate(timing._turns(Rounds({turns!r}, place, 5), 60)):
    time.sleep(0.05 * place)
    with Path({log!r}).open("a") as log:
        log.write(f"{{place}}{{number}} ")
with Path({log!r}).open("a") as log:
    log.write("end ")
"""


@pytest.mark.slow
def test_rounds_alternate_and_both_end_together(tmp_path: Path) -> None:
    turns, log = tmp_path / "turns", tmp_path / "log"
    turns.write_text("0")
    path = [entry for entry in sys.path if "torch" in entry]
    script = TURN.format(root=str(ROOT), path=path, turns=str(turns), log=str(log))
    started = [subprocess.Popen([sys.executable, "-c", script, str(place)]) for place in (1, 0)]
    assert [process.wait(60) for process in started] == [0, 0]
    assert log.read_text().split() == ["00", "10", "01", "11", "02", "12", "03", "13", "04", "14", "end", "end"]


def test_the_first_round_waits_until_the_other_has_ended(tmp_path: Path) -> None:
    turns = tmp_path / "turns"
    turns.write_text("0")
    turns.with_suffix(".ended").touch()
    with pytest.raises(TimeoutError, match="the other toolchain ended early"):
        list(timing._turns(Rounds(str(turns), 1, 5), 60))


def test_a_turn_that_never_comes_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = tmp_path / "turns"
    turns.write_text("0")
    monkeypatch.setattr(timing, "_TURN_SECONDS", 0.05)
    monkeypatch.setattr("signal.alarm", lambda seconds: 0)
    with pytest.raises(TimeoutError, match="did not take its turn"):
        list(timing._turns(Rounds(str(turns), 0, 5), 60))
