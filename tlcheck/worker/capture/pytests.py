"""Runs a test file as pytest would."""

from __future__ import annotations

import contextlib
import io
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tlcheck.worker.capture.patience import Patience
from tlcheck.worker.capture.refusals import Refusals
from tlcheck.worker.capture.unseen import UnseenError
from tlcheck.worker.failures import RequestError
from tlcheck.worker.jobs import CaptureJob

_OPTIONS = ("-q", "--no-header", "-p", "no:cacheprovider")
_UNKNOWN = "unrecognized arguments: "


class PytestError(Exception):
    """Says what ended pytest before its tests: a plugin, a conftest.py, the project's options."""


@dataclass
class TestRun:
    """A record of what became of a file's tests. failed: each with its error. skipped: the reasons.

    left: says how many were not run for want of time. unrun: how many. all: how many there are.
    """

    failed: list[tuple[str, BaseException]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    left: str = ""
    unrun: int = 0
    all: int = 0

    def counts(self) -> Mapping[str, int]:
        """Return how many tests there are, were skipped, failed, and were left.

        One that lacks values or time without a GPU counts as one that ran: its kernels were captured before.
        """
        own = {
            name for name, error in self.failed if isinstance(error, ImportError) or not isinstance(error, UnseenError)
        }
        return {"all": self.all, "skipped": len(self.skipped), "failed": len(own), "left": self.unrun}


def is_test(file: Path) -> bool:
    """Whether pytest would collect this file."""
    return file.stem.startswith("test_") or file.stem.endswith("_test")


def run(
    file: Path,
    job: CaptureJob,
    refusals: Refusals,
    patience: Patience,
    report: Callable[[Mapping[str, Any]], None],
    end_test: Callable[[], None],
) -> TestRun:
    """Run the tests; one that fails ends alone. `report` is told how many are left, `end_test` called after each.

    Raises RequestError for arguments that pytest does not take, and what ended pytest itself.
    """
    sys.argv = ["pytest", str(file), *job.script_args]
    try:
        import pytest
    except ImportError as error:
        raise RequestError("test files are run by pytest, which is neither installed here nor there") from error
    refusals.watch(type(pytest.raises(AssertionError)))
    watch = _Watch(refusals, patience, report, end_test)
    code, said = _main([str(file), *_OPTIONS, *job.script_args], watch)
    if _UNKNOWN in said and not any(word in job.script_args for word in said.partition(_UNKNOWN)[2].split()):
        # options of plugins that the project has and the toolchain has not, such as `-n auto --cov`
        code, said = _main([str(file), *_OPTIONS, "-o", "addopts=", *job.script_args], watch)
    if watch.internal is not None:
        raise watch.internal
    if code == pytest.ExitCode.USAGE_ERROR and job.script_args and "onftest" not in said and "plugin" not in said:
        raise RequestError(f"pytest does not take these arguments: {' '.join(job.script_args)}: {_first_lines(said)}")
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
        raise PytestError(_first_lines(said))
    return watch.run


def _main(arguments: Sequence[str], watch: _Watch) -> tuple[int, str]:
    """Exit code, and what pytest has said of its own end."""
    import pytest

    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = pytest.main([*arguments], plugins=[watch])
    sys.stderr.write(said.getvalue())
    return int(code), said.getvalue()


def _first_lines(said: str) -> str:
    """Return what pytest says first and, of an import that failed, what Python says last."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and "usage:" not in line]
    causes = [line.removeprefix("E ").strip() for line in lines if line.startswith("E ")]
    told = [line.removeprefix("ERROR: ").rpartition("): error: ")[2] for line in [*lines[:1], *causes[-1:]]]
    return " ".join(dict.fromkeys(told)) or "pytest said nothing"


def _is_about_gpu(mark: Any) -> bool:
    """Whether a mark is for tests with a GPU: by its name, or by the reason for which it skips."""
    said = f"{mark.name} {mark.kwargs.get('reason', '')}".lower()
    return "cuda" in said or "gpu" in said


class _Watch:
    """A plugin of pytest's."""

    def __init__(
        self,
        refusals: Refusals,
        patience: Patience,
        report: Callable[[Mapping[str, Any]], None],
        end_test: Callable[[], None],
    ) -> None:
        self.run = TestRun()
        self.internal: BaseException | None = None
        self._refusals, self._patience, self._report, self._end_test = refusals, patience, report, end_test
        self._session: Any = None
        self._all = self._left = 0

    def pytest_collection_finish(self, session: Any) -> None:
        self._all = self._left = self.run.all = len(session.items)
        self._session = session

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Tests that need a GPU go first: others may use up the time on a reference of their own.

        The first variant of every test comes before all second ones: the time may end among the variants of one.
        """
        variants: Counter[str] = Counter()
        places: dict[int, int] = {}
        for item in items:
            test = item.nodeid.partition("[")[0]
            places[id(item)] = variants[test]
            variants[test] += 1
        items.sort(key=lambda item: (not any(map(_is_about_gpu, item.iter_markers())), places[id(item)]))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._report({"left": self._left, "all": self._all, "test": nodeid.rpartition("::")[2]})

        self._patience.begin_test()

    def pytest_runtest_logfinish(self) -> None:
        self._left -= 1
        self._end_test()
        if self._left and (limit := self._patience.over()):
            count = f"{self._left} of its {self._all} tests {'were' if self._left > 1 else 'was'} left"
            self.run.unrun = self._left
            self.run.left = f"{count} after {limit} (-k EXPR chooses, --timeout S gives more)"
            self._session.shouldstop = self.run.left

    def pytest_runtest_setup(self, item: Any) -> None:
        """A test that is marked so may fail because its kernel is refused."""
        self._refusals.marked = item.get_closest_marker("xfail") is not None

    def pytest_exception_interact(self, node: Any, call: Any) -> None:
        """Note the failure of a test, or of the whole file while tests are looked for."""
        error = call.excinfo.value
        collecting = type(error).__name__ == "CollectError" and error.__cause__ is not None
        self.run.failed.append((node.name, error.__cause__ if collecting else error))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.run.skipped.append(str(report.longrepr[-1]).removeprefix("Skipped: "))

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)

    def pytest_internalerror(self, excinfo: Any) -> None:
        self.internal = excinfo.value
