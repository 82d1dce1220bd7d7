"""A judging process goes on after each snapshot, but for one that has filled its memory."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
from contextlib import closing, nullcontext, suppress
from multiprocessing import Pipe

import pytest

from tests.cpu.worker.processes import wait_until_gone
from tlcheck.execute.stops import MEMORY, TIME
from tlcheck.reasons import Reason
from tlcheck.verdicts import judging
from tlcheck.verdicts.claim import UNDECIDED, Claim, SourceLine
from tlcheck.verdicts.kept import Verdicts, loads


class BegunAnewError(Exception):
    """The process begins anew."""


@pytest.mark.parametrize(("reason", "answered"), [(MEMORY, 1), (TIME, 2)])
def test_a_process_whose_memory_was_filled_begins_anew(
    reason: Reason, answered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next snapshot's verdict hangs on nothing that came before it."""
    claim = Claim("output", "C", "C", SourceLine("k.py", 1, True), UNDECIDED, "execution").because(reason)
    ours, theirs = Pipe()

    def exec_(path: str, arguments: list[str]) -> None:
        assert (path, arguments) == (sys.executable, sys.orig_argv)
        raise BegunAnewError

    monkeypatch.setattr(os, "execv", exec_)
    monkeypatch.setattr(judging, "_verdicts_in", lambda *_: Verdicts((claim,)))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(sys, "setrecursionlimit", lambda _: None)
    for _ in range(2):
        ours.send_bytes(b"k.snapshot.json")
        ours.send_bytes(pickle.dumps((None, None)))
    begins = pytest.raises(BegunAnewError) if reason == MEMORY else nullcontext()
    with closing(socket.socket(fileno=os.dup(ours.fileno()))) as end, begins:
        end.shutdown(socket.SHUT_WR)  # nothing more is asked
        judging.serve(os.dup(theirs.fileno()))
    theirs.close()
    found = []
    with suppress(EOFError, ConnectionResetError):
        while True:
            found.append(loads(ours.recv_bytes()).claims[0].reason)
    assert found == [reason] * answered


def test_a_process_ends_with_a_parent_that_is_killed() -> None:
    """Whatever it is at: here it sleeps."""
    judging_process = (
        "import time; from tlcheck.verdicts.judging import end_with_parent as e; e(); print(flush=True); time.sleep(60)"
    )
    parent = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {judging_process!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    assert not wait_until_gone({child})
