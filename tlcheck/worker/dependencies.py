"""Describe what a job's process reads from outside: files, modules that it looks for, environment variables.

A result stays right as long as all of this is as it was (`tlcheck.lower.dependencies` looks). What only native code
reads is not seen, nor a question whether a file exists.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import sysconfig
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any

# The toolchain's identity covers these; what is below the standard library's folder goes with Python's version.
_IDENTIFIED = ("tilelang", "tvm", "tvm_ffi", "z3", "torch", "tlcheck")
_NOT_FILES = ("/proc/", "/sys/", "/dev/")
_CLOCK_STEP = 20_000_000  # ns: timestamps of files lag behind the clock by a tick
OWN_VARIABLES = ("TILELANG_CACHE_DIR", "TILELANG_TMP_DIR")  # another folder in each run


@dataclass(frozen=True)
class Dependencies:
    """files: path -> sha256 of its content, empty where there was no such file.

    names: dotted name of each module looked for -> where `folders` have it, empty if they do not (see `locate`).
    variables: those read -> value, None where unset.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str | None] = field(default_factory=dict)


class Recorder:
    """Follows this process from `watch` on. It cannot be stopped: the process ends with its job."""

    def __init__(self) -> None:
        self._started = time.time_ns()
        self._modules = frozenset(sys.modules)
        self._path = frozenset(sys.path)
        self._ignored = (*_folders_of(_IDENTIFIED), *_NOT_FILES)
        self._opened: dict[str, bool] = {}
        self._written: set[str] = set()
        self._missing: set[str] = set()
        self._variables: dict[str, str | None] = {}

    def watch(self) -> None:
        """Begin. Byte code is not written: Python takes it for a source of the same second and size."""
        sys.dont_write_bytecode = True
        sys.meta_path.append(self)  # asked for what no other finder has
        sys.addaudithook(self._audit)
        self._watch_variables()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Implement `importlib.abc.MetaPathFinder`."""
        self._missing.add(name)

    def found(self) -> Dependencies | None:
        """Return what was read until now; None if some of it has changed since, so that nobody knows what was seen."""
        opened, variables = dict(self._opened), dict(self._variables)  # before this function reads any itself
        sources = {_absolute(file) for name in self._new_modules() if (file := _source(sys.modules[name]))}
        files = sorted({*sources, *opened})
        digests = {file: digest for file in files if (digest := self._digest(file, opened)) is not None}
        if any(self._is_fresh(file) for file, digest in digests.items() if digest):
            return None
        folders = tuple(dict.fromkeys(entry for entry in sys.path if entry not in self._path))
        names = {name: locate(name, folders) for name in sorted({*self._new_modules(), *self._missing})}
        return Dependencies(digests, folders, _telling(names), variables)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Note files. Python calls it for each `id()` too: what would ask a million times has objects as keys."""
        if event == "open" and isinstance(args[0], (str, bytes)):
            self._open(_absolute(os.fsdecode(args[0])), args[2])

    def _open(self, file: str, flags: int) -> None:
        if file in self._opened or file in self._written or self._is_ignored(file):
            return
        if flags & (os.O_WRONLY | os.O_TRUNC):
            self._written.add(file)
        else:
            self._opened[file] = Path(file).exists()

    def _is_ignored(self, file: str) -> bool:
        return file.startswith(self._ignored) or file.endswith(".pyc") or is_standard(file)

    def _digest(self, file: str, opened: Mapping[str, bool]) -> str | None:
        """Hash the content; empty for no file; None for one that does not count: a passing one, or no file at all."""
        if self._is_ignored(file) or Path(file).is_dir():
            return None
        try:
            return hashlib.sha256(Path(file).read_bytes()).hexdigest()
        except OSError:
            return None if opened.get(file) else ""

    def _is_fresh(self, file: str) -> bool:
        with contextlib.suppress(OSError):
            return Path(file).stat().st_ctime_ns >= self._started - _CLOCK_STEP
        return True

    def _new_modules(self) -> list[str]:
        return [name for name in list(sys.modules) if name not in self._modules]

    def _watch_variables(self) -> None:
        """Note the value that a variable has when it is first read, unless this process has set it before."""
        environ, variables, assigned = type(os.environ), self._variables, set[str]()
        get, put = environ.__getitem__, environ.__setitem__

        def watched_get(self: Any, key: Any) -> Any:
            if self is os.environ and isinstance(key, str) and key not in (*assigned, *OWN_VARIABLES, *variables):
                variables[key] = get(self, key) if key in set(self) else None
            return get(self, key)

        def watched_put(self: Any, key: Any, value: Any) -> None:
            assigned.add(key)
            put(self, key, value)

        environ.__getitem__ = watched_get  # type: ignore[method-assign]
        environ.__setitem__ = watched_put  # type: ignore[method-assign]


def locate(name: str, folders: Iterable[str]) -> str:
    """The file (of a namespace package the folder) that an import from these folders takes; empty if there is none."""
    stems = [Path(folder, name.replace(".", "/")) for folder in folders]
    for stem in stems:
        for candidate in (stem / "__init__", stem):
            for suffix in all_suffixes():
                if (file := Path(f"{candidate}{suffix}")).is_file():
                    return str(file)
    return next((str(stem) for stem in stems if stem.is_dir()), "")


def _telling(names: Mapping[str, str]) -> dict[str, str]:
    """Drop the parts of packages that are not in these folders: they follow their package."""
    return {name: place for name, place in names.items() if place or not _is_foreign_part(name, names)}


def _is_foreign_part(name: str, names: Mapping[str, str]) -> bool:
    top = name.partition(".")[0]
    return "." in name and not names.get(top, "")


def _source(module: Any) -> str:
    file = getattr(module, "__dict__", {}).get("__file__")  # not getattr: a lazy module would be imported by it
    return file if isinstance(file, str) else ""


def _folders_of(packages: Iterable[str]) -> list[str]:
    files = [_source(sys.modules[name]) for name in packages if name in sys.modules]
    return [str(Path(file).absolute().parent) + os.sep for file in files if file]


def _absolute(file: str) -> str:
    return str(Path(file).absolute())


_STANDARD = sysconfig.get_path("stdlib") + os.sep
_PLATFORM = sysconfig.get_path("platstdlib") + os.sep


def is_standard(file: str) -> bool:
    """Whether a file belongs to Python itself, and to no package that is installed there."""
    return file.startswith((_STANDARD, _PLATFORM)) and "-packages" + os.sep not in file
