"""Answers to jobs, kept for as long as everything that they depend on is as it was.

An entry belongs to a job, its toolchain and tlcheck's own code; one of a case's inputs to no release, since all get the
same. It lists answers with the files, modules and variables that each rests on, which only the job itself could find
out; the answer holds whose are as they were. Where none does, the worker traces the kernel, and one that is known by
its IR is not lowered: its snapshot moves to its lines of now.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from tlcheck.cache.code import code_of
from tlcheck.cache.store import Cache, key_of
from tlcheck.lower.client import environment
from tlcheck.lower.dependencies import Present
from tlcheck.snapshot.moved import moved
from tlcheck.toolchain.content import content_of, packages_of
from tlcheck.toolchain.identity import identify, probe
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.dependencies import OWN_VARIABLES
from tlcheck.worker.jobs import CaptureJob, InputsJob, Job, LowerJob, as_fields, output_of
from tlcheck.worker.protocol import Answer, Failure

_LARGE = 1 << 26  # bytes of a case's inputs
# Fields of a job on which its answer does not depend.
_OF_THE_RUN = ("output", "timeout", "sides", "number", "known", "parts")
_STATES = 4  # of its dependencies for which an entry keeps answers: people go back and forth between branches
_VARIABLES = re.compile(r"(TILELANG|TL|TVM|CUDA|Z3)_\w*|PYTHONPATH|LD_LIBRARY_PATH|LD_PRELOAD")
# Beginnings of packages that come with a release, and have others beside them in the next.
_RELEASES = ("tilelang-", "apache_tvm_ffi-", "z3_solver-", "torch_c_dlpack_ext-", "nvidia_cuda_runtime_")
_REPEATABLE = frozenset(("exception", "exit", "usage", "target", "capture", "skipped"))
_PASSING = re.compile(
    r"(Memory|NoTime|OS|Blocking\w*|BrokenPipe|Connection\w*|\w*Timeout|CalledProcess)Error|.*bad_alloc"
)


@dataclass(frozen=True)
class CachedAnswer:
    """An answer that was kept. snapshot: key of the file that a lowering wrote, empty where there is none."""

    answer: Answer
    versions: Mapping[str, str]
    snapshot: str


@dataclass(frozen=True)
class _Entry:
    kept: tuple[CachedAnswer, ...] = ()


class AnswerCache:
    """The answers that are kept for one toolchain. Raises UsageError for one that cannot be identified."""

    def __init__(self, cache: Cache, toolchain: Toolchain, *, fork: bool) -> None:
        variables = environment(toolchain.env)
        telling = {name: value for name, value in variables.items() if _VARIABLES.fullmatch(name)}
        for name in OWN_VARIABLES:
            telling.pop(name, None)
        probed = probe(toolchain)
        self._cache = cache
        self._present = Present(variables)
        identity, packages = identify(toolchain, probed), packages_of(probed)
        code = code_of("answer")
        common = (code, telling, str(Path.cwd()), fork)
        content = content_of(toolchain, probed, cache)
        self._base = key_of(*common, asdict(identity), content, packages, str(toolchain.python))
        others = [name for name in packages if not name.startswith(_RELEASES)]
        self._any_release = key_of(*common, identity.python, others)

    def find(self, job: Job, *, whole: bool) -> CachedAnswer | None:
        """The answer to a job that was done before. whole: what the job writes is written where it says, too."""
        keys = [self._shared_key(job)] if isinstance(job, InputsJob) else []
        keys += [self._key(job)]
        keys += [self._key(replace(job, calls=True))] if isinstance(job, CaptureJob) and not job.calls else []
        for kept in (kept for key in keys for kept in self._entry(key).kept):
            if kept.answer.dependencies is not None and self._present.has(kept.answer.dependencies):
                return kept if not whole or self._has_written(job, kept) else None
        return None

    def _has_written(self, job: Job, kept: CachedAnswer) -> bool:
        """Write what a job wrote. Not where that is there no more, as large inputs are not."""
        if not kept.snapshot:
            return not isinstance(job, InputsJob) or kept.answer.result is None
        content = self._cache.get("snapshots", kept.snapshot)
        if content is None:
            return False
        Path(output_of(job)).write_bytes(content)
        return True

    def with_known(self, job: Job) -> Job:
        """The job, with the kernels that its worker need not lower: those of earlier states of its files."""
        if not isinstance(job, LowerJob):
            return job
        results = (kept.answer.result or {} for kept in self._entry(self._key(job)).kept)
        found = (result["fingerprint"] for result in results if "fingerprint" in result)
        return replace(job, known=tuple(dict.fromkeys(found)))

    def move(self, job: LowerJob, answer: Answer) -> Answer | None:
        """The answer to a job whose kernel was known, its snapshot written; None where that is there no more."""
        now = answer.result or {}
        for kept in self._entry(self._key(job)).kept:
            then = kept.answer.result or {}
            same = then.get("fingerprint") == now["fingerprint"]
            if same and (content := self._cache.get("snapshots", kept.snapshot)):
                lines = dict(zip(then["lines"], now["lines"], strict=True))
                if (text := moved(content.decode(), now["place"], lines)) is not None:
                    Path(job.output).write_text(text)
                    return replace(answer, result={**then, "lines": now["lines"]})
        return None

    def keep(self, job: Job, answer: Answer, versions: Mapping[str, str]) -> CachedAnswer:
        """Keep an answer, if it would be the same again."""
        if answer.dependencies is None or not all(map(_is_repeatable, _failures(job, answer))):
            return CachedAnswer(answer, versions, "")
        is_told = isinstance(job, CaptureJob) and any(_failures(job, answer))  # by `--verbose`
        new = CachedAnswer(answer if is_told else replace(answer, output=""), versions, self._read(job))
        made = isinstance(job, InputsJob) and answer.result is not None
        key = self._shared_key(job) if made else self._key(job)
        others = (kept for kept in self._entry(key).kept if kept.answer.dependencies != answer.dependencies)
        self._cache.put("jobs", key, msgspec.json.encode(_Entry((new, *others)[:_STATES])))
        return new

    def _shared_key(self, job: Job) -> str:
        """Return the key of a case's inputs, whichever toolchain and arch they were made with."""
        asked = {name: value for name, value in as_fields(job).items() if name not in (*_OF_THE_RUN, "arch")}
        return key_of(self._any_release, asked, os.path.realpath(job.file))

    def _key(self, job: Job) -> str:
        executing = code_of("captured") if isinstance(job, CaptureJob) else ""
        asked = {name: value for name, value in as_fields(job).items() if name not in _OF_THE_RUN}
        return key_of(self._base, asked, executing, os.path.realpath(job.file))

    def _entry(self, key: str) -> _Entry:
        content = self._cache.get("jobs", key)
        return _Entry() if content is None else msgspec.json.decode(content, type=_Entry)

    def _read(self, job: Job) -> str:
        """Keep what a job has written, under the hash of its content; a script without a kernel writes nothing, a
        lowering that fails what there was until then, where every pass is wanted. Large inputs are not kept: they are
        made again should anybody read them."""
        file = Path(output_of(job))
        if not file.is_file() or (isinstance(job, InputsJob) and file.stat().st_size > _LARGE):
            return ""
        content = file.read_bytes()
        key = hashlib.sha256(content).hexdigest()
        self._cache.put("snapshots", key, content)
        return key


def _failures(job: Job, answer: Answer) -> Iterator[Failure]:
    """Yield the failure of the job; of a captured script also that of each kernel, and what ended it."""
    if answer.failure is not None:
        yield answer.failure
    if isinstance(job, CaptureJob):
        result: Mapping[str, Any] = answer.result or {}
        found = [result.get("ended"), *(kernel.get("failure") for kernel in result.get("kernels", ()))]
        yield from (Failure(**fields) for fields in found if fields)


def _is_repeatable(failure: Failure) -> bool:
    """Whether another run would end in the same way: not what ran out of time or memory, or was killed."""
    return failure.kind in _REPEATABLE and not _PASSING.match(failure.message)
