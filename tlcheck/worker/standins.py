"""Stand-ins for packages that a user's file imports and that are not installed: they fail when something of them is
used.

Examples import what they compare with, such as Triton, at the top of the file that has the kernel.

Only what a user's own file imports is replaced, and not where the file itself expects that it may be missing.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.util
import inspect
import os
import re
import sys
import sysconfig
import types
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from tlcheck.worker.capture.unseen import UnseenError
from tlcheck.worker.protocol import Failure

_CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_AT_IMPORT = {"<module>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}
_COMPILERS = ("triton.", "numba.", "cutlass.", "cuda.")
_used: dict[str, None] = {}  # packages that were replaced, in the order of their imports
_told: list[Callable[[Sequence[Any]], None]] = []  # of launches
# In the message of a failure that a package would mend.
_OF_A_PACKAGE = re.compile(r"\b(ImportError|ModuleNotFoundError|MissingPackageError): |'(_Anything|_StandIn)'")
_OF_PYTHON = re.compile(r"ImportError: cannot import name '\w+' from '(\w+)")
_REAL = {"tilelang", "torch", "tvm", "tvm_ffi", "tlcheck", "pytest"}  # a missing part of these is an error


class MissingPackageError(UnseenError, ImportError):
    """Something of a package that is not installed was called."""


class _StandIn(types.ModuleType):
    """A module that has every name."""

    __path__: MutableSequence[str]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []
        self.__version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Anything(f"{self.__name__}.{name}")


class _Anything:
    """Something of a missing package: can be named, inherited from, used as a decorator's name, not called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Anything(f"{self._name}.{name}")

    def __getitem__(self, key: Any) -> Any:
        return self

    def __bool__(self) -> bool:
        raise MissingPackageError(f"{self._name} was tested, and {self._name.partition('.')[0]} is not installed")

    def __iter__(self) -> Any:
        raise MissingPackageError(f"{self._name} was taken apart, and {self._name.partition('.')[0]} is not installed")

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (_CompilerBase if self._name.startswith(_COMPILERS) else _Base,)

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A decorator changes nothing, but for a compiler's; what a module prepares is not needed yet."""
        if self._name in _ARITHMETIC:
            return _ARITHMETIC[self._name](*args, **kwargs)
        if len(args) == 1 and not kwargs and isinstance(args[0], (*_DECORATED, _Compiled)):
            return _Compiled(args[0]) if self._name.startswith(_COMPILERS) else args[0]
        if sys._getframe(1).f_code.co_name in _AT_IMPORT:
            return _Anything(f"{self._name}()")
        raise MissingPackageError(f"{self._name} was called, and {self._name.partition('.')[0]} is not installed")


class _Compiled:
    """A kernel of another compiler: as with TileLang's, nothing is launched."""

    def __init__(self, function: Any) -> None:
        self.fn = self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", "kernel")

    def __getitem__(self, grid: Any) -> Any:
        return _launch

    @property
    def arg_names(self) -> list[str]:
        """The names of the kernel's parameters, which tuners ask for."""
        return list(inspect.signature(self.fn).parameters)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise MissingPackageError("a kernel was called as a function, and its compiler is not installed")


class _Base:
    """A class of a missing package, for those that inherit from it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what the missing class takes."""


class _CompilerBase(_Base):
    """A class of another compiler, such as a tuner: what inherits from it is called like a kernel."""

    def __getitem__(self, grid: Any) -> Any:
        return _launch


def _launch(*args: Any, **kwargs: Any) -> None:
    for tell in _told:
        tell([*args, *kwargs.values()])


# What host code computes with, before anything of the package itself is needed.
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "triton.cdiv": lambda x, y: -(-x // y),
    "triton.next_power_of_2": lambda n: 1 << (n - 1).bit_length(),
    "triton.language.constexpr": lambda value: value,
}
_DECORATED = (types.FunctionType, type, staticmethod, classmethod)


class StandInFinder:
    """The last finder that Python asks, so that only what nobody else has comes here."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Implement `importlib.abc.MetaPathFinder`."""
        parent = name.rpartition(".")[0]
        if isinstance(sys.modules.get(parent), _StandIn):
            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        if parent or name in _REAL or name in sys.stdlib_module_names:
            return None
        frame = _importer(sys._getframe(1))
        if frame is None or not _is_own(frame.f_code.co_filename) or _is_expected(frame):
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        _used.setdefault(spec.name.partition(".")[0])
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Execute nothing."""


def is_stand_in(value: object) -> bool:
    return isinstance(value, (_StandIn, _Anything))


def install(launched: Callable[[Sequence[Any]], None] | None = None) -> None:
    """Replace from now on what is not installed.

    launched: is told of the arguments of a kernel of another compiler, which may write what it is given.
    """
    if launched is not None:
        _told.append(launched)
    if not any(isinstance(finder, StandInFinder) for finder in sys.meta_path):
        sys.meta_path.append(StandInFinder())


def told(failure: Failure) -> Failure:
    """Return the failure with the packages that were replaced, and how to mend it if it is for want of one."""
    if (found := _OF_PYTHON.search(failure.message)) and found[1] in sys.stdlib_module_names:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return _advised(failure, f"your files need a later Python than {version}: install tlcheck with that Python")
    if not _used:
        return failure
    named = [name for name in _used if name in failure.message]
    unsaid = [name for name in _used if name not in named]
    told = f" (not installed, and stood in for: {', '.join(unsaid)})" if unsaid else ""
    package = ", ".join(named) or f"what your kernels need of {', '.join(unsaid)}"
    advice = f"name {package} in `requirements` of [tool.tlcheck], then run `tlcheck toolchain install`"
    failure = _advised(failure, advice) if _OF_A_PACKAGE.search(failure.message) else failure
    return replace(failure, message=failure.message + told)


def _advised(failure: Failure, advice: str) -> Failure:
    return replace(failure, detail="\n".join(filter(None, (failure.detail, advice))), advice=advice)


def _importer(frame: types.FrameType | None) -> types.FrameType | None:
    """Return the frame that holds the import statement; None if a file only asks whether a package is installed."""
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code is importlib.util.find_spec.__code__:
            return None
        frame = frame.f_back
    return frame


def _is_own(file: str) -> bool:
    """Whether this is a user's file and no package's."""
    folders = [sysconfig.get_path("stdlib"), str(Path(__file__).parents[2]), *_package_folders()]
    return Path(file).is_file() and not any(file.startswith(folder + os.sep) for folder in folders)


@functools.cache
def _package_folders() -> tuple[str, ...]:
    found = [importlib.util.find_spec(name) for name in ("tilelang", "torch")]
    own = [str(Path(spec.origin).parents[1]) for spec in found if spec and spec.origin and "-packages" in spec.origin]
    return (*own, *(str(Path(spec.origin).parent) for spec in found if spec and spec.origin))


def _is_expected(frame: types.FrameType) -> bool:
    """Whether the import stands in a `try` that catches what a missing package raises."""
    try:
        tree = ast.parse(Path(frame.f_code.co_filename).read_bytes())
    except (OSError, SyntaxError):
        return False
    tries = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    return any(
        node.body[0].lineno <= frame.f_lineno <= (node.body[-1].end_lineno or 0) and _catches(node) for node in tries
    )


def _catches(node: ast.Try) -> bool:
    names = {name.id for handler in node.handlers if handler.type for name in ast.walk(handler.type) if _is_name(name)}  # type: ignore[attr-defined]
    return any(handler.type is None for handler in node.handlers) or bool(names & _CAUGHT)


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and hasattr(builtins, node.id)
