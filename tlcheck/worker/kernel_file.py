"""Importing the user's kernel file and looking things up in it."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import sys
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from tlcheck.case import Case
from tlcheck.worker import borrowed, kernel_forms, packages, standins
from tlcheck.worker.failures import RequestError


@cache
def load(path: str, pythonpath: tuple[str, ...]) -> ModuleType:
    """Import a file as Python would run it, once for all jobs of this process: its folder, then `pythonpath`, first
    on `sys.path`, its project last.

    A file in a package is imported as a part of it, so that its relative imports work. Packages that are not installed
    are stood in for. Raises what the file raises.
    """
    file = Path(path).resolve()
    if not file.is_file():
        raise RequestError(f"no such file: {path}")
    place = packages.place_of(file)
    name = place.name
    sys.path[:0] = [str(place.root), *pythonpath]
    sys.path += map(str, packages.project_folders(file))
    sys.argv = [str(file)]
    packages.import_straight()
    borrowed.install()
    standins.install()
    if "." in name:
        return importlib.import_module(name)
    if name in sys.modules:  # a kernel file called torch.py must not replace what is loaded
        name = f"kernel_file_{name}"
    spec = importlib.util.spec_from_file_location(name, file, loader=SourceFileLoader(name, str(file)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def declared_cases(module: ModuleType) -> dict[str, Case]:
    """The cases among the module's variables, in source order; one with two names counts under its first."""
    found: dict[str, Case] = {}
    for name, value in vars(module).items():
        if isinstance(value, Case) and not any(value is case for case in found.values()):
            found[name] = value
    return found


def kernel_names(module: ModuleType) -> list[str]:
    """Return what can surely be lowered: JIT functions and PrimFuncs that the file defines.

    A stand-in has every attribute, those of a kernel too.
    """
    named = [(name, value) for name, value in vars(module).items() if not name.startswith("_")]
    return [name for name, value in named if not standins.is_stand_in(value) and kernel_forms.is_kernel(value)]


def builder_names(module: ModuleType) -> list[str]:
    """Return what may be lowered: also functions of the file that define a PrimFunc and that nothing decorates."""
    own = [(name, value) for name, value in vars(module).items() if _is_function(value) and _is_own(module, value)]
    plain = [name for name, value in own if not name.startswith("_") and "prim_func" in value.__code__.co_names]
    return list(dict.fromkeys([*kernel_names(module), *plain]))


def lookup(module: ModuleType, name: str) -> Any:
    """The case, kernel or function of that name. Raises RequestError with what the user may have meant."""
    value = vars(module).get(name)
    if isinstance(value, Case) or kernel_forms.is_kernel(value) or _is_function(value):
        return value
    functions = [key for key, other in vars(module).items() if _is_function(other) and _is_own(module, other)]
    known = list(dict.fromkeys([*declared_cases(module), *kernel_names(module), *functions]))
    if name in vars(module):
        problem = f"{name!r} is neither a case nor a kernel but a {type(value).__name__}"
    else:
        problem = f"no {name!r} in {Path(str(module.__file__)).name}"
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; it has: {', '.join(known) or 'no kernel'}"
    raise RequestError(problem + hint)


def place(module: ModuleType, path: str, name: str, kernel: Any) -> dict[str, Any]:
    """Return where a kernel of a file is defined: `file`, as the user named it (`path`) if it is theirs, and its first
    `line`.

    name: of the case or kernel in that file.
    The line is that of its code object, else of the statement that binds its name, else 1.
    """
    code = kernel_forms.code_of(kernel)
    if code is not None:
        own = Path(code.co_filename).resolve() == Path(path).resolve()
        return {"file": path if own else code.co_filename, "line": code.co_firstlineno}
    tree = ast.parse(Path(str(module.__file__)).read_text())
    names = [key for key, value in vars(module).items() if value is kernel] or [name]
    lines = [statement.lineno for statement in tree.body if any(_binds(statement, key) for key in names)]
    return {"file": path, "line": lines[0] if lines else 1}


def _binds(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return statement.name == name
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _is_function(value: Any) -> bool:
    return callable(value) and hasattr(value, "__code__")


def _is_own(module: ModuleType, value: Any) -> bool:
    return getattr(value, "__module__", None) == module.__name__
