"""A case's kernel, compiled for the device that is there, as a user's program would compile it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import tilelang

from tlcheck.worker import kernel_file, kernel_forms
from tlcheck.worker.discovery import as_case
from tlcheck.worker.gpu import stored
from tlcheck.worker.gpu.loaded_case import CompiledKernel, LoadedCase
from tlcheck.worker.pass_configs import set_over


def load(file: str, name: str, args: Mapping[str, str], pythonpath: tuple[str, ...]) -> LoadedCase:
    """Import a file and find a case in it. Raises RequestError and what the file raises.

    args: as in `tlcheck.worker.jobs`. A case whose only inputs are those of its recorded call has these: to be timed
    on, for one.
    """
    case = as_case(kernel_file.lookup(kernel_file.load(file, pythonpath), name))
    if case.inputs is None and case.recorded:
        recorded = case.recorded
        case = replace(case, inputs=lambda args, generator, device: stored.recorded(file, recorded, device).inputs)
    own = {key: kernel_forms.parse_value(text) for key, text in args.items()}
    return LoadedCase(case, {**case.args, **own}, name)


def compile_kernel(subject: LoadedCase, pass_configs: Mapping[str, str]) -> CompiledKernel:
    """Compile with the target that TileLang detects. Raises what the kernel, TileLang and nvcc raise.

    pass_configs: over the kernel's own.
    """
    kernel = subject.case.kernel
    with _detected_target() as target:
        built = kernel_forms.build(kernel, subject.args, subject.name)
        compiled = tilelang.compile(
            _with_all_parameters(built.prim_func),
            target=target,
            pass_configs=set_over(built.pass_configs, pass_configs),
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
