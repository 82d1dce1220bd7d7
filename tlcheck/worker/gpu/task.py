"""What the controller asks a process on the device for: one JSON file in, one JSON file out.

Shared by both sides: standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tlcheck.files import put


@dataclass(frozen=True)
class Rounds:
    """Taking turns with another process on one GPU. turns: a file with the number of rounds done, of both together.

    place: 0 for the process that begins, else 1. count: rounds of each.
    """

    turns: str
    place: int
    count: int


@dataclass(frozen=True)
class Task:
    """One case on one device.

    kind: `device` (describe the device), `verify`, `launch` (once, without comparing: for compute-sanitizer), `time`,
        and for an execution on the CPU `inputs` and `refer` (compare what it left with the reference).
    file, name, args, pythonpath: as in `tlcheck.worker.protocol.Job`. device: as torch names it.
    output: where the answer goes. lock: who holds this file's lock has the GPU.
    limit: wall seconds for what happens on the GPU.
    seeds: the sets of inputs. repeats: runs of each. exact: on inputs with exact sums.
    poisoned: parameters that the kernel writes without reading them. updated: those whose content before matters.
    float_atomics: whether the order of floating-point additions may differ.
    watched: parameter -> offsets of elements to be reported as they came out.
    record, replay: folders of traces; empty for none.
    folder: of an execution's files. names: of the parameters. executed: folders of the sets of inputs that were
        executed, and whether all blocks were.
    """

    kind: str
    output: str
    file: str = ""
    name: str = ""
    args: Mapping[str, str] = field(default_factory=dict)
    pythonpath: tuple[str, ...] = ()
    device: str = "cuda"
    lock: str = ""
    limit: float = 120.0
    seeds: tuple[int, ...] = (0,)
    repeats: int = 3
    exact: bool = False
    poisoned: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    float_atomics: bool = False
    watched: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    record: str = ""
    replay: str = ""
    rounds: Rounds | None = None
    folder: str = ""
    names: tuple[str, ...] = ()
    executed: Mapping[str, bool] = field(default_factory=dict)


def write(task: Task, file: Path) -> None:
    file.write_text(json.dumps(asdict(task)))


def read(file: Path) -> Task:
    fields = json.loads(file.read_text())
    rounds = fields.pop("rounds")
    for name in ("pythonpath", "seeds", "poisoned", "updated", "names"):
        fields[name] = tuple(fields[name])
    return Task(**fields, rounds=Rounds(**rounds) if rounds else None)


def answer(task: Task, content: Mapping[str, Any]) -> None:
    """Write the answer so far: what a process that dies has written last tells where it did."""
    put(Path(task.output), json.dumps(content))
