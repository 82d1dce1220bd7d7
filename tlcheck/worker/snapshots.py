"""From a job to a snapshot's file: build the kernel, lower it, translate the modules, write."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tlcheck.snapshot import codec
from tlcheck.worker import device, kernel_file, kernels, lowering, release, translate
from tlcheck.worker.discovery import as_case
from tlcheck.worker.lines import AtomicLines
from tlcheck.worker.protocol import Job


def write(job: Job, enter: Callable[[str], None]) -> dict[str, Any]:
    """Write the snapshot to `job.output`. Raises RequestError and whatever the kernel or TileLang raises."""
    device.pretend(job.arch)
    lines = _watched()
    enter("import")
    module = kernel_file.load(job)
    case = as_case(kernel_file.lookup(module, job.name))
    args = {**case.args, **{key: kernels.parse_value(text) for key, text in job.args.items()}}
    enter("build")
    target = lowering.make_target(job.arch)
    with target:
        built = kernels.build(case.kernel, args, job.name)
    meta = {
        "case": job.name,
        **kernel_file.place(module, job, case.kernel),
        "args": {key: repr(value) for key, value in args.items()},
    }
    stamped = lines.stamp(built.prim_func)
    return lower(stamped, built.pass_configs, target, job, meta, Path(job.output), enter)


@cache
def _watched() -> AtomicLines:
    """Of all jobs of this process: a kernel file keeps what it has imported."""
    lines = AtomicLines()
    lines.watch()
    return lines


def lower(
    prim_func: Any,
    pass_configs: Mapping[str, Any],
    target: Any,
    job: Job,
    place: Mapping[str, Any],
    output: Path,
    enter: Callable[[str], None],
) -> dict[str, Any]:
    """Lower a kernel and write its snapshot. place: its case, file, line and args. Raises what TileLang raises."""
    enter("lower")
    lowered = lowering.lower(prim_func, pass_configs, target, job.every_pass)
    enter("extract")
    # the process ends after this, and a collection would go through all that tilelang and torch have imported
    gc.disable()
    graph, unsaved = lowering.save(lowered.modules)
    meta = {
        **place,
        "toolchain": release.import_tilelang(),
        "headers": release.headers(),
        "target": job.arch,
        "pass_configs": kernels.configs_as_text(pass_configs),
        "passes": {name: lowered.passes[name] for name in lowered.modules if name not in unsaved},
        "cuda": lowered.cuda,
    }
    output.write_text(codec.dumps(translate.translate(graph, meta)))
    enter("done")
    return {"checkpoints": meta["passes"], "unsaved": unsaved}
