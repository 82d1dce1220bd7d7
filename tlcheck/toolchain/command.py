"""Running pip and other commands that fill a folder: logged, followed, and holding the folder's lock until they end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Reporter(Protocol):
    """A listener that is told what an install is doing."""

    def step(self, text: str) -> None:
        """A new step has begun."""

    def detail(self, text: str) -> None:
        """The last line of output of the step under way."""


class CommandError(Exception):
    """A command failed; the message is the line of its output that says most. output: all lines."""

    def __init__(self, message: str, output: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.output = output


@dataclass(frozen=True)
class Runner:
    """Runs commands that write to a locked folder."""

    log: Path
    reporter: Reporter
    locks: tuple[int, ...]  # descriptors that the commands inherit: an orphan must keep its folder locked

    def run(self, command: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        """Run to the end, with `env` added to the environment variables. Raises CommandError.

        PYTHONPATH is not passed on: pip would count a TileLang found there as installed.
        """
        lines = []
        with (
            self.log.open("a") as log,
            subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, "PYTHONPATH": "", **(env or {})},
                cwd=cwd,
                pass_fds=self.locks,
            ) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                log.write(line)
                lines.append(line.rstrip())
                self.reporter.detail(lines[-1])
        if process.returncode:
            raise CommandError(telling_line(lines) or f"exit code {process.returncode}", lines)


def telling_line(lines: Sequence[str]) -> str:
    """The last `ERROR:` line of pip, else the last line, where a traceback says what it is about."""
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    told = [line for line in lines if line.strip()]
    return errors[-1] if errors else told[-1] if told else ""
