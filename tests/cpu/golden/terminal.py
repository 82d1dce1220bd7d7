"""A program on a terminal of its own, for tests that press keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

_PATIENCE = 60.0
_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Runs a command; `see` waits for text, `press` sends keys."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str], rows: int = 24) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=env, preexec_fn=lambda: _control(slave)
        )
        os.close(slave)
        self.text = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def see(self, wanted: str) -> str:
        """Return what came since the last call up to `wanted`, without control sequences."""
        end = time.monotonic() + _PATIENCE
        while wanted not in self.text:
            assert time.monotonic() < end, f"no {wanted!r} in {self.text!r}"
            assert self._read(), f"the program ended without {wanted!r}: {self.text!r}"
        seen, _, self.text = self.text.partition(wanted)
        return seen

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 1.0)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux says so when the other end is closed
            return False
        self.text += _CONTROL.sub(b"", data).decode(errors="replace").replace("\r", "")
        return bool(data)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> int:
        """Wait for the program's end; its exit code."""
        end = time.monotonic() + _PATIENCE
        while self._read() and self._process.poll() is None:
            assert time.monotonic() < end, f"the program does not end: {self.text!r}"
        return self._process.wait(_PATIENCE)


def _control(slave: int) -> None:
    """Make the terminal the controlling one: Ctrl-C is a signal only then."""
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
