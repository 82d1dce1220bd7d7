"""Test what is found in a kernel file, and what is said of what is not there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tlcheck
from tests.cpu.client import Client
from tests.cpu.worker.conftest import Write
from tests.cpu.worker.processes import WORKER
from tests.warm import WarmWorker
from tlcheck.case import Expect
from tlcheck.lower.client import DeclaredCase, Discovered
from tlcheck.worker.jobs import DiscoverJob

FILE = """
from tlcheck import Case, Expect

@tilelang.jit
def scale(rows, columns, dtype="float16"): ...

def add(rows): ...

def _helper(): ...

ready = PrimFunc(None)
tall = Case(scale, args={"rows": 64, "columns": 2})
no = Expect("<0.1.8", error="no", targets=["sm_80"])
wide = Case(scale, {"rows": 2, "columns": 64}, targets=["sm_80"], expect=[no])
same = tall
shape = (3, 4)
"""


@pytest.fixture
def worker() -> Iterator[Client]:
    """A worker whose process is the same for all these tests: each job is a copy of it."""
    with Client(WarmWorker(*WORKER), parallel=2) as client:
        yield client


def test_declared_cases_come_in_source_order_once_each(worker: Client, write: Write) -> None:
    found = discover(worker, write(FILE))
    assert found.cases == (
        DeclaredCase("tall", {"rows": "64", "columns": "2"}, ("sm_80", "sm_90"), ()),
        DeclaredCase(
            "wide", {"rows": "2", "columns": "64"}, ("sm_80",), (Expect("<0.1.8", error="no", targets=("sm_80",)),)
        ),
    )
    assert found.kernels == ("scale", "ready")


def test_a_file_is_imported_once_for_several_of_its_kernels(write: Write, tmp_path: Path) -> None:
    """Once more for those after a name that it does not have, and for that name."""
    notes = tmp_path / "notes"
    file = write(FILE + f"open({str(notes)!r}, 'a').write('x')\n")
    with Client(WarmWorker(*WORKER), parallel=1) as worker:
        for names, imports in ((["tall", "ready", "wide"], 1), (["tall", "gone", "ready"], 1 + 2)):
            notes.write_text("")
            found = worker.discover([DiscoverJob(file, name) for name in names])
            cases = {
                one.job.name: [case.name for case in one.cases] for one in found if isinstance(one.job, DiscoverJob)
            }
            assert cases == {name: [name] * (name != "gone") for name in names}
            assert len(notes.read_text()) == imports


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("wide", {}, {"rows": "2", "columns": "64"}),
        ("wide", {"rows": "8"}, {"rows": "8", "columns": "64"}),
        (
            "scale",
            {"rows": "8", "columns": "4", "dtype": "bfloat16"},
            {"rows": "8", "columns": "4", "dtype": "'bfloat16'"},
        ),
        ("add", {"rows": "(1, 2)"}, {"rows": "(1, 2)"}),
        ("ready", {}, {}),
    ],
)
def test_a_name_gives_one_case(
    worker: Client, write: Write, name: str, args: dict[str, str], expected: dict[str, str]
) -> None:
    (case,) = discover(worker, write(FILE), name=name, args=args).cases
    assert (case.name, case.args) == (name, expected)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("wid", {}, "no 'wid' in kernels.py; did you mean 'wide'?"),
        ("nothing_like_it", {}, "no 'nothing_like_it' in kernels.py; it has: tall, wide, scale, ready, add, _helper"),
        ("shape", {}, "'shape' is neither a case nor a kernel but a tuple"),
        ("scale", {"rows": "1"}, "scale needs --arg columns=..."),
        ("scale", {}, "scale needs --arg rows=... --arg columns=..."),
        ("scale", {"row": "1", "columns": "1"}, "scale has no build argument 'row'; did you mean 'rows'?"),
        ("ready", {"rows": "1"}, "ready has no build argument 'rows'; it takes none"),
        ("tall", {"width": "1"}, "tall has no build argument 'width'; it takes rows, columns, dtype"),
    ],
)
def test_what_is_not_there_is_named(
    worker: Client, write: Write, name: str, args: dict[str, str], message: str
) -> None:
    failure = discover(worker, write(FILE), name=name, args=args).failure
    assert failure is not None
    assert failure.kind == "usage"
    assert failure.message.startswith(message)


def test_an_unknown_arch_is_named_with_those_known(worker: Client, write: Write) -> None:
    failure = discover(worker, write(FILE), arch="sm_91").failure
    assert failure is not None
    assert failure.message.startswith("unknown arch 'sm_91'; known: sm_70, ")


def test_a_file_that_is_not_there(worker: Client) -> None:
    failure = discover(worker, "nowhere.py").failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("usage", "no such file: nowhere.py")


@pytest.mark.parametrize(
    ("source", "message", "line"),
    [
        ("x = (", "SyntaxError: '(' was never closed", 3),
        ("\nraise ValueError('odd\\nheads')", "ValueError: odd", 4),
        (
            "import torch_of_the_moon as moon\nif moon.FULL: ...",
            "MissingPackageError: torch_of_the_moon.FULL was tested, and torch_of_the_moon is not installed",
            4,
        ),
        (
            "from torch_of_the_moon import SIZE\nHALF = SIZE // 2",
            "TypeError: unsupported operand type(s) for //: '_Anything' and 'int' "
            "(not installed, and stood in for: torch_of_the_moon)",
            4,
        ),
        (
            "import torch_of_the_moon\nraise KeyError('heads')",
            "KeyError: 'heads' (not installed, and stood in for: torch_of_the_moon)",
            4,
        ),
        ("import json\njson.loads('{')", "JSONDecodeError: ", 4),
        (
            "from tlcheck import Case\ndef f(): ...\ncase = Case(f, reference=f)",
            "ValueError: Case takes reference= together with inputs=",
            5,
        ),
    ],
)
def test_a_file_that_does_not_import(worker: Client, write: Write, source: str, message: str, line: int) -> None:
    file = write(source)
    failure = discover(worker, file).failure
    assert failure is not None
    assert (failure.kind, failure.phase, failure.where) == ("exception", "import", f"{file}:{line}")
    assert failure.message.startswith(message)
    advice = "in `requirements` of [tool.tlcheck], then run `tlcheck toolchain install`" in failure.detail
    assert failure.advice == (failure.detail.splitlines()[-1] if advice else "")
    assert advice == (message.startswith("MissingPackageError") or "_Anything" in message)
    assert ("name torch_of_the_moon in `requirements`" in failure.detail) == message.startswith("MissingPackageError")


def test_a_name_that_this_python_lacks_is_no_package(worker: Client, write: Write) -> None:
    failure = discover(worker, write("import torch_of_the_moon\nfrom typing import name_of_the_moon")).failure
    assert failure is not None
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = f"your files need a later Python than {version}: install tlcheck with that Python"
    assert (failure.advice, failure.detail) == (wanted, wanted)


def test_a_package_that_the_kernel_does_not_need_may_be_missing(worker: Client, write: Write, tmp_path: Path) -> None:
    (tmp_path / "compared.py").write_text("import torch_of_the_moon\nfrom torch_of_the_sun import light")
    found = discover(worker, write(f"from compared import light\n{FILE}"))
    assert found.failure is None
    assert found.kernels == ("scale", "ready")


DECLARE = "from tlcheck import Case\ndef kernel(**found): ...\ncase = Case(kernel, "


def test_imports_from_its_own_folder_and_the_python_path(worker: Client, write: Write, tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("ROWS = 3")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "widths.py").write_text("COLUMNS = 4")
    file = write(f"import shapes, widths\n{DECLARE}{{'a': shapes.ROWS, 'b': widths.COLUMNS}})")
    (case,) = discover(worker, file, pythonpath=(str(tmp_path / "lib"),)).cases
    assert case.args == {"a": "3", "b": "4"}


def test_relative_imports_in_a_package(worker: Client, tmp_path: Path) -> None:
    package = tmp_path / "team" / "kernels"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "sizes.py").write_text("ROWS = 3")
    (package / "gemm.py").write_text(f"from .sizes import ROWS\n{DECLARE}{{'rows': ROWS}})")
    (case,) = discover(worker, str(package / "gemm.py")).cases
    assert case.args == {"rows": "3"}


def test_a_file_called_like_a_module_in_use_does_not_replace_it(worker: Client, tmp_path: Path) -> None:
    file = tmp_path / "json.py"
    file.write_text(f"import json\n{DECLARE}{{'text': json.dumps([1])}})")
    (case,) = discover(worker, str(file)).cases
    assert case.args == {"text": "'[1]'"}


def test_only_tlcheck_comes_from_the_controller(worker: Client, write: Write) -> None:
    file = write(f"import sys, tlcheck\n{DECLARE}{{'path': sys.path, 'package': tlcheck.__file__}})")
    (case,) = discover(worker, file).cases
    python, env = WORKER
    plain = subprocess.check_output([python, "-c", "import sys; print(sys.path[1:])"], env=env, text=True).strip()
    assert case.args["package"] == repr(tlcheck.__file__)
    assert case.args["path"] == f"['{Path(file).parent}', {plain[1:]}"


def discover(
    worker: Client, file: str, name: str = "", args: dict[str, str] | None = None, **fields: object
) -> Discovered:
    (found,) = worker.discover([DiscoverJob(file, name, args or {}, **fields)])  # type: ignore[arg-type]
    return found
