"""Turning exceptions and dead processes into a few useful lines."""

from __future__ import annotations

import re
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tlcheck.worker.protocol import Failure

_DETAIL_LINES = 12
_TRACE = 16_000  # characters of a traceback, of its end
_NOISE = re.compile(r'\s*(\[bt\]|\d+: |File "|Traceback|Stack trace|at 0x|_+$|\^+$|~+$)')
_DIAGNOSTIC = re.compile(r"error: (.*)\n\s*-->\s*([^\n]*?:\d+):\d+")
_NUMBER = re.compile(r"SystemExit: \d+")
_FATAL = re.compile(r"Fatal Python error: .*")
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in')
_WITHOUT_GPU = ("not compiled with CUDA", "No CUDA GPUs are available", "Found no NVIDIA driver")  # torch's words
# What torch says of an operator that only a GPU has: a page of text on one line.
_ONLY_ON_A_GPU = re.compile(r"Could not run '([\w:.]+)' with arguments from the 'CPU' backend\..*")
_GUARD = ' (put what needs a GPU under `if __name__ == "__main__":`)'


class RequestError(Exception):
    """The user asked for something that is not there; the message is meant for them.

    kind: of the failure. where: `FILE:LINE` in the user's code, if known.
    """

    def __init__(self, message: str, kind: str = "usage", where: str = "") -> None:
        super().__init__(message)
        self.kind, self.where = kind, where


class PassError(Exception):
    """A pass, or the code generation, raised what this is raised from. modules: name -> module, the last is what it
    was given.

    where: `FILE:LINE` of what the pass complains about, as far as it names a buffer.
    """

    def __init__(self, name: str, modules: Mapping[str, Any]) -> None:
        super().__init__(name)
        self.name, self.modules, self.where = name, modules, ""


def from_exception(error: BaseException, phase: str, user_file: str) -> Failure:
    """The failure that an exception in a job is reported as; call it where the exception was caught."""
    if isinstance(error, PassError):
        assert error.__cause__ is not None
        found = from_exception(error.__cause__, phase, user_file)
        where = found.where or error.where
        return replace(found, message=f"{error.name}: {found.message}", where=where)
    failure = _from_exception(error, phase, user_file)
    trace = "".join(traceback.format_exception(error)) if failure.kind == "exception" else ""
    return replace(failure, trace=trace[-_TRACE:])


def _from_exception(error: BaseException, phase: str, user_file: str) -> Failure:
    if isinstance(error, RequestError):
        return Failure(error.kind, phase, str(error), where=error.where)
    kind = "exit" if isinstance(error, SystemExit) else "exception"
    lines = _useful(_ONLY_ON_A_GPU.sub(r"torch has no \1 for the CPU, which computes values here", str(error)))
    message = f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return Failure(kind, phase, f"{type(error).__name__}: {error.msg}", "", f"{error.filename}:{error.lineno}")
    message += _GUARD if phase == "import" and any(words in message for words in _WITHOUT_GPU) else ""
    return Failure(kind, phase, message, "\n".join(lines[1:_DETAIL_LINES]), where_raised(error, user_file))


def without_runner(error: BaseException) -> BaseException:
    """Return the error with a traceback that begins in the script or test, if one of its frames is the user's."""
    frame = error.__traceback__
    while frame is not None and not _is_user_code(frame.tb_frame.f_code.co_filename):
        frame = frame.tb_next
    return error if frame is None else error.with_traceback(frame)


def from_diagnostics(failure: Failure, output: str) -> Failure:
    """Read the cause from the output if the error does not say it: argparse raises a number, 0.1.6's parser a count."""
    if _NUMBER.fullmatch(failure.message) and (told := last_lines(output)):
        return replace(failure, message=f"{failure.message}: {told[-1].strip()}")
    found = _DIAGNOSTIC.search(output)
    if found is None or "diagnostics were emitted" not in failure.message:
        return failure
    return Failure(failure.kind, failure.phase, found[1], "", found[2])


def from_signal(number: int, phase: str, output: str, user_file: str) -> Failure:
    """A process that a signal ended, with what it printed last; Python's fault handler names the line."""
    name = signal.Signals(number).name
    fatal = _FATAL.search(output)
    before = output[: fatal.start()] if fatal else output
    lines = _useful(before)[-3:]
    frames = _FRAME.findall(output[fatal.start() :]) if fatal else []
    where = next((f"{file}:{line}" for file, line in frames if file == user_file), "")
    if number == signal.SIGKILL:
        return Failure("killed", phase, "killed from outside (SIGKILL): was there enough memory?", "\n".join(lines))
    message = f"{name}: {lines[-1].strip()}" if lines else f"the process ended with {name}"
    return Failure("crash", phase, message, "\n".join(lines[:-1]), where)


def from_exit(code: int, phase: str, output: str) -> Failure:
    """A process that ended without an answer."""
    return Failure("exit", phase, f"the process ended by itself with code {code}", "\n".join(_useful(output)[-3:]))


def last_lines(output: str) -> Sequence[str]:
    """The last useful lines of what a process printed."""
    return _useful(output)[-3:]


def _useful(text: str) -> list[str]:
    """The lines of a message without C++ stack frames and blank lines."""
    return [line.rstrip() for line in text.splitlines() if line.strip() and not _NOISE.match(line)]


def where_raised(error: BaseException, user_file: str) -> str:
    """`FILE:LINE` of the innermost frame in the user's file, else in other code that is not of a package.

    user_file: empty where all of the user's code is alike.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.lineno]
    own = [frame for frame in frames if frame.filename == user_file] or [
        frame for frame in frames if _is_user_code(frame.filename)
    ]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


def _is_user_code(filename: str) -> bool:
    files = [getattr(sys.modules.get(name), "__file__", None) for name in ("tilelang", "torch", "tvm", "os")]
    packages = [str(Path(__file__).parents[1]), sys.prefix, *[str(Path(file).parent) for file in files if file]]
    is_installed = "site-packages" in Path(filename).parts or any(filename.startswith(folder) for folder in packages)
    return Path(filename).is_file() and not is_installed
