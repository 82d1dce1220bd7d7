"""Hand over kernels of a test file while its later tests run, so that they are judged meanwhile.

A part is a zip file beside the one of all snapshots, and like it: snapshots, calls, and the `result` that an answer
would have. It becomes visible when it is whole. The answer of the test file repeats all of it. Shared by both sides:
standard library only.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tlcheck.worker.capture.kernel_recording import Recording
    from tlcheck.worker.capture.passed import PassedCalls

RESULT = "result"  # in a part


def part_names(output: str) -> str:
    """Return the pattern that the parts of this zip file of snapshots match."""
    return f"{Path(output).stem}.*.part"


class KernelParts:
    """The parts of one test file. output: see `CaptureJob`."""

    def __init__(self, output: str, recording: Recording, calls: PassedCalls) -> None:
        self._output, self._recording, self._calls = Path(output).resolve(), recording, calls
        self._looked_at = self._written = 0
        self._open: list[tuple[Mapping[str, Any], int]] = []  # kernels, each with the number of its calls

    def end_test(self) -> None:
        """Hand over the kernels that the last test neither compiled nor called: their calls are complete, probably."""
        seen = self._calls.seen
        with self._recording.lock:
            quiet = [kernel for kernel, calls in self._open if seen[kernel["snapshot"]] == calls]
            new = self._recording.told[self._looked_at :]
            called = [kernel for kernel, calls in self._open if seen[kernel["snapshot"]] != calls]
            self._open = [(kernel, seen[kernel["snapshot"]]) for kernel in [*called, *new] if "snapshot" in kernel]
            self._looked_at += len(new)
            if quiet:
                self._write(quiet)

    def _write(self, kernels: Sequence[Mapping[str, Any]]) -> None:
        self._written += 1
        draft = self._output.with_suffix(f".{self._written:04}.draft")
        names = [kernel["snapshot"] for kernel in kernels]
        with zipfile.ZipFile(self._output) as archive, zipfile.ZipFile(draft, "w") as part:
            for name in names:
                part.writestr(name, archive.read(name))
        result = {"kernels": kernels, "calls": self._calls.write(draft, names)}
        with zipfile.ZipFile(draft, "a") as part:
            part.writestr(RESULT, json.dumps(result))
        draft.replace(draft.with_suffix(".part"))
