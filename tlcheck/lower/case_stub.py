"""The stub of a case with inputs and a reference, from the text of a kernel file: TileLang is not imported for it."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.worker import packages

_STUB = '''"""A reference for {name} of {file}: what the kernel is meant to compute."""

{imports}


def inputs(args, generator, device):
    """Return the tensors that the kernel is called with, in order, outputs included."""
{inputs}


def reference(args, {parameters}):
    """Return each output by its name, computed in another way than the kernel does, in float64."""
    raise NotImplementedError("fill in the reference of {name}")
    return {{"{output}": {output}.double()}}


{case}
'''


@dataclass(frozen=True)
class TensorParameter:
    """A parameter of the kernel. shape: as Python source. dtype: empty where it is no literal and no argument."""

    name: str
    shape: str
    dtype: str


def stub_of(file: Path, name: str, given: Mapping[str, str]) -> str:
    """The text of a case file for a kernel function, or a declared case, of a file. given: build arguments, as Python
    source.

    Raises UsageError for what is not there and for arguments that are missing.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    case = _declared(tree, name)
    kernel = name if case is None else _kernel_of(case)
    if kernel not in functions:
        close = difflib.get_close_matches(name, functions, 1)
        raise UsageError(f"no kernel function {kernel!r} in {file}" + (f"; did you mean {close[0]}?" if close else ""))
    function = functions[kernel]
    parameters = list(_parameters(function))
    if not parameters:
        raise UsageError(f"{file}::{kernel}: no T.prim_func with tensors stands in it")
    place = packages.place_of(file.resolve())
    module = f".{file.stem}" if "." in place.name else place.name
    return _STUB.format(
        name=name,
        file=file.name,
        imports="\n".join(_imports(module, name, case is not None)),
        inputs="\n".join(_inputs(parameters, {a.arg for a in function.args.args})),
        parameters=", ".join(p.name for p in parameters),
        output=parameters[-1].name,
        case=_case(name, function, given, case is not None),
    )


def _declared(tree: ast.Module, name: str) -> ast.Call | None:
    """The `Case(...)` that the file binds to a name, if it does."""
    for node in tree.body:
        is_bound = isinstance(node, ast.Assign) and any(ast.unparse(target) == name for target in node.targets)
        if isinstance(node, ast.Assign) and is_bound and isinstance(node.value, ast.Call):
            return node.value
    return None


def _kernel_of(case: ast.Call) -> str:
    given = [*case.args[:1], *(k.value for k in case.keywords if k.arg == "kernel")]
    return next((ast.unparse(value) for value in given), "")


def _parameters(function: ast.FunctionDef) -> Iterator[TensorParameter]:
    """The tensors of the first prim_func inside."""
    inner = next((n for n in ast.walk(function) if isinstance(n, ast.FunctionDef) and _is_kernel(n)), None)
    for argument in [] if inner is None else inner.args.args:
        made = argument.annotation
        if isinstance(made, ast.Call) and ast.unparse(made.func).endswith(("Tensor", "Buffer")) and made.args:
            dtype = made.args[1] if len(made.args) > 1 else next((k.value for k in made.keywords), None)
            yield TensorParameter(argument.arg, ast.unparse(made.args[0]), "" if dtype is None else ast.unparse(dtype))


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith("prim_func") for decorator in function.decorator_list)


def _imports(module: str, name: str, is_case: bool) -> Iterator[str]:
    yield from ("from dataclasses import replace", "") if is_case else ()
    yield from ("import torch", f"from {module} import {name}")
    yield from () if is_case else ("from tlcheck.case import Case",)


def _inputs(parameters: list[TensorParameter], arguments: set[str]) -> Iterator[str]:
    """Statements that draw a tensor for each parameter. A size that is none of the arguments is to be filled in."""
    texts = [text for parameter in parameters for text in (parameter.shape, parameter.dtype)]
    wanted = {n.id for text in texts for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    yield from (f'    {name} = args["{name}"]' for name in sorted(wanted & arguments))
    yield from (f"    {name} = ...  # fill in" for name in sorted(wanted - arguments - {"T"}))
    yield "    return ("
    for parameter in parameters:
        shape = parameter.shape if parameter.shape.startswith(("(", "[")) else f"({parameter.shape},)"
        dtype = _torch_dtype(parameter.dtype)
        yield f"        torch.randn({shape}, generator=generator, device=device).to({dtype}),  # {parameter.name}"
    yield "    )"


def _torch_dtype(source: str) -> str:
    """Write a dtype as Python source."""
    named = ast.parse(source or '"float32"', mode="eval").body
    if isinstance(named, ast.Constant) and isinstance(named.value, str):
        return f"torch.{named.value}"
    return f"torch.{source.removeprefix('T.')}" if source.startswith("T.") else f"getattr(torch, {source})"


def _case(name: str, function: ast.FunctionDef, given: Mapping[str, str], is_case: bool) -> str:
    """The statement that declares the case. Raises UsageError for build arguments that nothing says."""
    if is_case:
        return f"{name}_referenced = replace({name}, inputs=inputs, reference=reference)"
    a = function.args
    defaults = dict(zip(reversed([p.arg for p in a.args]), map(ast.unparse, reversed(a.defaults)), strict=False))
    defaults |= {p.arg: ast.unparse(d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}
    names = [p.arg for p in (*a.args, *a.kwonlyargs)]
    if unknown := [key for key in given if key not in names]:
        raise UsageError(f"{name} has no build argument {unknown[0]!r}; it takes {', '.join(names) or 'none'}")
    if missing := [key for key in names if key not in {**defaults, **given}]:
        raise UsageError(f"{name} needs --arg {' --arg '.join(f'{key}=...' for key in missing)}")
    args = "".join(f'\n        "{key}": {({**defaults, **given})[key]},' for key in names)
    inside = f"args={{{args}\n    }}" if args else "args={}"
    return f"{name}_case = Case(\n    {name},\n    {inside},\n    inputs=inputs,\n    reference=reference,\n)"
