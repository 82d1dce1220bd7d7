"""`[tool.tlcheck]` of the project's pyproject.toml."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tlcheck.errors import UsageError, did_you_mean
from tlcheck.snapshot.checkpoint import Checkpoint

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


ACCEPTANCE = "tlcheck-accept.toml"


@dataclass(frozen=True)
class Config:
    """The settings that a project makes once; relative paths count from its pyproject.toml."""

    file: Path | None = None  # where it was read, None if there is no such table
    paths: tuple[Path, ...] = ()  # the kernels to check when none are given
    arch: tuple[str, ...] = ()  # instead of the targets that the cases declare
    toolchain: str = "pinned"
    requirements: tuple[str, ...] = ()  # installed into each toolchain
    pythonpath: tuple[Path, ...] = ()  # where the kernels' own imports are found
    acceptance: Path | None = None  # the file of accepted findings; None if there is none
    golden: str = "golden"  # the folder of approved goldens, from the project's
    golden_checkpoints: tuple[str, ...] = (Checkpoint.LOWER_TILE_OP,)  # those whose TIR goldens hold
    golden_cost: bool = False  # whether they hold what the kernel costs too
    execute: bool | None = None  # whether kernels are executed on the CPU; None: as the command does by itself
    blocks: int = 4  # that are executed at most
    seeds: int = 2  # sets of inputs
    budget: str = ""  # of an execution, see `execute.worlds.budget`; the usual one where empty
    slower_share: float = 0.02  # of a kernel's work: what has less is no `slower-risk` by its cost
    slower_ratio: float = 1.1  # how many times the cost of before

    def place(self, key: str) -> str:
        """Return where a setting is written, `toolchain in pyproject.toml:12`; empty where it is not."""
        if self.file is None:
            return ""
        line = _line(self.file, key)
        return f"{key} in {os.path.relpath(self.file)}:{line}" if line else ""


@contextmanager
def naming(config: Config | None, key: str) -> Iterator[None]:
    """Add to a UsageError which setting it is about. config: None where it is about none."""
    try:
        yield
    except UsageError as error:
        place = config.place(key) if config is not None else ""
        raise UsageError(f"{error} ({place})" if place else str(error)) from error


def read_config(start: Path) -> Config:
    """The table of the nearest pyproject.toml at or above `start` that has one. Raises UsageError if it is wrong."""
    for folder in [start.absolute(), *start.absolute().parents]:
        file = folder / "pyproject.toml"
        if file.is_file() and (table := _table(file)) is not None:
            return _config(file, table)
    return Config()


def _line(file: Path, key: str) -> int:
    """The line of a key of the table; 0 where it has none of its own."""
    inside = False
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("["):
            inside = re.match(r"\s*\[\s*tool\s*\.\s*tlcheck\s*\]", line) is not None
        elif inside and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
            return number
    return 0


def _where(file: Path, key: str) -> str:
    line = _line(file, key)
    return f"{file}:{line}" if line else str(file)


def _table(file: Path) -> Any:
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: {error}") from error
    return tool.get("tlcheck") if isinstance(tool, dict) else None


def _config(file: Path, table: Any) -> Config:
    known = [field.name for field in fields(Config) if field.name != "file"]
    if not isinstance(table, dict):
        raise UsageError(f"{file}: tool.tlcheck must be a table")
    if unknown := sorted(set(table) - set(known)):
        hint = did_you_mean(unknown[0], known) or f" (known: {', '.join(known)})"
        raise UsageError(f"{_where(file, unknown[0])}: unknown key {unknown[0]!r} in [tool.tlcheck]{hint}")
    return Config(
        file=file,
        paths=_paths(file, table, "paths"),
        arch=_strings(file, table, "arch"),
        toolchain=_toolchain(file, table),
        requirements=_requirements(file, table),
        pythonpath=_folders(file, table, "pythonpath"),
        acceptance=_acceptance(file, table),
        golden=_string(file, table, "golden", Config.golden),
        golden_checkpoints=_checkpoints(file, table),
        golden_cost=_flag(file, table, "golden_cost") or False,
        execute=_flag(file, table, "execute"),
        blocks=_count(file, table, "blocks", Config.blocks),
        seeds=_count(file, table, "seeds", Config.seeds),
        budget=_budget(file, table),
        slower_share=_number(file, table, "slower_share", Config.slower_share),
        slower_ratio=_number(file, table, "slower_ratio", Config.slower_ratio),
    )


def _toolchain(file: Path, table: dict[str, Any]) -> str:
    """Read what is deployed; a relative path that is there counts from the project, whatever the working folder."""
    name = _string(file, table, "toolchain", Config.toolchain)
    path = file.parent / Path(name).expanduser()
    is_path = "/" in name or name.endswith(".whl")  # a folder may be called as a release is
    return str(path) if is_path and path.exists() else name


def _checkpoints(file: Path, table: dict[str, Any]) -> tuple[str, ...]:
    found = _strings(file, table, "golden_checkpoints") or Config.golden_checkpoints
    if unknown := [name for name in found if name not in list(Checkpoint)]:
        raise UsageError(
            f"{_where(file, 'golden_checkpoints')}: golden_checkpoints: no checkpoint {unknown[0]!r}: "
            f"there are {', '.join(Checkpoint)}"
        )
    return found


def _acceptance(file: Path, table: dict[str, Any]) -> Path | None:
    """The file that is named, else the usual one if it is there."""
    if "acceptance" in table:
        return file.parent / _string(file, table, "acceptance", "")
    usual = file.with_name(ACCEPTANCE)
    return usual if usual.is_file() else None


def _flag(file: Path, table: dict[str, Any], key: str) -> bool | None:
    value = table.get(key)
    if value is not None and not isinstance(value, bool):
        raise UsageError(f"{_where(file, key)}: {key} in [tool.tlcheck] must be true or false, not {value!r}")
    return value


def _count(file: Path, table: dict[str, Any], key: str, default: int) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{_where(file, key)}: {key} in [tool.tlcheck] must be a positive number, not {value!r}")
    return value


def _number(file: Path, table: dict[str, Any], key: str, default: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise UsageError(f"{_where(file, key)}: {key} in [tool.tlcheck] must be a number from 0 on, not {value!r}")
    return float(value)


def _budget(file: Path, table: dict[str, Any]) -> str:
    """Statements, and after a comma bytes; a number alone is statements."""
    value = table.get("budget", "")
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        wanted = 'must be such as 4000000 or "4000000,8G"'
        raise UsageError(f"{_where(file, 'budget')}: budget in [tool.tlcheck] {wanted}, not {value!r}")
    return str(value)


def _string(file: Path, table: dict[str, Any], key: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise UsageError(f"{_where(file, key)}: {key} in [tool.tlcheck] must be a string, not {value!r}")
    return value


def _strings(file: Path, table: dict[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{_where(file, key)}: {key} in [tool.tlcheck] must be a list of strings, not {value!r}")
    return tuple(value)


def _requirements(file: Path, table: dict[str, Any]) -> tuple[str, ...]:
    """Return what pip is given: names with versions; paths and addresses are pip's to judge."""
    from packaging.requirements import InvalidRequirement, Requirement  # 15 ms, and few projects have any

    found = _strings(file, table, "requirements")
    for item in found:
        try:
            Requirement(item if "/" not in item else "path")
        except InvalidRequirement as error:
            reason = str(error).partition("\n")[0]
            raise UsageError(f"{_where(file, 'requirements')}: requirements: {item!r}: {reason}") from error
    return found


def _folders(file: Path, table: dict[str, Any], key: str) -> tuple[Path, ...]:
    found = _paths(file, table, key)
    if missing := [path for path in found if not path.is_dir()]:
        raise UsageError(f"{_where(file, key)}: {key}: no folder {missing[0]}")
    return found


def _paths(file: Path, table: dict[str, Any], key: str) -> tuple[Path, ...]:
    return tuple(file.parent / item for item in _strings(file, table, key))
