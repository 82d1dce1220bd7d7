"""Lowering with real toolchains: what is kept of it, where it was written, and that nothing is disturbed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tests.cpu.client import Client, Ended
from tests.warm import WarmWorker
from tlcheck.lower.client import Worker
from tlcheck.snapshot import codec
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Expr, Function, Snapshot
from tlcheck.snapshot.text import render
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.toolchain.releases import PINNED, RELEASES
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.jobs import LowerJob, name_of
from tlcheck.worker.protocol import PASS_CONFIG, Failure

pytestmark = pytest.mark.toolchain

FORMS = Path(__file__).parent / "kernels" / "forms.py"
EAGER = FORMS.with_name("eager.py")
WRONG = FORMS.with_name("wrong.py")
# One release of each dialect and era; `make test-releases` takes all.
ERAS = tuple(RELEASES) if os.environ.get("EVERY_RELEASE") else ("0.1.6.post2", "0.1.7.post3", "0.1.12", PINNED)
WITHOUT_TYPE_CAST = ("0.1.6.post2", "0.1.7", "0.1.7.post1", "0.1.7.post2")

Lower = Callable[..., Ended]


@pytest.fixture(scope="module", params=[pytest.param(era, marks=pytest.mark.xdist_group(era)) for era in ERAS])
def toolchain(request: pytest.FixtureRequest) -> Toolchain:
    return installed(request.param)


@pytest.fixture(scope="module")
def worker(toolchain: Toolchain) -> Iterator[Client]:
    with Client(WarmWorker(toolchain.python, toolchain.env)) as worker:
        yield worker


@pytest.fixture
def lower(tmp_path: Path) -> Lower:
    """Lower one kernel of the forms, or of another file."""

    def lower(worker: Client, name: str, file: Path = FORMS, **fields: object) -> Ended:
        job = LowerJob(str(file), name, output=str(tmp_path / f"{name}.json"), **fields)  # type: ignore[arg-type]
        (result,) = worker.lower([job])
        return result

    return lower


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("small", "simt"),
        ("large", "tile"),
        ("histogram", "histogram"),
        ("two_kernels", "two_kernels"),
        ("ready", "simt"),
    ],
)
def test_all_checkpoints_are_kept_and_atomics_know_their_lines(
    worker: Client, toolchain: Toolchain, lower: Lower, name: str, function: str
) -> None:
    snapshot = read(lower(worker, name))
    expected = [c for c in Checkpoint if c != "type-cast" or toolchain.name not in WITHOUT_TYPE_CAST]
    assert list(snapshot.checkpoints) == list(snapshot.passes) == expected
    assert snapshot.toolchain["tilelang"] == toolchain.name
    for checkpoint in ("source", "intent", "tile-ops"):
        assert atomic_lines(snapshot.checkpoints[checkpoint]) == marked_lines(FORMS, function)
    assert "atomic" in snapshot.cuda.lower()


@pytest.mark.slow
def test_a_reduction_knows_its_line(worker: Client, lower: Lower) -> None:
    """TileLang makes it within a macro, to which newer releases give the line of the branch."""
    source = read(lower(worker, "reduced", arch="sm_80")).checkpoints["source"]
    lines = FORMS.read_text().splitlines()
    told = [lines[s.line - 1].strip() for s in statements(source.body) if any(map(_reduces, expressions(s)))]
    assert told == ["T.reduce_sum(tile, sums, dim=1)"]


def _reduces(e: Expr) -> bool:
    return e.op == "call" and str(e.value) == "reduce"


@pytest.mark.slow
def test_a_kernel_for_amd_is_lowered_where_the_release_makes_hip(
    worker: Client, toolchain: Toolchain, lower: Lower
) -> None:
    done = lower(worker, "small", arch="gfx942")
    if done.failure is not None:
        assert toolchain.name != PINNED
        assert (done.failure.kind, done.failure.message) == ("target", "this release makes no code for gfx942")
    else:
        snapshot = read(done)
        assert (snapshot.target, "hip/hip_runtime.h" in snapshot.cuda) == ("gfx942", True)


PIPELINE = re.compile(r"barrier|commit_|wait_|async|sync|tma_")


def test_the_source_is_as_written(worker: Client, lower: Lower) -> None:
    """A pipelined loop is a loop over tile operators; what later makes the pipeline is not there yet."""
    checkpoints = read(lower(worker, "pipelined")).checkpoints
    source, lowered = (str(render(checkpoints[name])) for name in ("source", "device-tir"))
    assert source.count("num_stages=2") == source.count("T.copy(") == source.count("T.atomicadd(") == 1
    assert not PIPELINE.search(source)
    assert PIPELINE.search(lowered)
    assert "T.unknown" not in source


@pytest.mark.slow
@pytest.mark.parametrize(
    "release", [pytest.param(release, marks=pytest.mark.xdist_group(release)) for release in ("0.1.7", PINNED)]
)
def test_the_cuda_source_is_that_of_a_bare_lowering(release: str, tmp_path: Path) -> None:
    """Instruments and spans change nothing, in either dialect of TVM's graphs."""
    toolchain = installed(release)
    script = f"""
        import gc, os, sys
        gc.disable()  # for the imports
        sys.path[:0] = [{str(FORMS.parent)!r}, {str(Path(codec.__file__).parents[2])!r}]
        import torch
        torch.cuda.get_device_capability = lambda *args: (9, 0)
        import forms, tilelang
        target = tilelang.tvm.target.Target({{"kind": "cuda", "arch": "sm_90"}})
        with target:
            kernel = forms.simt(128)
        with tilelang.tvm.transform.PassContext(opt_level=3), target:
            made = tilelang.lower(kernel, target=target, enable_host_codegen=False, enable_device_compile=False)
        print("=====" + made.kernel_source, end="", flush=True)
        os._exit(0)
        """
    env = {**os.environ, **toolchain.env, "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1"}
    done = subprocess.run(
        [toolchain.python, "-c", textwrap.dedent(script)], env=env, capture_output=True, text=True, check=True
    )
    with Client(WarmWorker(toolchain.python, toolchain.env)) as worker:
        (made,) = worker.lower([LowerJob(str(FORMS), "small", output=str(tmp_path / "small.json"))])
    assert read(made).cuda == done.stdout.partition("=====")[2]


