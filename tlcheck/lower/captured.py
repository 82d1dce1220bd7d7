"""Captured kernels as files that a user can keep: snapshots, recorded calls, case files with the arguments bound."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.filesize import decimal

from tlcheck.errors import UsageError
from tlcheck.files import replace_all, save
from tlcheck.lower.runs import CapturedOrigin, Lowered, Position, RecordedCall, Run, unique_name
from tlcheck.worker import packages

_HEAD = '''"""Kernels that {script} compiles, captured by `tlcheck capture`: yours to edit.

{advice}
"""

import sys
{import_module}from pathlib import Path
{torch}
{paths}

{imports}
from tlcheck.case import Case
'''
_CASE = """
{name} = Case(
    {module}.{function},
    args={{{args}}},
    targets={targets},
{more}    reference=None,
)
"""
_ADVICE = "Give a case its `inputs` and `reference` to have `tlcheck run` compare it with torch."
_ADVICE_RECORDED = """\
`tlcheck run` repeats a `recorded` call and compares what the kernel leaves. Where the tolerance has to be wider, say
with `terms` how many terms are summed for an element; `inputs` and `reference` compare it with torch as well."""
_RECORDED = ".recorded.pt"
_TAKEN = ("sys", "import_module", "Path", "torch", "Case")  # names that a case file binds
_NO_CASE = "no case can build it: its builder is inside a function, or takes more than literals"


def write(
    found: Sequence[Lowered], output: Path, *, force: bool, snapshots: bool = True, pythonpath: Sequence[str] = ()
) -> list[tuple[Lowered, str]]:
    """Write what was captured; each with the names of its files. Raises UsageError for case files that are there.

    snapshots: whether to keep these, and recorded calls, beside the case files. pythonpath: where the kernels' imports
    were found, besides the scripts' own folders.
    """
    scripts: dict[str, list[Lowered]] = {}
    for lowered in found:
        scripts.setdefault(lowered.run.file, []).append(lowered)
    names = _file_names(found)
    files: dict[Path, str] = {}
    named: list[tuple[Lowered, str]] = []
    for script, kernels in scripts.items():
        cases, text = _case_file(script, kernels, names, _paths(script, pythonpath, output))
        file = output / f"{unique_name(f'{Path(script).stem}_cases', {f.stem for f in files})}.py"
        if text:
            files[file] = text
        for lowered in kernels:
            place = lowered.run.position
            case = f"{file.name}::{cases[place]}" if place in cases else _without_case(lowered.run)
            kept = [f"{names[place]}.snapshot.json"] if snapshots else []
            words = (*kept, case, *_recorded_in_words(lowered.recorded))
            named.append((lowered, ", ".join(words) if lowered.snapshot else ""))
    there = [str(file) for file in files if file.exists()]
    if there and not force:
        raise UsageError(f"{there[0]} is there, and may be edited: --force overwrites it")
    replace_all(files)
    for lowered in found if snapshots else ():
        _save(lowered, output / names[lowered.run.position])
    return named


def _without_case(run: Run) -> str:
    """Say why a kernel has no case. One that was built from its file, not by a script, needs none."""
    return _NO_CASE if run.is_captured else f"needs no case: {run.case} builds it"


def _file_names(found: Sequence[Lowered]) -> dict[Position, str]:
    """The names of a kernel's files, without their endings."""
    names: dict[Position, str] = {}
    for lowered in found:
        names[lowered.run.position] = unique_name(lowered.run.slug, set(names.values()))
    return names


def _save(lowered: Lowered, stem: Path) -> None:
    """A snapshot, and a recorded call, which may be large."""
    if lowered.snapshot is not None:
        save(Path(f"{stem}.snapshot.json"), lowered.snapshot.read_bytes())
    if lowered.recorded is not None and lowered.recorded.file is not None:
        shutil.move(lowered.recorded.file, f"{stem}{_RECORDED}")


def _recorded_in_words(recorded: RecordedCall | None) -> Sequence[str]:
    if recorded is None:
        return ()
    if recorded.file is None:
        return (f"no call recorded: {recorded.missing}",)
    return (f"a call recorded ({decimal(recorded.size)})",)


