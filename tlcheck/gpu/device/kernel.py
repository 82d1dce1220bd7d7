"""A case's kernel, compiled for the device that is there, as a user's program would compile it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilelang

from tlcheck.gpu.device.subject import Compiled, Subject
from tlcheck.gpu.task import Task
from tlcheck.worker import kernel_file, kernels
from tlcheck.worker.discovery import as_case
from tlcheck.worker.protocol import Job


def load(task: Task) -> Subject:
    """Import the file and find the case. Raises RequestError and what the file raises."""
    module = kernel_file.load(Job("run", task.file, task.name, task.args, pythonpath=task.pythonpath))
    case = as_case(kernel_file.lookup(module, task.name))
    own = {key: kernels.parse_value(text) for key, text in task.args.items()}
    return Subject(case, {**case.args, **own}, task.name)


def compile_kernel(subject: Subject) -> Compiled:
    """Compile with the target that TileLang detects. Raises what the kernel, TileLang and nvcc raise."""
    kernel = subject.case.kernel
    with _detected_target() as target:
        built = kernels.build(kernel, subject.args, subject.name)
        compiled = tilelang.compile(
            built.prim_func,
            target=target,
            pass_configs=dict(built.pass_configs),
            compile_flags=getattr(kernel, "compile_flags", None),
        )
    return Compiled(tuple(_names(built.prim_func)), compiled, compiled.get_kernel_source())


def _detected_target() -> Any:
    try:
        from tilelang.utils.target import determine_target
    except ImportError:
        from tilelang.backend.target import determine_target
    return determine_target("auto", return_object=True)


def _names(prim_func: Any) -> Sequence[str]:
    """The names that the kernel's author gave to the parameters."""
    buffers = prim_func.buffer_map
    return [str((buffers[p] if p in buffers else p).name) for p in prim_func.params]  # noqa: SIM401 - TVM's map
