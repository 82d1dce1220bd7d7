"""Reports what a kernel file declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from tlcheck.case import ALL_TARGETS, Case
from tlcheck.worker import assumed_device, kernel_file, kernel_forms
from tlcheck.worker.jobs import DiscoverJob


def discover(job: DiscoverJob, enter: Callable[[str], None]) -> dict[str, Any]:
    """The file's declared cases, or the one named, and its kernels. Raises RequestError for what is not there."""
    assumed_device.pretend(job.arch)
    enter("import")
    module = kernel_file.load(job.file, job.pythonpath)
    found = kernel_file.declared_cases(module)
    if job.name:
        found = {job.name: as_case(kernel_file.lookup(module, job.name))}
    own = {key: kernel_forms.parse_value(text) for key, text in job.args.items()}
    for name, case in found.items():
        kernel_forms.check_args(case.kernel, {**case.args, **own}, name)
    return {
        "cases": [_describe(name, case, own) for name, case in found.items()],
        "kernels": kernel_file.kernel_names(module),
    }


def as_case(value: Any) -> Case:
    """A declared case, or a kernel as a case without arguments."""
    return value if isinstance(value, Case) else Case(value, targets=ALL_TARGETS)


def _describe(name: str, case: Case, own: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "args": {key: repr(value) for key, value in {**case.args, **own}.items()},
        "numbers": {key: str(value) for key, value in kernel_forms.numbers(case.kernel).items()},
        "targets": list(case.targets),
        "inputs": case.inputs is not None,
        "reference": case.reference is not None or bool(case.recorded),
        "expects": [{**asdict(expect), "targets": list(expect.targets)} for expect in case.expect],
    }
