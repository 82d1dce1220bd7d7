"""Runs a kernel on one set of inputs and says everything that is wrong with what it leaves.

A finding is plain data: `kind`, `buffer`, `message`, `count`, `total` and the first `elements`. Kinds:

- `unwritten`: an element that the kernel has to write still is poison, of whichever pattern
- `nan`, `zeros`: a NaN that the reference does not have; all results zero, and wrong
- `unshown`: all results zero, and right, where they may have been zero before (unless it is a counter, and another
  output shows something); all results NaN, as in the reference
- `wrong`: beyond the tolerance, or with exact inputs not equal
- `stray-write`: memory outside of a tensor changed
- `changed-input`: a tensor that is only read changed
- `nondeterministic`: results on the same inputs differ by more than reordered additions can
- `inexact-inputs`: inputs said to be exact are not; nothing is wrong with the kernel
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from tlcheck.worker.failures import RequestError
from tlcheck.worker.gpu import output_errors, stored
from tlcheck.worker.gpu.draws import EXACT, DrawnInputs
from tlcheck.worker.gpu.guarded_tensors import Arena
from tlcheck.worker.gpu.loaded_case import CompiledKernel, LoadedCase
from tlcheck.worker.gpu.output_errors import Tolerance
from tlcheck.worker.gpu.task import ReferTask, VerifyTask

Finding = dict[str, Any]


@dataclass
class Trial:
    """One kernel on one set of inputs. enter: told of each phase."""

    subject: LoadedCase
    compiled: CompiledKernel
    task: VerifyTask | ReferTask
    draw: DrawnInputs
    enter: Callable[[str], None] = lambda phase: None
    findings: list[Finding] = field(default_factory=list)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def run(self) -> dict[str, Any]:
        """Launch it, as often as the task says, and compare. Raises what the launch raises, and RequestError."""
        verifying = self.task if isinstance(self.task, VerifyTask) else None
        arena = Arena(self.compiled.names, self.draw.values, self.task.poisoned)
        if self.subject.case.outcome is None:
            for name in self.draw.expected:
                if name not in self.compiled.names:
                    known = ", ".join(self.compiled.names)
                    raise RequestError(f"the reference names {name!r}, which is no parameter; the kernel has {known}")
        first = self._launch(arena)
        self._require_written(arena)
        if verifying is not None:
            self._watch(verifying.watched, first)
        for name in first:
            self._compare(name, first[name])
        if verifying is not None and verifying.record:
            stored.write(verifying, self.draw.label, self.draw.seed, self.draw.values, first)
        for _ in range(1, verifying.repeats if verifying is not None else 1):
            self._compare_again(first, self._launch(arena))
        return {
            "seed": self.draw.seed,
            "inputs": self.draw.label,
            "findings": self.findings,
            "outputs": self.outputs,
        }

    def _launch(self, arena: Arena) -> dict[str, Any]:
        """One run on fresh memory; what of the outputs is determined, in memory of its own."""
        self._run_on(arena)
        # what shows in memory without a reference
        for name, stray in arena.strays():
            size = arena.tensor(name).numel()
            where = f"the first as element {stray.offset} of {size}"
            self._found("stray-write", name, f"{stray.count} bytes outside of {name} are written, {where}", stray.count)
        written = {*self.task.poisoned, *self.task.updated, *self.task.scratch}
        for name in arena.changed(set(self.compiled.names) - set(self.draw.expected) - written):
            self._found("changed-input", name, f"{name} is an input and has been changed")
        outcome = self.subject.case.outcome
        if outcome is not None:
            return dict(outcome(self.subject.args, *arena.arguments))
        return {name: arena.tensor(name).clone() for name in self.draw.expected}

    def _run_on(self, arena: Arena, other: bool = False) -> None:
        arena.reset(other)
        self._synchronize()
        self.enter("launch")
        self.compiled.launch(*arena.arguments)
        self._synchronize()
        self.enter("compare")

    def _require_written(self, arena: Arena) -> None:
        """Report what a run has left as it was. A number may happen to be the poison, so another poison confirms it."""
        left = arena.unwritten()
        if not left:
            return
        self._run_on(arena, other=True)
        for name, mask in arena.unwritten(other=True).items():
            if name not in left or not bool((mask := mask & left[name]).any()):
                continue
            count = int(mask.sum())
            offset = int(mask.flatten().nonzero()[0])
            first = output_errors.index(offset, mask.shape)
            message = f"{count} of {mask.numel()} elements are never written, the first at {first}"
            self._found("unwritten", name, message, count, mask.numel())

    def _synchronize(self) -> None:
        if self.task.device != "cpu":
            torch.cuda.synchronize()

    def _watch(self, watched: Mapping[str, tuple[int, ...]], first: Mapping[str, Any]) -> None:
        """Report the elements that the caller asked for: those of a static finding's witness."""
        for name, offsets in watched.items():
            if name in first and name in self.compiled.names:
                out, ref = first[name], self.draw.expected[name]
                inside = [offset for offset in offsets if 0 <= offset < out.numel()]
                found = [{"offset": offset, **output_errors.element(offset, out, ref)} for offset in inside]
                self.outputs.setdefault(name, {})["watched"] = found

    def _compare(self, name: str, out: Any) -> None:
        ref = self.draw.expected[name]
        if out.shape != ref.shape:
            raise RequestError(f"the reference for {name} has shape {tuple(ref.shape)}, the output {tuple(out.shape)}")
        allowed, exact = self._allowed(name, out), self.draw.label == EXACT
        report = self.outputs.setdefault(name, {})
        report["tolerance"] = 0.0 if exact else allowed.bound
        report["tolerance_of"] = [] if exact else [list(part) for part in allowed.parts]
        if exact and (inexact := self.draw.errors.get(name, ("", 0.0))[1]):
            self._found("inexact-inputs", name, f"in float32 the reference itself is off by {inexact:.1e}")
            return
        out = output_errors.comparable(out)
        compared = output_errors.compare(out, ref, allowed, exact, self.draw.narrow.get(name))
        report["error"] = output_errors.plain(compared.error)
        if compared.worst is not None:
            report["worst"] = output_errors.element(compared.worst, out, ref)
        self._judge(name, out, compared, allowed)

    def _judge(self, name: str, out: Any, compared: output_errors.ComparedTensor, allowed: Tolerance) -> None:
        """The first that applies: elements that were never written explain NaN, and these what is wrong."""
        ref, total = self.draw.expected[name], out.numel()
        wrong = int(compared.wrong.sum())
        nan, zero = torch.isnan(out), not bool((out != 0).any())
        extra = nan & ~torch.isnan(ref)
        if any(found["kind"] == "unwritten" and found["buffer"] == name for found in self.findings):
            return
        if count := int(extra.sum()):
            elements = output_errors.elements(extra, out, ref)
            self._found("nan", name, f"{count} of {total} elements are NaN", count, total, elements)
        elif zero and wrong:
            elements = output_errors.elements(compared.wrong, out, ref)
            self._found("zeros", name, f"all {total} elements are zero, {wrong} are wrong", wrong, total, elements)
        elif total and bool(nan.all()):
            self._found("unshown", name, "all elements are NaN, as in the reference: nothing is shown", total, total)
        elif zero and name not in self.task.poisoned and not self.draw.recorded and not self._is_left_clear(name):
            self._found(
                "unshown", name, "all elements are zero, as they may have been before: nothing is shown", total, total
            )
        elif wrong:
            elements = output_errors.elements(compared.wrong, out, ref)
            self._found("wrong", name, f"{wrong} of {total} elements are wrong", wrong, total, elements)
        elif compared.error > allowed.bound and self.draw.label != EXACT:
            message = f"relative error {compared.error:.1e} is above {allowed.bound:.1e}"
            self._found("wrong", name, message, total=total)

    def _is_left_clear(self, name: str) -> bool:
        """Whether the kernel reads and changes the tensor, as a lock or a counter, and another output is not zero."""
        others = [ref for other, ref in self.draw.expected.items() if other != name]
        return name in self.task.updated and any(bool(((ref != 0) & ~torch.isnan(ref)).any()) for ref in others)

    def _allowed(self, name: str, out: Any) -> Tolerance:
        case = self.subject.case
        if case.tolerance is not None:
            return output_errors.declared(case.tolerance)
        updated, terms = name in self.task.updated, self._terms()
        if name in self.draw.errors:
            return output_errors.tolerance(out.dtype, updated, terms, case.rounded, self.draw.errors[name])
        alone = output_errors.tolerance(out.dtype, updated, terms, case.rounded, ("", 0.0))
        other = ("the recorded output", sum(error for _, error in alone.parts))
        return output_errors.tolerance(out.dtype, updated, terms, case.rounded, other)

    def _terms(self) -> int:
        """How many terms are summed for an element; where the case does not say, the longest axis of a tensor."""
        terms = self.subject.case.terms
        if terms is None:
            return max((n for value in self.draw.values if torch.is_tensor(value) for n in value.shape), default=1)
        return terms if isinstance(terms, int) else terms(self.subject.args)

    def _compare_again(self, first: Mapping[str, Any], later: Mapping[str, Any]) -> None:
        for name, out in first.items():
            ref, terms = self.draw.expected[name], self._terms()
            distance, too_far = output_errors.moved(out, later[name], ref, terms, self.task.float_atomics)
            report = self.outputs[name]
            report["moved"] = report.get("moved") or output_errors.plain(distance)
            if too_far:
                count = int((~output_errors.same(out, later[name])).sum())
                message = f"{count} of {out.numel()} elements differ between runs on the same inputs"
                self._found("nondeterministic", name, message, count, out.numel())

    def _found(
        self,
        kind: str,
        buffer: str,
        message: str,
        count: int = 0,
        total: int = 0,
        elements: list[dict[str, Any]] | None = None,
    ) -> None:
        """One finding of a kind for each buffer: repeated runs show the same again."""
        if any(found["kind"] == kind and found["buffer"] == buffer for found in self.findings):
            return
        self.findings.append(
            {
                "kind": kind,
                "buffer": buffer,
                "message": message,
                "count": count,
                "total": total,
                "elements": elements or [],
            }
        )


def verify(
    subject: LoadedCase,
    compiled: CompiledKernel,
    task: VerifyTask,
    draws: Iterator[DrawnInputs],
    enter: Callable[[str], None],
) -> Iterator[dict[str, Any]]:
    """The result of each set of inputs."""
    enter("inputs")
    for draw in draws:
        yield Trial(subject, compiled, task, draw, enter).run()
        enter("inputs")
