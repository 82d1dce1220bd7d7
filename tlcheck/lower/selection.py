"""Define what a user selects on the command line.

CASE = `FILE[::NAME][@TOOLCHAIN]`, `FILE:LINE[@TOOLCHAIN]`, a folder (also with `@TOOLCHAIN`), or a saved snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.lower.source_names import name_at
from tlcheck.targets.lookup import target
from tlcheck.worker.capture.pytests import is_test

SNAPSHOT_SUFFIX = ".json"
_LINE = re.compile(r"(.*\.py):(\d+)")


@dataclass(frozen=True)
class Variation:
    """A record of what a kernel is lowered with instead of its own: names and values, as text."""

    args: tuple[tuple[str, str], ...] = ()
    pass_configs: tuple[tuple[str, str], ...] = ()


UNCHANGED = Variation()


@dataclass(frozen=True)
class Selection:
    """A kernel file, or one case or kernel in it, or a saved snapshot.

    toolchain: as the user named it; empty for the default one. found: in a folder, not named by the user. tests: in a
    folder of tests that the user named. only: the cases that are wanted, each with its target; all where None.
    variation: over what the user says of all kernels.
    """

    path: Path
    name: str = ""
    toolchain: str = ""
    found: bool = False
    tests: bool = False
    only: frozenset[tuple[str, str]] | None = None
    variation: Variation = UNCHANGED

    @property
    def is_snapshot(self) -> bool:
        return self.path.suffix == SNAPSHOT_SUFFIX


def select(cases: Iterable[str]) -> list[Selection]:
    """Return what the CASE arguments name, folders replaced by the kernel files in them. Raises UsageError."""
    return list(dict.fromkeys(s for case in cases for s in _files(parse(case))))


def parse(case: str) -> Selection:
    """One CASE argument. A path may hold an `@`, and a toolchain too: the path ends where something exists."""
    for at in (*(i for i, c in enumerate(case) if c == "@"), len(case)):
        path, _, name = case[:at].partition("::")
        if (place := _LINE.fullmatch(path)) and not name and Path(place[1]).is_file():
            path, name = place[1], name_at(Path(place[1]), int(place[2]))
        if path and Path(path).exists():
            return _checked(case, Selection(Path(path), name, case[at + 1 :]), at < len(case))
    raise UsageError(f"no such file or folder: {case.partition('::')[0] or repr(case)}")


def _checked(case: str, selection: Selection, has_toolchain: bool) -> Selection:
    """Raises UsageError for a part that is empty or has no meaning there."""
    if has_toolchain and not selection.toolchain:
        raise UsageError(f"{case}: no toolchain after the @")
    if "::" in case and not selection.name and not selection.toolchain:
        raise UsageError(f"{case}: no name after the ::")
    if selection.path.is_dir():
        if selection.name:
            raise UsageError(f"{case}: {selection.path} is a folder, a name belongs to a file")
    elif selection.is_snapshot:
        if selection.name or selection.toolchain:
            raise UsageError(f"{case}: a saved snapshot has its case and toolchain in it, it takes neither :: nor @")
    elif selection.path.suffix != ".py":
        raise UsageError(f"{selection.path} is neither a kernel file (.py), a saved snapshot (.json) nor a folder")
    return selection


def _files(selection: Selection) -> Iterator[Selection]:
    if not selection.path.is_dir():
        yield selection
        return
    files = sorted(f for f in selection.path.rglob("*.py") if _is_kernel_file(f.relative_to(selection.path)))
    if not files:
        raise UsageError(f"no kernel file (*.py) in {selection.path}")
    tests = _is_for_tests(selection.path)
    yield from (Selection(file, "", selection.toolchain, found=True, tests=tests) for file in files)


def _is_for_tests(folder: Path) -> bool:
    """Whether a folder is one of tests, by its name or since nothing else is directly in it."""
    files = [file for file in folder.glob("*.py") if file.stem not in ("conftest", "__init__")]
    return folder.resolve().name in ("test", "tests") or (bool(files) and all(map(is_test, files)))


def _is_kernel_file(relative: Path) -> bool:
    """Hidden files and folders, and those with a leading underscore, are not for checking."""
    return not any(part.startswith((".", "_")) for part in relative.parts)


def parse_args(texts: Iterable[str]) -> Mapping[str, str]:
    """`--arg k=v` values by name, as text. Raises UsageError."""
    return _by_name("--arg", texts, str.isidentifier)


def parse_pass_configs(texts: Iterable[str]) -> Mapping[str, str]:
    """`--pass-config k=v` values by name, as text. Raises UsageError."""
    return _by_name("--pass-config", texts, bool)


def _by_name(option: str, texts: Iterable[str], is_name: Callable[[str], bool]) -> Mapping[str, str]:
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not is_name(key):
            raise UsageError(f"{option} {text}: expected NAME=VALUE")
        if key in values:
            raise UsageError(f"{option} {key} is given twice")
        values[key] = value
    return values


def parse_archs(archs: Iterable[str]) -> tuple[str, ...]:
    """Each once, in their order. Raises UsageError."""
    return tuple(dict.fromkeys(target(arch.strip()).arch for arch in archs))
