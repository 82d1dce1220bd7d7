"""The chain from selected files to snapshots, with a worker that lowers nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import StandInWorker, declared, put_in_place
from tlcheck.errors import UsageError
from tlcheck.lower import session
from tlcheck.lower.client import Worker
from tlcheck.lower.executor import LocalExecutor
from tlcheck.lower.keyword import parse_keyword
from tlcheck.lower.runs import Lowered, Run
from tlcheck.lower.scripts import Scripts
from tlcheck.lower.selection import Selection, Variation
from tlcheck.lower.session import Session, Settings
from tlcheck.worker.jobs import CaptureJob, DiscoverJob, Job, LowerJob, task_of
from tlcheck.worker.protocol import PASS_CONFIG, Answer, Failure


class Watcher:
    """Counts."""

    def __init__(self) -> None:
        self.expected = 0
        self.ended = 0

    def stage(self, text: str) -> None:
        pass

    def total(self, runs: int) -> None:
        self.expected += runs

    def done(self, run: Run, *, known: bool = False) -> None:
        self.ended += 1

    def trouble(self, text: str) -> None:
        pass


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> dict[str, StandInWorker]:
    """Toolchain -> its worker; there is no other toolchain."""
    found: dict[str, StandInWorker] = {"pinned": StandInWorker()}

    put_in_place(monkeypatch, found)
    return found


def lower(folder: Path, selections: list[Selection], **settings: Any) -> tuple[list[Lowered], Session, Watcher]:
    """Return what a session yields, in the order of reports."""
    watcher = Watcher()
    made = Session(Settings(**settings), folder, watcher)
    return sorted(made.lower(selections), key=lambda done: done.run.position), made, watcher


def names(lowered: list[Lowered]) -> list[tuple[str, str, str]]:
    return [(done.run.case, done.run.target, done.run.toolchain) for done in lowered]


def test_every_case_for_every_target_in_the_order_of_files_cases_and_targets(
    workers: dict[str, StandInWorker], tmp_path: Path
) -> None:
    workers["pinned"].files = {"b.py": (declared("z"), declared("y", ("sm_90",))), "a.py": (declared("x"),)}
    done, _, watcher = lower(tmp_path, [Selection(Path("b.py")), Selection(Path("a.py"))])
    assert names(done) == [
        ("b.py::z", "sm_80", "pinned"),
        ("b.py::z", "sm_90", "pinned"),
        ("b.py::y", "sm_90", "pinned"),
        ("a.py::x", "sm_80", "pinned"),
        ("a.py::x", "sm_90", "pinned"),
    ]
    assert len({item.snapshot for item in done}) == 5
    assert all(item.snapshot and item.snapshot.parent == tmp_path for item in done)
    assert (watcher.expected, watcher.ended) == (5, 5)


def test_the_kernels_of_a_file_are_asked_for_at_once(
    workers: dict[str, StandInWorker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the first may begin before the others are known, in a process of its own."""
    asked: list[list[str]] = []

    class Asked(LocalExecutor):
        def add(self, worker: Worker, *jobs: Job) -> None:
            asked.append([task_of(job) for job in jobs])
            super().add(worker, *jobs)

    monkeypatch.setattr(session, "LocalExecutor", Asked)
    workers["pinned"].files = {"a.py": tuple(declared(f"k{n}") for n in range(4))}
    lower(tmp_path, [Selection(Path("a.py"))], arch=("sm_90",))
    assert asked == [["discover"], ["lower"] * 4]


class BothAtOnce(StandInWorker):
    """Answers when it has two jobs, in reverse order."""

    def receive(self) -> list[tuple[Job, Answer]]:
        return super().receive() if len(self.running) == 2 else []


def test_how_far_scripts_came_is_in_the_order_of_files(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("b.py", "a.py")]
    for file in files:
        file.write_text("import tilelang\n")
    ended = asdict(Failure("exception", "run", "ValueError: no"))
    workers["pinned"] = BothAtOnce()
    workers["pinned"].scripts = {file.name: {"kernels": [], "ended": ended, "names": []} for file in files}
    _, made, _ = lower(tmp_path, [Selection(file) for file in files], scripts=Scripts(keep_going=True), jobs=2)
    words = "no kernel captured until it ended: ValueError: no"
    assert made.remarks == [f"{file} (sm_90): {words}" for file in files]