@pytest.mark.parametrize("name", ["TIR_DISABLE_VECTORIZE", "TL_DISABLE_WGMMA"])
def test_a_pass_configuration_is_set_by_its_key(worker: Client, lower: Lower, name: str) -> None:
    snapshot = read(lower(worker, "small", pass_configs={name: "true"}))
    ((place, value),) = [one for one in snapshot.pass_configs.items() if one[0].endswith(name[4:].lower().strip("_"))]
    assert value == "True"
    assert read(lower(worker, "small", pass_configs={place: "1"})).pass_configs[place] == "1"


def test_an_unknown_pass_configuration_is_told_with_one_that_is_near(worker: Client, lower: Lower) -> None:
    failure = lower(worker, "small", pass_configs={"TL_DISABLE_WGMA": "true"}).failure
    assert failure is not None
    assert failure.kind == PASS_CONFIG
    assert re.match(
        r"--pass-config TL_DISABLE_WGMA: TileLang [\d.]+\S* does not have it; did you mean TL_DISABLE_WGMMA\?",
        failure.message,
    )


@pytest.mark.slow
@pytest.mark.xdist_group("0.1.7")
def test_a_fresh_process_makes_the_same_bytes(tmp_path: Path) -> None:
    """A release may place shared memory differently in each process; goldens are made with the pinned one.

    A copy of a worker lowers another kernel before.
    """
    made = installed("0.1.7")
    texts = []
    for worker, names in (
        (WarmWorker(made.python, made.env), ("large", "histogram")),
        (Worker(made.python, made.env, fork=False), ("histogram",)),
    ):
        jobs = [LowerJob(str(FORMS), name, output=str(tmp_path / name)) for name in names]
        with Client(worker, 1) as client:
            lowered = {name_of(result.job): codec.dumps(read(result)) for result in client.lower(jobs)}
        texts.append(lowered["histogram"])
    assert texts[0] == texts[1]


