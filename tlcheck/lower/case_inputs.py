"""The inputs that cases have of their own: made once for all kernels that request the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tlcheck.execute.request import GivenInputs
from tlcheck.lower.cached import AnsweredJob
from tlcheck.lower.runs import Lowered, MadeInputs
from tlcheck.worker.jobs import InputsJob, output_of


@dataclass(frozen=True)
class InputsRequest:
    """A lowered kernel whose case has inputs of its own, and the job that makes them."""

    lowered: Lowered
    job: InputsJob


class CaseInputs:
    """Has inputs made, and hands them out.

    Whoever asks first has them made with its toolchain and arch, for all whose kernels take the same parameters: sides
    that are compared see the same numbers. Where that fails, each tries with its own.
    """

    def __init__(self, ask: Callable[[InputsRequest, str, bool], None], judged: Callable[[Lowered], bool]) -> None:
        """ask: has a job done, whose end comes to `ended` with the same text; True where the arrays are wanted, too.

        judged: whether nobody will read the inputs of a lowered kernel.
        """
        self._ask, self._judged = ask, judged
        self._made: dict[str, MadeInputs] = {}
        self._waiting: dict[str, list[InputsRequest]] = {}
        self._failed: set[str] = set()

    def request(self, one: InputsRequest) -> Iterator[Lowered]:
        """The kernel with its inputs, now or from a later `ended`."""
        key = self._key(one)
        if key in self._waiting:
            self._waiting[key].append(one)
            return
        made = self._made.get(key)
        if made is not None:
            found = replace(one.lowered, inputs=made)
            if made.failure is not None or made.given is not None or self._judged(found):  # there, or never read
                yield found
                return
        self._waiting[key] = [one]
        self._ask(one, key, made is not None)

    def ended(self, key: str, done: AnsweredJob, *, stopped: bool) -> Iterator[Lowered]:
        """Kernels that have waited. stopped: nothing more is made."""
        made, waiting = _made(done), self._waiting.pop(key)
        if made.failure is not None and not stopped:
            self._failed.add(key)
        self._made[self._key(waiting[0])] = made
        for one in waiting:
            yield from self.request(one)

    def _key(self, one: InputsRequest) -> str:
        job = replace(one.job, arch="", output="", number=0, file=os.path.realpath(one.job.file))
        shared = repr(job)
        return f"{shared} {one.lowered.run.toolchain} {one.job.arch}" if shared in self._failed else shared


def _made(done: AnsweredJob) -> MadeInputs:
    """Return what the answer to an `inputs` job says; the hash alone where an earlier run made them, and none are
    there.
    """
    result = done.answer.result
    if result is None:
        return MadeInputs(failure=done.answer.failure)
    file = output_of(done.job)
    if done.known and not Path(file).exists():
        return MadeInputs(digest=result["digest"])
    sets = tuple((seed, tuple(places)) for seed, places in result["sets"])
    updates = None if result["updates"] is None else tuple(result["updates"])
    return MadeInputs(GivenInputs(file, sets, result["where"], updates), result["digest"])