def _case_file(
    script: str, kernels: Sequence[Lowered], files: Mapping[Position, str], paths: str
) -> tuple[dict[Position, str], str]:
    """The names of the cases, and the file's text, empty if it would have no case.

    A kernel that was captured for several archs is one case. files: see `_file_names`. paths: see `_paths`.
    """
    same: dict[str, list[Lowered]] = {}
    for lowered in kernels:
        if lowered.origin is not None and lowered.snapshot is not None:
            call = f"{lowered.origin.module}.{lowered.origin.function}({sorted(lowered.origin.args.items())})"
            same.setdefault(call, []).append(lowered)
    modules = _module_names(kernels, script)
    names: dict[Position, str] = {}
    cases: list[str] = []
    for group in same.values():
        origin = group[0].origin
        assert origin is not None
        name = unique_name(f"{origin.function}_case", {*names.values(), *modules.values()}, "_")
        names |= dict.fromkeys((lowered.run.position for lowered in group), name)
        cases.append(_case(name, group, modules[_module(origin, script)], files))
    return names, _head(script, kernels, modules, paths) + "\n".join(cases) if cases else ""


def _paths(script: str, pythonpath: Sequence[str], output: Path) -> str:
    """Python source that finds the script's imports from the case file's folder, whatever else is on `sys.path`."""
    first, last = packages.import_path(Path(script))
    lines: list[str] = []
    told: set[str] = set()
    for place, folders in (("[:0] ", [*map(str, first), *pythonpath]), (" +", last)):
        relative = [os.path.relpath(folder, output.resolve()) for folder in folders]
        if new := [folder for folder in dict.fromkeys(relative) if folder not in told]:
            told.update(new)
            lines.append(f"sys.path{place}= [str(Path(__file__).parent / folder) for folder in {_tuple(new)}]")
    return "\n".join(lines)


def _head(script: str, kernels: Sequence[Lowered], modules: Mapping[str, str], paths: str) -> str:
    """modules: the name of each in the case file."""
    origins = [lowered.origin for lowered in kernels if lowered.origin is not None and lowered.snapshot is not None]
    torch = any("torch." in source for origin in origins for source in origin.args.values())
    recorded = any(lowered.recorded is not None and lowered.recorded.file is not None for lowered in kernels)
    return _HEAD.format(
        script=Path(script).name,
        advice=_ADVICE_RECORDED if recorded else _ADVICE,
        torch="\nimport torch\n" if torch else "",
        paths=paths,
        import_module="from importlib import import_module\n" if any("." in module for module in modules) else "",
        imports="\n".join(_import(module, name) for module, name in modules.items()),
    )


def _module_names(kernels: Sequence[Lowered], script: str) -> dict[str, str]:
    """Return each module that kernels are imported from, and its name in the case file."""
    origins = [lowered.origin for lowered in kernels if lowered.origin is not None and lowered.snapshot is not None]
    names: dict[str, str] = {}
    for module in sorted({_module(origin, script) for origin in origins}):
        names[module] = unique_name(module.rpartition(".")[2], {*_TAKEN, *names.values()}, "_")
    return names


def _import(module: str, name: str) -> str:
    """Write the import of a module. `import a.b` finds a function `b` of package `a`, if it has one, instead."""
    if "." in module:
        return f'{name} = import_module("{module}")'
    return f"import {module}" + (f" as {name}" if name != module else "")


def _case(name: str, group: Sequence[Lowered], module: str, files: Mapping[Position, str]) -> str:
    """group: one kernel for each arch. module: the name of its module in the case file."""
    first = group[0]
    assert first.origin is not None
    more = []
    if first.recorded is not None and first.recorded.file is not None:
        more.append(f"recorded={_quoted(files[first.run.position] + _RECORDED)},")
        more += [f"updates={_tuple(first.recorded.updates)},"] if first.recorded.updates else []
    return _CASE.format(
        name=name,
        module=module,
        function=first.origin.function,
        args=", ".join(f'"{key}": {source}' for key, source in first.origin.args.items()),
        targets=_tuple(dict.fromkeys(lowered.run.target for lowered in group)),
        more="".join(f"    {line}\n" for line in more),
    )


def _tuple(texts: Iterable[str]) -> str:
    """Write a tuple as Python source, in the way that formatters have it."""
    quoted = [_quoted(text) for text in texts]
    return f"({quoted[0]},)" if len(quoted) == 1 else f"({', '.join(quoted)})"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _module(origin: CapturedOrigin, script: str) -> str:
    """The module that a kernel is imported from; a script with relative imports is a part of its package."""
    place = packages.place_of(Path(script))
    return origin.module or (place.name if place.relative else re.sub(r"\W", "_", place.name.rpartition(".")[2]))
