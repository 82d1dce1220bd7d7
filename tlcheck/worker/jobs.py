"""The jobs of a worker, a dataclass for each kind. Shared by both sides: standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any

from tlcheck.targets.lookup import USUAL


@dataclass(frozen=True)
class FileJob:
    """The fields that all jobs have.

    file: kernel file. arch: of the device that the kernel believes to run on.
    timeout: processor seconds, of a script for each of its kernels (see `Patience` for itself); ten times as many
        seconds of wall time are the backstop.
    number: tells the jobs of one session apart.
    """

    file: str
    _: KW_ONLY
    arch: str = USUAL[-1]
    pythonpath: tuple[str, ...] = ()
    timeout: float = 300.0
    number: int = 0


@dataclass(frozen=True)
class DiscoverJob(FileJob):
    """Import the file and report its cases, or the one that is named.

    name: a variable in the file; empty for all declared cases. args: build arguments as the user typed them; over those
    of a declared case.
    """

    name: str = ""
    args: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LowerJob(FileJob):
    """Lower a case or kernel and write its snapshot. name, args: as in `DiscoverJob`.

    output: the snapshot's file. every_pass: keep the module after each pass instead of at the checkpoints.
    pass_configs: over the kernel's own, as the user typed them (`tlcheck.worker.pass_configs`).
    known: hashes of kernels that need no lowering (`tlcheck.worker.fingerprint`); None where nobody asks for hashes.
    """

    name: str
    args: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    output: str
    every_pass: bool = False
    pass_configs: Mapping[str, str] = field(default_factory=dict)
    known: tuple[str, ...] | None = None


@dataclass(frozen=True)
class InputsJob(FileJob):
    """Write a case's own inputs. name, args: as in `DiscoverJob`.

    output: the arrays' file. seeds: one set for each. parameters: what the kernel takes, which the inputs have to fit.
    """

    name: str
    args: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    output: str
    seeds: tuple[int, ...]
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaptureJob(FileJob):
    """Run the file as a script and lower all kernels that it compiles.

    output: a zip file of snapshots. every_pass, pass_configs: as in `LowerJob`. script_args: the script's command line.
    max_configs: of each of its autotuned kernels. sides: toolchains of one command that share a script's seconds.
    interpreter: tlcheck's own, for the values that a script asks for.
    live: the script has a GPU: its kernels are compiled and launched. record_limit: bytes that may be kept of one call
        of a kernel; 0 for nothing. parts: kernels of a test file are handed over while later tests run
        (`tlcheck.worker.capture.parts`). calls: what calls pass is told, for who executes the kernels.
    """

    _: KW_ONLY
    output: str
    every_pass: bool = False
    pass_configs: Mapping[str, str] = field(default_factory=dict)
    script_args: tuple[str, ...] = ()
    max_configs: int = 1
    sides: int = 1
    interpreter: str = ""
    live: bool = False
    record_limit: int = 0
    parts: bool = False
    calls: bool = True


Job = DiscoverJob | LowerJob | InputsJob | CaptureJob

_TASKS: Mapping[str, type[Job]] = {
    "discover": DiscoverJob,
    "lower": LowerJob,
    "inputs": InputsJob,
    "capture": CaptureJob,
}
_NAMES = {kind: task for task, kind in _TASKS.items()}


def task_of(job: Job) -> str:
    """`discover`, `lower`, `inputs` or `capture`."""
    return _NAMES[type(job)]


def name_of(job: Job) -> str:
    """The case or kernel that a job is about; empty for one about a whole file."""
    return "" if isinstance(job, CaptureJob) else job.name


def output_of(job: Job) -> str:
    """The file that a job writes; empty for one that writes none."""
    return "" if isinstance(job, DiscoverJob) else job.output


def kind_of(job: Job) -> str:
    """Return what jobs that may share a process have in common: they differ in the kernel alone."""
    match job:
        case LowerJob():
            return repr(replace(job, name="", output="", known=None, number=0))
        case DiscoverJob():
            return repr(replace(job, name="", number=0))
        case _:
            return repr(job)


def as_fields(job: Job) -> dict[str, Any]:
    """A job as plain data; `read_job` undoes it."""
    return {"task": task_of(job), **asdict(job)}


def read_job(fields: Mapping[str, Any]) -> Job:
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()}
    return _TASKS[values.pop("task")](**values)