def test_one_worker_for_each_toolchain(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    for release in ("0.1.7", "pinned"):
        workers[release] = StandInWorker(release, {"k.py": (declared("a"), declared("b"))})
    selections = [
        Selection(Path("k.py"), "a", "0.1.7"),
        Selection(Path("k.py"), "a"),
        Selection(Path("k.py"), "b", "0.1.7"),
    ]
    done, _, _ = lower(tmp_path, selections, arch=("sm_90",))
    assert names(done) == [
        ("k.py::a", "sm_90", "0.1.7"),
        ("k.py::a", "sm_90", "pinned"),
        ("k.py::b", "sm_90", "0.1.7"),
    ]
    assert [worker.started for worker in workers.values()] == [1, 1]
    assert done[0].run.release == "0.1.7"


def test_a_missing_toolchain_is_told_before_anything_is_lowered(
    workers: dict[str, StandInWorker], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no toolchain 9"):
        lower(tmp_path, [Selection(Path("k.py")), Selection(Path("k.py"), "", "9")])
    assert workers["pinned"].started == 0


def test_archs_that_are_asked_for(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    """A case that says nothing about targets takes any; one made for certain archs only these, unless it is named."""
    workers["pinned"].files = {"k.py": (declared("any"), declared("hopper", ("sm_90",)))}
    done, _, _ = lower(tmp_path, [Selection(Path("k.py"))], arch=("sm_90", "sm_100"))
    assert names(done) == [
        ("k.py::any", "sm_90", "pinned"),
        ("k.py::any", "sm_100", "pinned"),
        ("k.py::hopper", "sm_90", "pinned"),
    ]
    named, made, _ = lower(tmp_path, [Selection(Path("k.py"), "hopper")], arch=("sm_100",))
    assert (names(named), made.remarks) == ([("k.py::hopper", "sm_100", "pinned")], [])


@pytest.mark.parametrize("found", [True, False])
def test_a_file_that_is_named_says_which_targets_its_cases_are_for(
    workers: dict[str, StandInWorker], tmp_path: Path, found: bool
) -> None:
    workers["pinned"].files = {"k.py": (declared("a", ("sm_100",)), declared("b", ("sm_100", "sm_120")))}
    none, made, _ = lower(tmp_path, [Selection(Path("k.py"), found=found)], arch=("sm_103", "sm_110"))
    assert (none, made.passed_over) == ([], [Path("k.py")])
    said = "k.py has cases for sm_100, sm_120 only; for sm_103, sm_110 name a case: k.py::a"
    assert made.remarks == ([] if found else [said])


def test_only_the_cases_that_are_wanted_of_a_file(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    workers["pinned"].files = {"k.py": (declared("a"), declared("b"), declared("c"))}
    wanted = frozenset((("a", "sm_90"), ("c", "sm_80")))
    done, _, watcher = lower(tmp_path, [Selection(Path("k.py"), found=True, only=wanted)])
    assert names(done) == [("k.py::a", "sm_90", "pinned"), ("k.py::c", "sm_80", "pinned")]
    assert watcher.expected == 2


def test_only_the_kernels_whose_names_a_keyword_holds_of(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    workers["pinned"].files = {"k.py": (declared("sparse"), declared("sparse_fp8"), declared("gemm"))}
    wanted = parse_keyword("sparse and not fp8")
    lowered, session, _ = lower(tmp_path, [Selection(Path("k.py"))], keyword=wanted, arch=("sm_90",))
    assert names(lowered) == [("k.py::sparse", "sm_90", "pinned")]
    lowered, session, _ = lower(tmp_path, [Selection(Path("k.py"))], keyword=parse_keyword("zzz"))
    assert (lowered, session.passed_over) == ([], [Path("k.py")])


def test_kernels_that_a_file_does_not_compile_are_lowered_with_their_defaults(
    workers: dict[str, StandInWorker], tmp_path: Path
) -> None:
    file = tmp_path / "k.py"
    file.write_text("import tilelang")
    needs = Failure("usage", "import", "sized needs --arg M=...")
    worker = workers["pinned"]
    worker.files, worker.failures = {"k.py": (declared("a"), declared("b"))}, {"k.py::sized": needs}
    worker.scripts = {"k.py": {"kernels": [], "names": ["b", "sized", "a"]}}
    lowered, made, watcher = lower(tmp_path, [Selection(file)], scripts=Scripts())
    both = [(f"{file}::{name}", target, "pinned") for name in "ba" for target in ("sm_80", "sm_90")]
    assert (names(lowered), watcher.expected) == (both, 4)
    assert made.remarks == [f"{file}: left out: sized needs --arg M=..."]
    lowered, _, _ = lower(tmp_path, [Selection(file)], scripts=Scripts(), arch=("sm_90",), keyword=parse_keyword("a"))
    assert names(lowered) == [(f"{file}::a", "sm_90", "pinned")]
    worker.scripts = {"k.py": {"kernels": [], "names": ["sized"]}}
    (none,), made, _ = lower(tmp_path, [Selection(file)], scripts=Scripts())
    assert none.failure is not None
    assert none.failure.message.endswith(f"; name a kernel: {file}::sized (sized needs --arg M=...)")
    nothing, made, _ = lower(tmp_path, [Selection(file, found=True)], scripts=Scripts())
    assert (nothing, made.passed_over) == ([], [file])
    advice = f"name it with its arguments ({file}::sized --arg NAME=VALUE), or declare a case"
    assert made.remarks == [f"{file} (sm_90): defines sized, which nothing in it compiles: {advice}"]
    worker.scripts = {"k.py": {"kernels": [], "names": ["a", "sized"]}}
    lowered, _, _ = lower(tmp_path, [Selection(file, found=True)], scripts=Scripts(), arch=("sm_90",))
    assert names(lowered) == [(f"{file}::a", "sm_90", "pinned")], "in a folder, too"


def test_a_keyword_chooses_among_tests_as_pytest_does(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    for name in ("test_k.py", "script.py"):
        (tmp_path / name).write_text("import tilelang")
    kernels: list[dict[str, Any]] = [{"name": name, "args": {}, "origin": None} for name in ("gemm", "sparse")]
    workers["pinned"].scripts = {name: {"kernels": kernels, "names": []} for name in ("test_k.py", "script.py")}
    files = [Selection(tmp_path / name) for name in ("test_k.py", "script.py")]
    lowered, _, _ = lower(tmp_path, files, scripts=Scripts(("-x",)), keyword=parse_keyword("gemm"), arch=("sm_90",))
    asked = {Path(job.file).name: job.script_args for job in workers["pinned"].jobs if isinstance(job, CaptureJob)}
    assert asked == {"test_k.py": ("-k", "gemm", "-x"), "script.py": ("-x",)}
    assert [each.run.name for each in lowered] == ["gemm", "sparse", "gemm"]


def test_calls_of_a_script_are_kept_for_who_executes_its_kernels(
    workers: dict[str, StandInWorker], tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text("import tilelang")
    workers["pinned"].scripts = {"script.py": {"kernels": [], "names": []}}
    for seeds in ((), (0, 1)):
        lower(tmp_path, [Selection(tmp_path / "script.py")], scripts=Scripts(), arch=("sm_90",), seeds=seeds)
    assert [job.calls for job in workers["pinned"].jobs if isinstance(job, CaptureJob)] == [False, True]


def test_the_settings_reach_the_worker(
    workers: dict[str, StandInWorker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[dict[str, Any]] = []

    def start(python: Path, env: Mapping[str, str], **options: Any) -> StandInWorker:
        started.append({name: options[name] for name in ("fork", "warm")})
        return workers["pinned"]

    class Watched(LocalExecutor):
        def __init__(self, parallel: int, begins: Callable[[Job], None]) -> None:
            super().__init__(parallel, begins)
            started.append({"parallel": parallel})

    monkeypatch.setattr(session, "Worker", start)
    monkeypatch.setattr(session, "LocalExecutor", Watched)
    workers["pinned"].files = {"k.py": (declared("a"),)}
    lower(tmp_path, [Selection(Path("k.py"))], jobs=3, fork=False)
    assert started == [{"parallel": 3}, {"fork": False, "warm": None}]


def test_the_settings_reach_the_jobs(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    workers["pinned"].files = {"k.py": (declared("a", ("sm_80",)),)}
    lower(tmp_path, [Selection(Path("k.py"))], args={"n": "3"}, pythonpath=("src",), timeout=7.0, every_pass=True)
    discover, lowering = workers["pinned"].jobs
    common: dict[str, Any] = {"args": {"n": "3"}, "pythonpath": ("src",), "timeout": 7.0}
    assert replace(discover, number=0, arch="") == DiscoverJob("k.py", **common, arch="")
    assert isinstance(lowering, LowerJob)
    wanted = LowerJob("k.py", "a", **common, arch="sm_80", every_pass=True, output=lowering.output)
    assert replace(lowering, number=0, known=None) == wanted


def test_a_variation_stands_over_the_settings(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    workers["pinned"].files = {"k.py": (declared("a", ("sm_80",)),)}
    varied = Variation(args=(("n", "4"),), pass_configs=(("TL_DISABLE_WGMMA", "True"),))
    lower(tmp_path, [Selection(Path("k.py"), variation=varied)], args={"n": "3", "m": "1"}, pass_configs={"x": "1"})
    discover, lowering = workers["pinned"].jobs
    assert isinstance(discover, DiscoverJob)
    assert isinstance(lowering, LowerJob)
    assert discover.args == lowering.args == {"n": "4", "m": "1"}
    assert lowering.pass_configs == {"x": "1", "TL_DISABLE_WGMMA": "True"}


@pytest.mark.parametrize("varied", [False, True])
def test_a_pass_configuration_that_is_not_there(
    workers: dict[str, StandInWorker], tmp_path: Path, varied: bool
) -> None:
    """The user hears of it; who only tries what there may be goes on."""
    workers["pinned"].files = {"k.py": (declared("a", ("sm_80",)),)}
    workers["pinned"].failures = {"a": Failure(PASS_CONFIG, "build", "there is none")}
    if varied:
        selection = Selection(Path("k.py"), variation=Variation(pass_configs=(("x", "1"),)))
        (done,), *_ = lower(tmp_path, [selection])
        assert done.failure is not None
    else:
        with pytest.raises(UsageError, match="there is none"):
            lower(tmp_path, [Selection(Path("k.py"))], pass_configs={"x": "1"})


def test_a_file_without_cases_is_passed_over_only_in_a_folder(
    workers: dict[str, StandInWorker], tmp_path: Path
) -> None:
    workers["pinned"].files = {"k.py": (declared("a"),)}
    helper = Path("helper.py")
    done, made, _ = lower(tmp_path, [Selection(helper, found=True), Selection(Path("k.py"), found=True)])
    assert made.passed_over == [helper]
    assert len(done) == 2
    with pytest.raises(UsageError, match=r"helper\.py declares no case and no kernel"):
        lower(tmp_path, [Selection(helper)])
    workers["pinned"].kernels = ("f", "g")
    with pytest.raises(UsageError, match=r"name a kernel: helper\.py::f, helper\.py::g"):
        lower(tmp_path, [Selection(helper)])


def test_what_is_asked_for_and_not_there_stops_before_lowering(
    workers: dict[str, StandInWorker], tmp_path: Path
) -> None:
    workers["pinned"].files = {"k.py": (declared("a"),)}
    workers["pinned"].failures = {"typo.py": Failure("usage", "import", "no 'x' in typo.py")}
    with pytest.raises(UsageError, match=r"typo\.py: no 'x' in typo\.py"):
        lower(tmp_path, [Selection(Path("k.py")), Selection(Path("typo.py"), "x")])
    assert {task_of(job) for job in workers["pinned"].jobs} == {"discover"}


def test_of_several_mistakes_the_first_is_told(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    failures = {name: Failure("usage", "import", f"wrong: {name}") for name in ("a.py", "b.py", "c.py")}
    workers["pinned"].failures = failures
    with pytest.raises(UsageError, match=r"wrong: b\.py"):
        lower(tmp_path, [Selection(Path(name)) for name in ("b.py", "c.py", "a.py")])


def test_a_file_that_cannot_be_imported_is_one_failure_and_the_others_go_on(
    workers: dict[str, StandInWorker], tmp_path: Path
) -> None:
    workers["pinned"].files = {"k.py": (declared("a", ("sm_90",)), declared("b", ("sm_90",)))}
    workers["pinned"].failures = {
        "broken.py": Failure("exception", "import", "no module"),
        "a": Failure("crash", "lower", "SIGABRT"),
    }
    done, made, _ = lower(tmp_path, [Selection(Path("broken.py"), found=True), Selection(Path("k.py"))])
    assert names(done) == [
        ("broken.py", "", "pinned"),
        ("k.py::a", "sm_90", "pinned"),
        ("k.py::b", "sm_90", "pinned"),
    ]
    assert [item.failure.message if item.failure else "" for item in done] == ["no module", "SIGABRT", ""]
    assert not made.passed_over


def test_it_may_be_stopped_after_its_last_kernel(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    """As Ctrl-C does while the last kernels are still being judged."""
    workers["pinned"].files = {"k.py": (declared("a", ("sm_90",)),)}
    done, made, _ = lower(tmp_path, [Selection(Path("k.py"))])
    made.stop()
    assert made.stopped
    assert [item.failure for item in done] == [None]


def test_snapshots_among_the_selections_keep_their_place(workers: dict[str, StandInWorker], tmp_path: Path) -> None:
    workers["pinned"].files = {"k.py": (declared("a", ("sm_90",)),)}
    done, _, _ = lower(tmp_path, [Selection(Path("s.snapshot.json")), Selection(Path("k.py"))])
    assert [item.run.position[0] for item in done] == [1]


def test_the_number_of_runs_is_said_once_when_all_are_known(
    workers: dict[str, StandInWorker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[int] = []
    begun: list[str] = []
    monkeypatch.setattr(Watcher, "total", lambda self, runs: said.append(runs))
    monkeypatch.setattr(Watcher, "stage", lambda self, text: begun.append(text))
    workers["pinned"].files = {"a.py": (declared("one"), declared("two")), "b.py": (declared("three"),)}
    lower(tmp_path, [Selection(Path("a.py")), Selection(Path("b.py"))])
    assert said == [6]
    assert "importing a.py" in begun
    assert any(text.startswith("lowering a.py::one sm_") for text in begun)
