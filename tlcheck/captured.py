"""Captured kernels as files that a user can keep: snapshots, and case files with the arguments bound."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.runs import Lowered, Origin, unique_name

_HEAD = '''"""Kernels that {script} compiles, captured by `tlcheck capture`: yours to edit.

Give a case its `inputs` and `reference` to have `tlcheck run` compare it with torch.
"""

import sys
from pathlib import Path
{torch}
sys.path.insert(0, str(Path(__file__).parent / {folder!r}))

{imports}
from tlcheck.case import Case
'''
_CASE = """
{name} = Case(
    {module}.{function},
    args={{{args}}},
    targets={targets!r},
    reference=None,
)
"""


def write(found: Sequence[Lowered], output: Path, *, force: bool) -> list[tuple[Lowered, str]]:
    """Write what was captured; each with the names of its files. Raises UsageError for case files that are there."""
    scripts: dict[str, list[Lowered]] = {}
    for lowered in found:
        scripts.setdefault(lowered.run.file, []).append(lowered)
    files: dict[Path, str] = {}
    saved: set[str] = set()
    written: list[tuple[Lowered, str]] = []
    for script, kernels in scripts.items():
        names, text = _case_file(script, kernels, output)
        file = output / f"{unique_name(f'{Path(script).stem}_cases', {f.stem for f in files})}.py"
        if text:
            files[file] = text
        for number, lowered in enumerate(kernels):
            case = f"{file.name}::{names[number]}" if number in names else "no case file can make it again"
            written.append((lowered, f"{_save(lowered, output, saved)}, {case}" if lowered.snapshot else ""))
    _write(files, force=force)
    return written


def _write(files: dict[Path, str], *, force: bool) -> None:
    there = [str(file) for file in files if file.exists()]
    if there and not force:
        raise UsageError(f"{there[0]} is there, and may be edited: --force overwrites it")
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")


def _save(lowered: Lowered, output: Path, saved: set[str]) -> str:
    name = unique_name(lowered.run.slug, saved)
    saved.add(name)
    assert lowered.snapshot is not None
    shutil.copyfile(lowered.snapshot, output / f"{name}.snapshot.json")
    return f"{name}.snapshot.json"


def _case_file(script: str, kernels: Sequence[Lowered], output: Path) -> tuple[dict[int, str], str]:
    """The names of the cases by the kernels' places, and the file's text, empty if it would have no case.

    A kernel that was captured for several archs is one case.
    """
    origins: dict[str, tuple[Origin, list[str]]] = {}
    places: dict[int, str] = {}
    for place, lowered in enumerate(kernels):
        if lowered.origin is not None and lowered.snapshot is not None:
            entry = origins.setdefault(_call(lowered.origin), (lowered.origin, []))
            entry[1].append(lowered.run.target)
            places[place] = _call(lowered.origin)
    names: dict[str, str] = {}
    for key, (origin, _) in origins.items():
        names[key] = unique_name(f"{origin.function}_case", set(names.values())).replace("-", "_")
    cases = [_case(names[key], origin, archs, script) for key, (origin, archs) in origins.items()]
    text = _head(script, [origin for origin, _ in origins.values()], output) + "\n".join(cases) if cases else ""
    return {place: names[key] for place, key in places.items()}, text


def _head(script: str, origins: Sequence[Origin], output: Path) -> str:
    modules = sorted({_module(origin, script) for origin in origins})
    torch = any("torch." in source for origin in origins for source in origin.args.values())
    folder = os.path.relpath(Path(script).resolve().parent, output.resolve())
    imports = "\n".join(f"import {module}" for module in modules)
    lines = "\nimport torch\n" if torch else ""
    return _HEAD.format(script=Path(script).name, torch=lines, folder=folder, imports=imports)


def _case(name: str, origin: Origin, archs: Sequence[str], script: str) -> str:
    args = ", ".join(f'"{key}": {source}' for key, source in origin.args.items())
    targets = tuple(dict.fromkeys(archs))
    return _CASE.format(name=name, module=_module(origin, script), function=origin.function, args=args, targets=targets)


def _module(origin: Origin, script: str) -> str:
    return origin.module or re.sub(r"\W", "_", Path(script).stem)


def _call(origin: Origin) -> str:
    return f"{origin.module}.{origin.function}({sorted(origin.args.items())})"
