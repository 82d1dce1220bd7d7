"""Find where a kernel is written: in a case's file, in the file that a case file imports, or in a script."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.lower.runs import Lowered
from tlcheck.remedy.python_edits import nodes


@dataclass(frozen=True)
class KernelSource:
    """A record of where a kernel is written. function: that makes it; args: of it, as Python source.

    name: by which the file of its case makes it, with any toolchain.
    """

    file: Path
    function: str
    args: Mapping[str, str]
    name: str


def source_of(lowered: Lowered) -> KernelSource:
    """Return where a kernel is written. Raises UsageError for what has no source to reduce."""
    run, origin = lowered.run, lowered.origin
    file = Path(run.file)
    if lowered.saved:
        raise UsageError(f"{run.file}: a saved snapshot has no source to reduce: name its kernel, FILE::NAME")
    if origin is not None and not origin.module:
        return KernelSource(file, origin.function, origin.args, run.name)
    if origin is not None or not run.name:
        raise UsageError(f"{run.case}: its kernel is made in another file: name it there, FILE::NAME")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    match _kernel_of_case(tree, run.name):
        case ast.Name(function):
            return KernelSource(file, function, run.args, run.name)
        case ast.Attribute(ast.Name(module), function):
            for folder in _folders(file, tree):
                if (written := folder / f"{module}.py").is_file():
                    return KernelSource(written, function, run.args, run.name)
    function = function_that_makes(tree, run.name)
    return KernelSource(file, function, run.args, function)


def function_that_makes(tree: ast.Module, name: str) -> str:
    """Return the only function that holds a kernel, as a script compiles it; else the name itself."""
    functions = [stmt for stmt in tree.body if isinstance(stmt, ast.FunctionDef)]
    makes = [f.name for f in functions if f.name == name or any(n.name == name for n in nodes(f, ast.FunctionDef))]
    return makes[0] if len(makes) == 1 else name


def _kernel_of_case(tree: ast.Module, name: str) -> ast.expr | None:
    """The kernel of `name = Case(kernel, ...)`."""
    for stmt in tree.body:
        match stmt:
            case ast.Assign([ast.Name(bound)], ast.Call(_, args, keywords)) if bound == name:
                return next(iter([*args[:1], *(k.value for k in keywords if k.arg == "kernel")]), None)
    return None


def _folders(file: Path, tree: ast.Module) -> Iterator[Path]:
    """The folders of a case file's imports: its own, and those that it names as `tlcheck capture` writes them."""
    yield file.parent
    for stmt in tree.body:
        if isinstance(stmt, ast.Assign) and "sys.path" in ast.unparse(stmt.targets[0]):
            yield from (file.parent / text.value for text in nodes(stmt, ast.Constant) if isinstance(text.value, str))
