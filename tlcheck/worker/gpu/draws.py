"""The sets of inputs that a kernel is run on, each with the outputs to expect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tlcheck.case import Case, Variant
from tlcheck.worker.failures import RequestError, where_raised
from tlcheck.worker.gpu import output_errors, stored
from tlcheck.worker.gpu.loaded_case import LoadedCase
from tlcheck.worker.gpu.task import VerifyTask

EXACT = "exact"


@dataclass(frozen=True)
class DrawnInputs:
    """label: which inputs, empty for the usual ones. expected: parameter or outcome -> reference.

    errors: relative error of each reference, and what it is. recorded: whether it is what a kernel once left.
    narrow: the references computed in float32; none where a reference is no computation.
    """

    label: str
    seed: int
    values: tuple[Any, ...]
    expected: Mapping[str, Any]
    errors: Mapping[str, tuple[str, float]]
    recorded: bool = False
    narrow: Mapping[str, Any] = field(default_factory=dict)


def draws(subject: LoadedCase, names: Sequence[str], task: VerifyTask) -> Iterator[DrawnInputs]:
    """Recorded inputs where the task replays, else the case's recorded call, and fresh inputs for every seed.

    names: of the kernel's parameters. Raises RequestError without any inputs.
    """
    if task.replay:
        yield from (_replayed(call) for call in stored.read(task))
        return
    if subject.case.recorded:
        yield _repeated(subject.case.recorded, names, task)
        if subject.case.reference is None:
            return
    for seed in task.seeds:
        for label, variant in variants(subject.case, task.exact):
            yield refer(subject, label, variant, seed, make(subject, variant, seed, task.device))


def variants(case: Case, exact: bool, referred: bool = True) -> Iterator[tuple[str, Variant]]:
    """The ways to make inputs, by name. Raises RequestError where the case has none, or no reference if `referred`."""
    if case.inputs is None or (referred and case.reference is None and not case.recorded):
        raise RequestError("the case has no inputs and reference")
    yield "", Variant(case.inputs)
    yield from case.variants.items()
    if exact:
        yield EXACT, case.exact or Variant(_rounded(case.inputs))


def make(subject: LoadedCase, variant: Variant, seed: int, device: str) -> tuple[Any, ...]:
    """One set of inputs."""
    generator = torch.Generator(device=device).manual_seed(seed)
    return tuple(variant.inputs(subject.args, generator, device))


def refer(subject: LoadedCase, label: str, variant: Variant, seed: int, values: tuple[Any, ...]) -> DrawnInputs:
    """A set of inputs with what the reference makes of it. Raises RequestError, at its line, where that raises."""
    reference = variant.reference or subject.case.reference
    assert reference is not None
    code = getattr(reference, "__code__", None)
    begin = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""

    def referred() -> Mapping[str, Any]:
        try:
            found = reference(subject.args, *(v.clone() if torch.is_tensor(v) else v for v in values))
        except (MemoryError, NotImplementedError):  # no fault of it: `tlcheck case` leaves one that is to be filled in
            raise
        except Exception as error:
            where = where_raised(error, code.co_filename) if code is not None else ""
            first = next(iter(str(error).splitlines()), "")
            raise RequestError(f"the reference raised {type(error).__name__}: {first}", where=where or begin) from error
        if not isinstance(found, Mapping) or not all(map(torch.is_tensor, found.values())):
            raise RequestError("the reference returns no dict of parameters and tensors", where=begin)
        return dict(found)

    expected = referred()
    narrow = output_errors.in_float32(referred)
    errors = output_errors.reference_error(narrow, expected)
    named = {name: ("reference in float32", error) for name, error in errors.items()}
    return DrawnInputs(label, seed, values, expected, named, narrow=narrow)


def _replayed(call: stored.StoredCall) -> DrawnInputs:
    return DrawnInputs(call.label, call.seed, call.inputs, call.outputs, {}, recorded=True)


def _repeated(file: str, names: Sequence[str], task: VerifyTask) -> DrawnInputs:
    """A case's recorded call. A tensor that the kernel writes, and had left as it was, is compared with that.

    Raises RequestError where there would be nothing to compare.
    """
    call = stored.recorded(task.file, file, task.device)
    if len(names) != len(call.inputs):
        raise RequestError(f"{file} has {len(call.inputs)} arguments, and the kernel takes {len(names)}")
    given = dict(zip(names, call.inputs, strict=True))
    written = [name for name in (*task.poisoned, *task.updated) if torch.is_tensor(given.get(name))]
    expected = {**{name: given[name] for name in written}, **call.outputs}
    if not expected:
        raise RequestError("the recorded call has changed nothing: there is nothing to compare")
    return replace(_replayed(call), expected=expected)


def _rounded(inputs: Callable[..., Any]) -> Callable[..., Any]:
    """The same inputs with floating-point values rounded to integers."""

    def make_rounded(args: Mapping[str, Any], generator: Any, device: Any) -> tuple[Any, ...]:
        values = inputs(args, generator, device)
        return tuple(v.round() if torch.is_tensor(v) and v.is_floating_point() else v for v in values)

    return make_rounded
