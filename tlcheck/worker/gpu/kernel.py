"""A case's kernel, compiled for the device that is there, as a user's program would compile it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tilelang

from tlcheck.case import Case
from tlcheck.worker import kernel_file, kernels
from tlcheck.worker.discovery import as_case
from tlcheck.worker.gpu import traces
from tlcheck.worker.gpu.subject import CompiledKernel, LoadedCase
from tlcheck.worker.gpu.task import Task
from tlcheck.worker.protocol import Job


def load(task: Task) -> LoadedCase:
    """Import the file and find the case. Raises RequestError and what the file raises."""
    module = kernel_file.load(Job("run", task.file, task.name, task.args, pythonpath=task.pythonpath))
    case = as_case(kernel_file.lookup(module, task.name))
    own = {key: kernels.parse_value(text) for key, text in task.args.items()}
    return LoadedCase(_with_inputs(case, task), {**case.args, **own}, task.name)


def _with_inputs(case: Case, task: Task) -> Case:
    """A case whose inputs are those of its recorded call, if it has no others: to be timed on, for one."""
    if case.inputs is not None or not case.recorded:
        return case
    return replace(case, inputs=lambda args, generator, device: traces.recorded(task, case.recorded).inputs)


def compile_kernel(subject: LoadedCase) -> CompiledKernel:
    """Compile with the target that TileLang detects. Raises what the kernel, TileLang and nvcc raise."""
    kernel = subject.case.kernel
    with _detected_target() as target:
        built = kernels.build(kernel, subject.args, subject.name)
        compiled = tilelang.compile(
            _with_all_parameters(built.prim_func),
            target=target,
            pass_configs=dict(built.pass_configs),
            compile_flags=getattr(kernel, "compile_flags", None),
        )
    return CompiledKernel(tuple(_names(built.prim_func)), compiled, compiled.get_kernel_source())


def _with_all_parameters(prim_func: Any) -> Any:
    """A kernel that makes an output itself (`T.empty`) is called with that as well here: between guards, poisoned."""
    attribute = "tilelang_out_idx"
    return prim_func.without_attr(attribute) if attribute in (prim_func.attrs or {}) else prim_func


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
