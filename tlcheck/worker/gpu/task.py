"""The controller's requests to a process on the device: one JSON file in, one JSON file out.

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
class DeviceTask:
    """Describe the device. output: where the answer goes. ceilings: whether its speeds are measured, too."""

    output: str
    ceilings: bool = False


@dataclass(frozen=True, kw_only=True)
class CaseTask:
    """The fields that all tasks of a case have.

    output: where the answer goes. file, name, args, pythonpath: as in `tlcheck.worker.jobs`. device: as torch names it.
    processor: seconds of the processor after which the process ends; 0 for any.
    """

    output: str
    file: str
    name: str
    args: Mapping[str, str] = field(default_factory=dict)
    pythonpath: tuple[str, ...] = ()
    device: str = "cuda"
    processor: float = 0.0


@dataclass(frozen=True, kw_only=True)
class GpuTask(CaseTask):
    """The fields that all tasks that launch a kernel have.

    pass_configs: as in `tlcheck.worker.jobs`. lock: who holds this file's lock has the GPU; empty if nobody else wants
    it. limit: wall seconds on the GPU.
    """

    pass_configs: Mapping[str, str] = field(default_factory=dict)
    lock: str = ""
    limit: float = 120.0


@dataclass(frozen=True, kw_only=True)
class VerifyTask(GpuTask):
    """Run the kernel on each set of inputs, and compare.

    seeds: the sets of inputs. repeats: runs of each. exact: on inputs with exact sums, too.
    poisoned: parameters that the kernel writes without reading them. updated: those whose content before matters.
    scratch: those that it writes and reads, and whose content before does not matter, as the case says.
    float_atomics: whether the order of floating-point additions may differ.
    watched: parameter -> offsets of elements to be reported as they came out.
    record, replay: folders of traces; empty for none.
    """

    seeds: tuple[int, ...] = (0,)
    repeats: int = 3
    exact: bool = False
    poisoned: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    float_atomics: bool = False
    watched: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    record: str = ""
    replay: str = ""


@dataclass(frozen=True, kw_only=True)
class LaunchTask(GpuTask):
    """Launch the kernel once, without comparing: for compute-sanitizer."""


@dataclass(frozen=True, kw_only=True)
class TimeTask(GpuTask):
    """Time the kernel: with its baselines, or in turns with another process."""

    rounds: Rounds | None = None


@dataclass(frozen=True, kw_only=True)
class InputsTask(CaseTask):
    """Write the case's inputs, for an execution on the CPU. folder: where to; seeds, exact: as in `VerifyTask`."""

    folder: str
    seeds: tuple[int, ...]
    exact: bool = False


@dataclass(frozen=True, kw_only=True)
class ReferTask(CaseTask):
    """Compare what executions on the CPU have left with the reference.

    folder: of their inputs and of what they left. names: of the parameters. executed: folders of the sets of inputs
    that were executed, and whether all blocks were. The others: as in `VerifyTask`.
    """

    folder: str
    names: tuple[str, ...]
    executed: Mapping[str, bool]
    seeds: tuple[int, ...]
    exact: bool = False
    poisoned: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    float_atomics: bool = False


Task = DeviceTask | VerifyTask | LaunchTask | TimeTask | InputsTask | ReferTask

_KINDS: Mapping[str, type[Task]] = {
    "device": DeviceTask,
    "verify": VerifyTask,
    "launch": LaunchTask,
    "time": TimeTask,
    "inputs": InputsTask,
    "refer": ReferTask,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def write(task: Task, file: Path) -> None:
    file.write_text(json.dumps({"kind": _NAMES[type(task)], **asdict(task)}))


def read(file: Path) -> Task:
    content: dict[str, Any] = json.loads(file.read_text())
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
    if fields.get("rounds"):
        fields["rounds"] = Rounds(**fields["rounds"])
    return _KINDS[fields.pop("kind")](**fields)


def answer(task: Task, content: Mapping[str, Any]) -> None:
    """Write the answer so far: what a process that dies has written last tells where it did."""
    put(Path(task.output), json.dumps(content))
