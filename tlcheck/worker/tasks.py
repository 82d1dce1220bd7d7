"""Describe what a job's process does: runs the task and writes its result, or why there is none, as JSON lines.

The lines are `{"phase": name}` as it goes, `{"dependencies": ...}` where they are known, then `{"result": ...}` or
`{"failure": ...}` with the seconds `spent`; a process that dies has written the phase in which it did. A process with
several jobs writes them one after the other, and nothing after the first that fails. Results:

- `discover`: `{"cases": [{name, args, targets, expects, inputs}], "kernels": [{name, required}]}`
- `lower`: `{"checkpoints": {name: pass}, "unsaved": {checkpoint: reason}, "seconds": {phase: seconds},
  "parameters": [type and shape of each]}`, with what the kernel is, `{"fingerprint": hash, "lines": [...]}`, where its
  file leaves the compiler alone (`tlcheck.worker.fingerprint`); of one that is among `LowerJob.known` only that, and
  its `{"place": {file, line, args}}`
- `inputs`: `{"sets": [[seed, [where each parameter's array begins]]], "where": FILE:LINE, "updates": names or null,
  "digest": of the file}`
- `capture`: `{"ended": failure or null, "names": [...], "refused": [...]}`, after a line `{"kernel": ...}` for each:
  its `name`, `args`, `origin` (see `tlcheck.lower.runs`), and `failure`, or `snapshot` (its name in the zip) with what
  `lower` says; and `{"left": tests}` before each test of a test file
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from tlcheck.worker import failures, process_limits, protocol, release, standins
from tlcheck.worker.dependencies import Recorder
from tlcheck.worker.jobs import CaptureJob, DiscoverJob, InputsJob, Job, LowerJob, read_job


class Channel:
    """The channel to which a job's process writes its lines; remembers the phase and how long each took, in processor
    seconds.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._since = self._began = time.process_time()
        self._started = time.monotonic()
        self.phase = "start"
        self.seconds: dict[str, float] = {}

    def enter(self, phase: str) -> None:
        now = time.process_time()
        self.seconds[self.phase] = round(now - self._since, 6)
        self.phase, self._since = phase, now
        self.write({"phase": phase})

    def spent(self) -> tuple[float, float]:
        """Seconds of processor and of wall until now."""
        return round(time.process_time() - self._began, 3), round(time.monotonic() - self._started, 3)

    def write(self, message: Mapping[str, Any]) -> None:
        protocol.send(self._descriptor, message)


def run_fresh(descriptor: int, text: str) -> None:
    """Run a job in a process that has not imported tilelang yet; does not return."""
    run([read_job(json.loads(text))], descriptor)


def run(jobs: Sequence[Job], descriptor: int, orders: int | None = None) -> None:
    """Run jobs in this process, up to the first that fails, and end the process, without the exit handlers of TVM and
    torch. orders: where more of them are read from, once these are done.
    """
    faulthandler.enable()
    recorder = None
    for job in chain(jobs, _ordered(orders)):
        channel = Channel(descriptor)
        message: dict[str, Any]
        try:
            release.import_tilelang()
            if isinstance(job, (DiscoverJob, LowerJob)):  # little of it is garbage, and the process ends soon
                gc.disable()
            # What a script computes itself is no lowering; each of its kernels is limited.
            if not isinstance(job, CaptureJob):
                process_limits.limit_processor_time(job.timeout)
            if recorder is None:
                recorder = Recorder()
                recorder.watch()
            message = {"result": _result(job, channel)}
        except BaseException as error:
            failure = failures.from_exception(error, channel.phase, str(Path(job.file).resolve()))
            message = {"failure": asdict(standins.told(failure))}
        if recorder is not None and (found := recorder.found()) is not None:
            channel.write({"dependencies": asdict(found)})
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # the kernel file may have put anything in their place
                stream.flush()
        channel.write({**message, "spent": channel.spent()})
        if "failure" in message:
            break
        gc.collect(0)  # modules that hold each other, which would lie between those of the next kernel
    os._exit(0)


def _ordered(orders: int | None) -> Iterator[Job]:
    """The jobs that come when others are done, a line for some of them, until the other end is closed."""
    if orders is not None:
        with os.fdopen(orders) as lines:
            for line in lines:
                yield from [read_job(fields) for fields in json.loads(line)]


def _result(job: Job, channel: Channel) -> dict[str, Any]:
    """Do a job; its modules are imported here, in the process that needs them."""
    match job:
        case DiscoverJob():
            from tlcheck.worker import discovery, snapshots

            snapshots.watch()  # before the file is imported: this process may go on to lower what it has
            return discovery.discover(job, channel.enter)
        case LowerJob():
            from tlcheck.worker import snapshots

            return {**snapshots.write(job, channel.enter), "seconds": channel.seconds}
        case InputsJob():
            from tlcheck.worker import case_inputs

            return case_inputs.write(job, channel.enter)
        case CaptureJob():
            from tlcheck.worker.capture import script

            return script.capture(job, channel.enter, channel.write)