def test_every_pass(worker: Client, lower: Lower) -> None:
    snapshot, usual = read(lower(worker, "large", every_pass=True)), read(lower(worker, "large"))
    names = list(snapshot.checkpoints)
    assert names[0] == "000-input"
    assert [name[4:] for name in names[1:]] == list(snapshot.passes.values())[1:]
    assert names == sorted(names)
    assert len(names) > 50
    assert names[-1].endswith(usual.passes["device-tir"])
    assert shape_of(snapshot.checkpoints[names[-1]]) == shape_of(usual.checkpoints["device-tir"])
    lowered = next(name for name in names if name.endswith("tl.LowerTileOp"))
    assert shape_of(snapshot.checkpoints[lowered]) == shape_of(usual.checkpoints["lower-tile-op"])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_kernel_sees_the_arch_asked_for(worker: Client, lower: Lower, arch: str) -> None:
    snapshot = read(lower(worker, "by_capability", arch=arch))
    (size,) = snapshot.checkpoints["intent"].buffers[0].shape
    assert (snapshot.target, size.value) == (arch, 128 * int(arch[3:]))


def test_the_pass_configuration_of_a_jit_function_is_used(worker: Client, lower: Lower) -> None:
    assert read(lower(worker, "large")).pass_configs == {"tl.enable_fast_math": "True"}
    failure = failure_of(lower(worker, "configured", WRONG))
    assert failure.phase == "lower"
    assert "tl.no_such_option" in failure.message


def test_what_goes_wrong_in_the_kernel_is_told_in_one_line(worker: Client, lower: Lower) -> None:
    failure = failure_of(lower(worker, "three_indices", WRONG))
    assert (failure.kind, failure.phase) == ("exception", "build")
    assert re.search("dimension.* A |A is 2-dimensional", failure.message)
    (line,) = [n for n, text in enumerate(WRONG.read_text().splitlines(), start=1) if text.endswith(")  # wrong")]
    assert failure.where == f"{WRONG}:{line}"


def test_what_goes_wrong_in_the_compiler_is_told_in_one_line(
    toolchain: Toolchain, worker: Client, lower: Lower
) -> None:
    failure = failure_of(lower(worker, "indivisible", WRONG))
    assert (failure.kind, failure.phase) == ("exception", "lower")
    assert failure.message.endswith("M must be divisible by 16, but got 24")
    lines = WRONG.read_text().splitlines()
    kernel = lines.index("def indivisible():") + 1
    gemm = next(n for n in range(kernel, len(lines)) if "T.gemm(" in lines[n])
    has_frames = not toolchain.name.startswith("0.1.6")
    assert failure.where == f"{WRONG}:{gemm + 1 if has_frames else kernel}"


@pytest.fixture(scope="module")
def pinned() -> Iterator[Client]:
    made = installed(PINNED)
    with Client(WarmWorker(made.python, made.env)) as worker:
        yield worker


@pytest.mark.xdist_group(PINNED)
def test_what_goes_wrong_in_the_code_generation_says_so(pinned: Client, lower: Lower) -> None:
    failure = failure_of(lower(pinned, "varying", WRONG, arch="sm_80"))
    assert (failure.kind, failure.phase) == ("exception", "lower")
    assert failure.message == "code generation: TypeError: Downcast from tirx.Sub to ir.IntImm failed."
    assert str(failure.where).startswith(f"{WRONG}:")


