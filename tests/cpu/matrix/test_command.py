"""`tlcheck matrix` with toolchains that lower nothing: formats, resuming, what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cpu.checking import RIGHT, WRONG, StandInWorker, declared, published, put_in_place
from tlcheck.cli.main import main
from tlcheck.toolchain import environment
from tlcheck.worker.protocol import Failure

COMMAND = ["matrix", "k.py", "--toolchains", "0.1.7,0.1.7.post3,0.1.8", "--quick"]


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Mapping[str, StandInWorker]:
    """`a` is wrong in 0.1.7, not lowered by 0.1.7.post3 and right in 0.1.8; `b` is right."""
    files = {"k.py": (declared("a", ("sm_90",)), declared("b", ("sm_90",)))}
    made = {release: StandInWorker(release, files) for release in ("0.1.7", "0.1.7.post3", "0.1.8")}
    made["0.1.7"].snapshots = {"a": WRONG}
    made["0.1.7.post3"].failures = {"a": Failure("exception", "lower", "no such | tile")}
    monkeypatch.setattr(environment, "find", lambda recipe: recipe if recipe.name in made else None)
    put_in_place(monkeypatch, made)
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text("Case")
    return made


@pytest.mark.usefixtures("workers")
def test_the_table_and_what_is_wrong_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(COMMAND) == 1
    assert capsys.readouterr().out.splitlines() == [
        "kernel         0.1.7  0.1.7.post3  0.1.8",
        "k.py::a sm_90  wrong  broken       fine",
        "k.py::b sm_90  fine   fine         fine",
        "k.py::a sm_90: wrong from 0.1.7 on, right again in 0.1.8",
        "  wrong 0.1.7: TLA001 at B: 2048 of 4096 lanes of AtomicAddx2 are added to another element than intended;"
        " its lanes belong 32 elements apart",
        "  broken 0.1.7.post3: lower: no such | tile",
        "0.1.7: 1 fine, 1 wrong",
        "0.1.7.post3: 1 fine, 1 broken",
        "0.1.8: 2 fine",
        "2 kernels with 3 toolchains: 0.1.8 can be supported",
    ]


@pytest.mark.usefixtures("workers")
def test_letters_where_words_do_not_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "48")
    main(COMMAND)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2:] for line in lines if line.startswith("k.py::")][:2] == [["W", "B", "."], [".", ".", "."]]
    assert ". fine  W wrong  B broken  ? undecided  - absent" in lines


@pytest.mark.usefixtures("workers")
def test_markdown_has_no_cell_too_many() -> None:
    main([*COMMAND, "--format", "markdown", "-o", "m.md"])
    table = [line for line in Path("m.md").read_text().splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == {5}
    assert "| `k.py::a sm_90` | :x: wrong | :x: broken | :white_check_mark: |" in table


@pytest.mark.usefixtures("workers")
def test_json_is_as_its_schema_says() -> None:
    assert main([*COMMAND, "--format", "json", "-o", "m.json"]) == 1
    report = published(Path("m.json").read_text(), "matrix")
    assert report["supported"] == ["0.1.8"]
    assert [(cell["name"], cell["toolchain"], cell["state"]) for cell in report["cells"]][:3] == [
        ("a", "0.1.7", "wrong"),
        ("a", "0.1.7.post3", "broken"),
        ("a", "0.1.8", "fine"),
    ]


def test_what_an_earlier_report_knows_is_not_done_again(workers: Mapping[str, StandInWorker]) -> None:
    resumed = [*COMMAND, "--resume", "m.json", "--format", "json", "-o", "m.json"]
    first, rest = [*resumed], [*resumed]
    first[3] = "0.1.7,0.1.8"
    assert main(first) == 1
    assert main(rest) == 1
    assert [worker.started for worker in workers.values()] == [1, 1, 1]
    resumed_cells = json.loads(Path("m.json").read_text())["cells"]
    Path("m.json").unlink()
    main(rest)
    assert json.loads(Path("m.json").read_text())["cells"] == resumed_cells
    Path("k.py").write_text("Case # changed")
    main(rest)
    assert [worker.started for worker in workers.values()] == [3, 3, 3]


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["k.py"], "--toolchains"),
        (["k.py", "--toolchains", "0.1.7,"], "expected such as 0.1.12,0.1.15"),
        (["k.py", "--toolchains", "0.1.9"], "run `tlcheck toolchain install 0.1.9`"),
        (["k.py@0.1.7", "--toolchains", "0.1.8"], "toolchains are given by --toolchains"),
        (["s.json", "--toolchains", "0.1.8"], "a saved snapshot: give kernel files"),
        (["k.py", "--toolchains", "0.1.8", "--resume", "s.json"], "no report of `tlcheck matrix"),
    ],
)
def test_nonsense_is_refused(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copyfile(RIGHT, "s.json")
    try:
        code: object = main(["matrix", *argv])
    except SystemExit as ended:  # argparse
        code = ended.code
    assert code == 2
    assert message in capsys.readouterr().err
