"""The pytest plugin: each case of the project, for each of its targets, is a test.

    [tool.pytest.ini_options]
    tlcheck_cases = ["kernels/"]

A test fails with the finding, the error or the difference from its golden. Only pytest is imported here until a kernel
file is collected: the plugin is loaded by every pytest of the environment that tlcheck is installed in.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tlcheck.workshop import Workshop

_CASES = "tlcheck_cases"
_NAME = "tlcheck-cases"
_FOLDER = "tlcheck_folder"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        _CASES, "kernel files, and folders of them, whose cases are tests (tlcheck)", type="paths", default=[]
    )


def pytest_configure(config: pytest.Config) -> None:
    places = [Path(place) for place in config.getini(_CASES)]
    if not places:
        return
    missing = [str(place) for place in places if not place.exists()]
    if missing:
        raise pytest.UsageError(f"{_CASES}: no such file or folder: {missing[0]}")
    if config.args_source != pytest.Config.ArgsSource.ARGS:
        config.args += [str(place) for place in places if str(place) not in config.args]
    config.pluginmanager.register(Plugin(config, places), _NAME)


class Plugin:
    """The plugin of one pytest process. folder: where the processes of one run share what they lowered."""

    def __init__(self, config: pytest.Config, places: list[Path]) -> None:
        self._places = places
        self._root = config.rootpath
        shared: str | None = getattr(config, "workerinput", {}).get(_FOLDER)  # set in the processes of pytest-xdist
        self._own = shared is None
        self.folder = Path(shared or tempfile.mkdtemp(prefix="tlcheck-pytest-"))
        self._workshops: dict[Path, Workshop] = {}

    def workshop(self, file: Path) -> Workshop:
        """The workshop of a kernel file's project; all are made with the first. Raises UsageError."""
        if not self._workshops:
            from tlcheck.workshop import workshops

            self._workshops = workshops(self._root, self.folder, sorted(self._files()))
        return self._workshops[file]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """pytest-xdist starts a process."""
        node.workerinput[_FOLDER] = str(self.folder)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        items = [item for item in session.items if isinstance(item, CaseTest)]
        for workshop in self._workshops.values():
            workshop.wanted = [(item.path, item.case, item.target) for item in items if item.path in workshop.files]

    def pytest_unconfigure(self) -> None:
        if self._own:
            shutil.rmtree(self.folder, ignore_errors=True)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> KernelFile | None:
        if self._is_kernel_file(file_path):
            made: KernelFile = KernelFile.from_parent(parent, path=file_path)
            made.plugin = self
            return made
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """pytest imports any Python file that is named on its command line, kernel files too, if nobody else does."""
        if self._is_kernel_file(module_path):
            nothing: Nothing = Nothing.from_parent(parent, path=module_path)
            return nothing
        return None

    def _files(self) -> Iterator[Path]:
        for place in self._places:
            yield from (
                path for path in (place.rglob("*.py") if place.is_dir() else [place]) if self._is_kernel_file(path)
            )

    def _is_kernel_file(self, path: Path) -> bool:
        """Whether `tlcheck check` would take the file of a folder; pytest's own files are none."""
        if path.suffix != ".py" or path.name == "conftest.py" or path.name.startswith("test_"):
            return False
        return any(_is_in(path, place) for place in self._places)


def _is_in(path: Path, place: Path) -> bool:
    if path == place:
        return True
    parts = path.relative_to(place).parts if path.is_relative_to(place) else (".",)
    return not any(part.startswith((".", "_")) for part in parts)


class KernelFile(pytest.File):
    """A kernel file; importing it is left to the toolchain."""

    plugin: Plugin

    def collect(self) -> Iterator[CaseTest]:
        from tlcheck.errors import UsageError

        try:
            workshop = self.plugin.workshop(self.path)
            found = workshop.cases(Path(os.path.relpath(self.path)))
        except UsageError as error:
            raise self.CollectError(f"tlcheck: {error}") from error
        for name, target in found:
            test: CaseTest = CaseTest.from_parent(self, name=f"{name}[{target}]")
            test.workshop, test.case, test.target = workshop, name, target
            yield test


class Nothing(pytest.File):
    """Stands for a kernel file where pytest wants a module."""

    def collect(self) -> Iterator[CaseTest]:
        return iter(())


class CaseTest(pytest.Item):
    """One case for one target."""

    workshop: Workshop
    case: str
    target: str

    def runtest(self) -> None:
        from tlcheck.errors import UsageError

        try:
            verdict = self.workshop.judge(Path(os.path.relpath(self.path)), self.case, self.target)
        except UsageError as error:
            raise CaseFailedError(f"tlcheck: {error}") from error
        if verdict.wrong:
            raise CaseFailedError(verdict.wrong)
        if verdict.expected:
            pytest.xfail(verdict.expected)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.case} {self.target}"


class CaseFailedError(Exception):
    """The description of what is wrong with a case, for people."""