@pytest.mark.xdist_group(PINNED)
def test_newer_forms(pinned: Client, lower: Lower) -> None:
    for name, args in (("traced", {"rows": "256", "threads": "64"}), ("tuned", {"rows": "256", "threads": "64"})):
        snapshot = read(lower(pinned, name, EAGER, args=args))
        assert atomic_lines(snapshot.checkpoints["intent"]) == marked_lines(EAGER, name)
        assert "__launch_bounds__(64" in snapshot.cuda


@pytest.mark.xdist_group(PINNED)
def test_a_size_that_a_traced_kernel_lacks_is_a_missing_argument(pinned: Client, lower: Lower) -> None:
    failure = failure_of(lower(pinned, "traced", EAGER))
    assert (failure.kind, failure.message) == ("usage", "traced needs --arg rows=...")


@pytest.mark.xdist_group(PINNED)
def test_a_kernel_of_another_file_has_that_file_and_its_lines(pinned: Client, lower: Lower, tmp_path: Path) -> None:
    file = tmp_path / "cases.py"
    file.write_text("from forms import simt\nfrom tlcheck import Case\n\ncase = Case(simt, {'rows': 256})\n")
    snapshot = read(lower(pinned, "case", file, pythonpath=(str(FORMS.parent),)))
    assert snapshot.file == str(FORMS)
    assert FORMS.read_text().splitlines()[snapshot.line - 1].startswith("def simt")
    assert atomic_lines(snapshot.checkpoints["intent"]) == marked_lines(FORMS, "simt")


@pytest.mark.xdist_group(PINNED)
def test_a_file_is_imported_once_for_kernels_that_are_asked_for_one_by_one(
    pinned: Client, lower: Lower, tmp_path: Path
) -> None:
    """One that fails after others is done again in a process of its own, and says of itself alone."""
    file, notes = tmp_path / "cases.py", tmp_path / "notes"
    file.write_text(f"""
from forms import simt
from tlcheck import Case

with open({str(notes)!r}, "a") as notes:
    notes.write("imported ")
one, two = (Case(simt, {{"rows": rows}}) for rows in (128, 256))

def bad():
    raise ValueError("no such tile")
""")
    for name in ("one", "two"):
        read(lower(pinned, name, file, pythonpath=(str(FORMS.parent),)))
    assert notes.read_text().split() == ["imported"]
    assert "no such tile" in failure_of(lower(pinned, "bad", file, pythonpath=(str(FORMS.parent),))).message
    assert notes.read_text().split() == ["imported"] * 2
    read(lower(pinned, "one", file, pythonpath=(str(FORMS.parent),), arch="sm_80"))
    assert notes.read_text().split() == ["imported"] * 3


@pytest.mark.slow
def test_nothing_is_written_to_the_home_folder(tmp_path: Path, lower: Lower, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    made = installed(PINNED)
    monkeypatch.setenv("HOME", str(home))
    with Client(Worker(made.python, made.env)) as worker:
        read(lower(worker, "large"))
    assert not list(home.iterdir())


def read(result: Ended) -> Snapshot:
    assert result.failure is None, (result.failure, result.answer.output)
    assert not result.unsaved
    assert result.snapshot is not None
    return codec.loads(result.snapshot.read_text())


def failure_of(result: Ended) -> Failure:
    assert result.failure is not None
    return result.failure


def marked_lines(file: Path, function: str) -> list[int]:
    """The lines of a function that are marked, or on which an atomic of several lines begins."""
    text = file.read_text()
    (node,) = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == function]
    assert node.end_lineno
    lines = dict(enumerate(text.splitlines(), start=1))
    return [n for n in range(node.lineno, node.end_lineno + 1) if re.search(r"# atomic$|T\.atomic_add\($", lines[n])]


def atomic_lines(function: Function) -> list[int]:
    """Lines of the statements that hold an atomic, in program order."""
    return [s.line for s in statements(function.body) if any(map(is_atomic, postorder(expressions(s))))]


def is_atomic(e: Expr) -> bool:
    return e.op in ("call", "str") and "atomic" in str(e.value).lower()


def shape_of(function: Function) -> list[str]:
    return [type(s).__name__ for s in statements(function.body)]
