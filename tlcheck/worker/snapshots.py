"""Make a snapshot's file of a job: build the kernel, lower it, translate the modules, write."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot
from tlcheck.worker import (
    assumed_device,
    breakpoints,
    compiler_changes,
    kernel_file,
    kernel_forms,
    lowering,
    release,
    translate,
)
from tlcheck.worker.compiler_changes import CompilerState
from tlcheck.worker.discovery import as_case
from tlcheck.worker.failing_lines import line_of_buffer, line_of_operator
from tlcheck.worker.failures import PassError
from tlcheck.worker.fingerprint import fingerprint
from tlcheck.worker.jobs import CaptureJob, LowerJob
from tlcheck.worker.pass_configs import set_over
from tlcheck.worker.statement_lines import StatementLines


def write(job: LowerJob, enter: Callable[[str], None]) -> dict[str, Any]:
    """Write the snapshot to `job.output`, unless it is known. Raises RequestError and whatever the kernel or TileLang
    raises.
    """
    assumed_device.pretend(job.arch)
    lines = _watched()
    before = _compiler() if job.known is not None else None
    enter("import")
    module = kernel_file.load(job.file, job.pythonpath)
    case = as_case(kernel_file.lookup(module, job.name))
    args = {**case.args, **{key: kernel_forms.parse_value(text) for key, text in job.args.items()}}
    enter("build")
    target = lowering.make_target(job.arch)
    with target:
        built = kernel_forms.build(case.kernel, args, job.name)
    meta = {
        "case": job.name,
        **kernel_file.place(module, job.file, job.name, case.kernel),
        "args": {key: repr(value) for key, value in args.items()},
    }
    configs = set_over(built.pass_configs, job.pass_configs)
    stamped = lines.stamp(built.prim_func)
    known_by: dict[str, Any] = {}
    if before is not None and before.is_as_before():
        known_by = _known_by(stamped, configs, meta["file"])
    if job.known and known_by.get("fingerprint") in job.known:
        return {**known_by, "place": {key: meta[key] for key in ("file", "line", "args")}}
    lowered = lower(stamped, configs, target, job, meta, Path(job.output), enter)
    return {**known_by, **lowered, "parameters": _parameters(stamped)}


def _known_by(prim_func: Any, pass_configs: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return what the kernel is; nothing where TVM cannot say."""
    try:
        found = fingerprint(prim_func, pass_configs, file)
    except Exception:  # lowering it may still work, and says better what does not
        return {}
    return {"fingerprint": found.digest, "lines": found.lines}


def _parameters(prim_func: Any) -> list[str]:
    """Type and shape of each: kernels in which they are the same can be called with the same tensors."""
    buffers = prim_func.buffer_map
    taken = [buffers[p] if p in buffers else p for p in prim_func.params]  # noqa: SIM401 - TVM's map
    return [f"{one.dtype} {[str(size) for size in getattr(one, 'shape', ())]}" for one in taken]


def watch() -> None:
    """Begin to note what lowering asks of a kernel file, in a process that imports one now and lowers later."""
    _watched()
    _compiler()


@cache
def _watched() -> StatementLines:
    """Watch all jobs of this process: a kernel file keeps what it has imported."""
    lines = StatementLines()
    lines.watch()
    breakpoints.watch()
    return lines


@cache
def _compiler() -> CompilerState:
    """Return what the compiler is like before the first kernel file of this process is imported."""
    return compiler_changes.present()


def lower(
    prim_func: Any,
    pass_configs: Mapping[str, Any],
    target: Any,
    job: LowerJob | CaptureJob,
    place: Mapping[str, Any],
    output: Path,
    enter: Callable[[str], None],
) -> dict[str, Any]:
    """Lower a kernel and write its snapshot. place: its case, file, line and args. Raises what TileLang raises.

    Where a pass fails and every pass is wanted, what there is until then is written.
    """
    enter("lower")
    try:
        lowered = lowering.lower(prim_func, pass_configs, target, job.every_pass)
    except PassError as broken:
        until = _until(broken, pass_configs, job.arch, place)
        if until is not None and job.every_pass:
            output.write_text(codec.dumps(until))
        raise
    enter("extract")
    graph, unsaved = lowering.save(lowered.modules)
    meta = {
        **place,
        "toolchain": release.import_tilelang(),
        "headers": release.headers(),
        "target": job.arch,
        "pass_configs": kernel_forms.configs_as_text(pass_configs),
        "passes": {name: lowered.passes[name] for name in lowered.modules if name not in unsaved},
        "cuda": lowered.cuda,
    }
    output.write_text(codec.dumps(translate.translate(graph, meta)))
    enter("done")
    return {"checkpoints": meta["passes"], "unsaved": unsaved}


def _until(broken: PassError, pass_configs: Mapping[str, Any], arch: str, place: Mapping[str, Any]) -> Snapshot | None:
    """The kernel before the pass that failed; the error learns the line that it is about. None if nothing is left."""
    try:
        graph, unsaved = lowering.save(broken.modules)
        meta = {
            **place,
            "toolchain": release.import_tilelang(),
            "target": arch,
            "pass_configs": kernel_forms.configs_as_text(pass_configs),
            "passes": {name: name.partition("-")[2] for name in broken.modules if name not in unsaved},
            "cuda": "",
        }
        found = translate.translate(graph, meta)
        last = list(found.checkpoints.values())[-1]
    except Exception:  # what is half done may be anything, and the pass's own error is what counts
        return None
    cause = broken.__cause__
    trace = "".join(traceback.format_exception(cause))
    line = line_of_buffer(str(cause), last) or line_of_operator(trace, last) or found.line
    broken.where = f"{found.file}:{line}"
    return found
