"""Tasks that need no GPU, each in a copy of a process that imports torch and tilelang once."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

from tlcheck.worker import process_limits, release
from tlcheck.worker.gpu import main


def serve() -> None:
    """Do tasks until standard input ends: each line is the file of a task and one for what it prints, as JSON.

    A line with the exit code answers it, negative for a signal. Processes with a GPU are never copied: CUDA does not
    survive it.
    """
    process_limits.die_with_parent()
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    _cut_off("/dev/null")
    with suppress(BaseException):  # each task says itself why it cannot
        release.import_tilelang()
        from tlcheck.worker.gpu import case_arrays, kernel  # noqa: F401
    for line in requests:
        file, log = json.loads(line)
        child = os.fork()
        if child == 0:
            # do a task in this copy, and end it
            try:
                _cut_off(log)
                main.main(file)
            finally:
                os._exit(70)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _cut_off(log: str) -> None:
    """Read nothing, and print to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    for file, flags, places in ((os.devnull, os.O_RDONLY, (0,)), (log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, (1, 2))):
        descriptor = os.open(file, flags, 0o600)
        for place in places:
            os.dup2(descriptor, place)
        os.close(descriptor)
