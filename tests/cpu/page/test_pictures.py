"""Pictures of layouts: every cell is where the layout says, and the lanes of a wrong atomic are marked."""

from __future__ import annotations

import colorsys
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from tests.cpu.checking import WRONG as WRONG_KERNEL
from tests.cpu.checking import StandInWorker, declared, saved_result
from tests.fixtures.index import FOLDER
from tlcheck.cli.main import main
from tlcheck.lower import session
from tlcheck.page.colours import by_thread
from tlcheck.page.gallery import Gallery, gallery
from tlcheck.page.layout_svg import WRONG
from tlcheck.page.picture import CELLS, THREAD, Picture, window
from tlcheck.program.layouts import fragment_table
from tlcheck.targets.lookup import target
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.results import read_snapshot
from tlcheck.worker.protocol import Failure

ATTENTION = FOLDER / "demo" / "attention_full_0.1.7.snapshot.json"


@pytest.fixture(scope="module")
def attention() -> Gallery:
    snapshot = read_snapshot(ATTENTION)
    return gallery(snapshot, saved_result(ATTENTION, snapshot, 0).claims)


def drawn(of: Gallery, name: str) -> Picture:
    found = of.picture(name)
    assert isinstance(found, Picture)
    return found


def test_threads_and_registers_are_those_that_the_proofs_use(attention: Gallery) -> None:
    picture = drawn(attention, "dq")
    table = fragment_table(attention.layouts["dq"])
    assert picture.kind == THREAD
    assert table is not None
    assert picture.registers is not None
    held = table.at(picture.values, picture.registers)
    assert (held == np.arange(picture.rows * picture.columns).reshape(held.shape)).all()


def test_offsets_follow_the_annotated_layout(attention: Gallery) -> None:
    picture = drawn(attention, "dQ")
    for i, j in ((0, 0), (0, 1), (9, 77), (31, 127)):
        assert picture.values[i, j] == (i // 8) * 1024 + (j // 8) * 64 + (j % 2) * 32 + i % 8 * 4 + j % 8 // 2


def test_the_lanes_of_the_wrong_atomic_are_marked(attention: Gallery) -> None:
    picture = drawn(attention, "dQ")
    assert picture.vector == 2
    marks = {mark.kind: picture.values[mark.row, mark.column] for mark in picture.marks}
    assert marks == {"lane": 0, "written": 1, "intended": 32}
    assert any("lane 1" in note and "offset 32" in note for note in picture.notes)
    assert attention.names[0] == "dQ"


def test_an_atomic_that_is_right_has_its_lanes_and_no_marks(attention: Gallery) -> None:
    picture = drawn(attention, "dV")
    assert (picture.vector, picture.marks) == (4, ())


def test_what_does_not_fit_is_cut_with_a_note() -> None:
    seen = window((3, 1000, 4096), (1, 700, 200))
    assert seen.inside.size <= CELLS
    indices = [set(np.unique(index[seen.inside])) for index in seen.indices]
    assert 1 in indices[0]
    assert 700 in indices[1]
    assert 200 in indices[2]
    assert any("of 1000" in note for note in seen.notes)
    assert any("of 4096" in note for note in seen.notes)


def test_a_vector_is_broken_into_rows_and_its_end_is_empty() -> None:
    seen = window((100,))
    assert seen.inside.shape == (2, 64)
    assert int(seen.inside.sum()) == 100
    assert int(seen.indices[0][1, 35]) == 99


def test_the_svg_has_every_label_and_the_wrong_lane_in_red(tmp_path: Path) -> None:
    file = tmp_path / "dQ.svg"
    assert main(["layout", str(ATTENTION), "--buffer", "dQ", "-o", str(file)]) == 0
    text = file.read_text()
    root = ET.fromstring(text)
    labels = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"0", "32", "1", "33", "4095"} <= set(labels)
    red = [e.get("d", "") for e in root.iter("{http://www.w3.org/2000/svg}path") if e.get("fill") == WRONG]
    assert len(red) == 1
    assert red[0].count("M") == 1


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
def test_a_warp_has_one_hue(arch: str) -> None:
    threads, warp = np.arange(128).reshape(1, -1), target(arch).warp
    _, palette = by_thread(threads, warp)
    numbers = [tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)) for colour in palette]
    hues = [round(colorsys.rgb_to_hls(*number)[0], 1) for number in numbers]
    assert [len(set(hues[first : first + warp])) for first in range(0, 128, warp)] == [1] * (128 // warp)
    assert len(set(hues)) == 128 // warp


def test_without_a_buffer_the_command_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", str(ATTENTION)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^    dQ: \(i, j, k, l\) -> ", out, re.MULTILINE)
    assert "    dV: row-major" in out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--buffer", "nothing"], "has no buffer 'nothing'; it has"),
        (["--buffer", "dQ", "-o", "x.gif"], "x.gif: a picture is a .svg"),
        (["-o", "x.svg"], "which buffer?"),
        (["--buffer", "dQ", "-o", "no/such/x.svg"], "no/such/x.svg: no folder "),
    ],
)
def test_bad_usage_is_one_line(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["layout", str(ATTENTION), *argv]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> StandInWorker:
    """It has one case, and lowers it for two targets to a kernel that is wrong."""
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text("from tlcheck.case import Case\n")
    made = StandInWorker("0.1.7", {"k.py": (declared("a"),)}, snapshots={"a": WRONG_KERNEL})
    monkeypatch.setattr(session, "resolve", lambda name, requirements: Toolchain(name, "release", Path(name)))
    monkeypatch.setattr(session, "Worker", lambda *_, **__: made)
    return made


def test_several_kernels_are_files_in_a_folder(worker: StandInWorker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "k.py", "--buffer", "B", "-o", "one.svg"]) == 2
    assert "2 kernels" in capsys.readouterr().err
    assert main(["layout", "k.py", "--buffer", "B", "-o", "pictures"]) == 0
    made = sorted(Path("pictures").iterdir())
    assert [file.name for file in made] == ["k-a-sm_80-0.1.7.B.svg", "k-a-sm_90-0.1.7.B.svg"]
    assert all(WRONG in file.read_text() for file in made)


def test_what_is_not_lowered_is_said_and_not_drawn(worker: StandInWorker, capsys: pytest.CaptureFixture[str]) -> None:
    worker.failures = {"a": Failure("exception", "lower", "ValueError: no")}
    assert main(["layout", "k.py", "--arch", "sm_90"]) == 3
    assert capsys.readouterr().err == "k.py::a sm_90 0.1.7: not lowered: ValueError: no\n"
