"""Has kernels executed on the CPU, by a process of tlcheck's own interpreter: see `tlcheck.lower.interpretation`."""

from __future__ import annotations

import json
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy
import torch

from tlcheck.worker.capture.unseen import NoTimeError, NoValuesError
from tlcheck.worker.gpu.case_arrays import as_array

_PACKAGES = str(Path(__file__).parents[3])
_SECONDS = 60.0  # of wall time that a script may wait for values


class Executor:
    """The kernels of one script. interpreter: tlcheck's; empty where nothing is to be executed. archive: snapshots."""

    def __init__(self, interpreter: str, archive: str) -> None:
        self._interpreter, self._archive = interpreter, str(Path(archive).resolve())
        self._process: subprocess.Popen[str] | None = None
        self._written: dict[str, Sequence[int]] = {}
        self._spent = 0.0
        self._begun: float | None = None  # while the script waits

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time that the script waits for values. Raises NoTimeError if there is none left."""
        begun = self._begun = time.monotonic()
        try:
            self.require_time()
            yield
        finally:
            self._spent += time.monotonic() - begun
            self._begun = None

    def require_time(self) -> float:
        """The seconds that are left. Raises NoTimeError where there are none."""
        left = _SECONDS - self._spent - (0.0 if self._begun is None else time.monotonic() - self._begun)
        if left <= 0:
            raise NoTimeError(f"its values would take more than {_SECONDS:g} s")
        return left

    def written(self, kernel: str) -> Sequence[int]:
        """The places of the parameters that a kernel writes. Raises NoValuesError."""
        if kernel not in self._written:
            self._written[kernel] = self._asked({"kernel": kernel})["written"]
        return self._written[kernel]

    def run(self, kernel: str, arguments: Sequence[Any]) -> None:
        """Leave in tensors of the CPU what the source leaves. Raises NoValuesError."""
        beside = Path(self._archive).parent  # who began this script removes it, also where this process is killed
        with tempfile.TemporaryDirectory(prefix="tlcheck-values-", dir=beside) as name:
            folder = Path(name)
            passed = [_passed(value, folder / f"{place}.npy") for place, value in enumerate(arguments)]
            for place in range(len(arguments)):  # written before they are read: else they would count as dependencies
                for file in _left(folder, place):
                    file.write_bytes(b"")
            asked = {"kernel": kernel, "arguments": passed, "folder": name, "seconds": self.require_time()}
            for place in self._asked(asked)["left"]:
                _take(arguments[place], *_left(folder, place))

    def _asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if not request["kernel"]:
            raise NoValuesError("what a kernel that was not lowered, or one of Triton, leaves is not known")
        if not self._interpreter:
            raise NoValuesError("nothing is executed")
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        seconds = self.require_time()  # before it is asked: an answer that nobody reads would be the next one's
        with suppress(BrokenPipeError):  # it has ended: there is no answer
            process.stdin.write(json.dumps({**request, "archive": self._archive}) + "\n")
            process.stdin.flush()
        if not select.select([process.stdout], [], [], seconds)[0]:
            process.kill()
        line = process.stdout.readline()
        if not line:
            self._process = None
            self.require_time()
            raise NoValuesError("executing its kernel ended the process: was there enough memory?")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise NoValuesError(f"its kernel is not executed: {answer['failed']}")
        return answer

    def _start(self) -> subprocess.Popen[str]:
        command = [self._interpreter, "-m", "tlcheck.lower.interpretation"]
        own = {"PYTHONPATH": _PACKAGES, "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own, cwd="/")


def _passed(value: Any, file: Path) -> Any:
    if not torch.is_tensor(value):
        return value
    numpy.save(file, as_array(value))
    return str(file)


def _left(folder: Path, place: int) -> tuple[Path, Path]:
    return folder / f"{place}.elements.npy", folder / f"{place}.values.npy"


def _take(tensor: Any, elements: Path, values: Path) -> None:
    """Put what was written into a tensor."""
    made = tensor.contiguous()
    made.view(-1)[torch.from_numpy(numpy.load(elements))] = torch.from_numpy(numpy.load(values)).to(tensor.dtype)
    if made is not tensor:
        tensor.copy_(made)
