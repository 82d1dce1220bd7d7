"""One processor of a campaign: a warm worker lowers kernels, a warm process judges them."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.gate.verdict_outcomes import all_claims
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.bench import KernelBench
from tlcheck.verdicts.kept import Verdicts
from tlcheck.worker.jobs import LowerJob
from tlcheck.worker.protocol import PASS_CONFIG, Failure

_CALLS = re.compile(r"\btl::(\w+)")
_SECONDS = 60.0  # of the processor, for one lowering
_LARGEST = 3_000_000  # bytes of a snapshot: larger ones take minutes to judge
_TOO_LARGE = Failure("size", "check", "the lowered kernel is too large for a campaign")


@dataclass(frozen=True)
class Judged:
    """A record of what one kernel came to. refused: why it does not lower. verdicts: None then.

    calls: functions of the device library in its CUDA. lowering: seconds of the processor. seconds: of the wall, for
    both. release: of TileLang, as the lowering reports it.
    """

    refused: Failure | None = None
    verdicts: Verdicts | None = None
    calls: frozenset[str] = frozenset()
    lowering: float = 0.0
    seconds: float = 0.0
    release: str = ""


class FuzzBench:
    """Judges one kernel after the other, of one release.

    request: of a first look, without who wrote what. pass_configs: over those of the kernels.
    """

    def __init__(self, toolchain: Toolchain, folder: Path, request: Request, pass_configs: Mapping[str, str]) -> None:
        self._folder, self._request, self._pass_configs = folder, request, pass_configs
        self._bench = KernelBench([toolchain])
        self._number = 0

    def close(self) -> None:
        """End the processes, also in the middle of their work."""
        self._bench.close()

    def judged(self, text: str, name: str, arch: str, keep: Path | None = None) -> Judged:
        """Lower a kernel, and judge it. name: of the function that makes it. keep: the file for its snapshot.

        Raises UsageError for a pass configuration that the release does not have.
        """
        begin = time.monotonic()
        self._number += 1
        file = self._folder / f"kernel{os.getpid()}_{id(self)}_{self._number}.py"
        snapshot = file.with_suffix(".snapshot.json")
        file.write_text(text, encoding="utf-8")
        try:
            configs = self._pass_configs
            job = LowerJob(str(file), name, output=str(snapshot), arch=arch, timeout=_SECONDS, pass_configs=configs)
            answer = self._bench.lowered(0, job)
            refused, lowering = answer.failure, answer.cpu
            if refused is not None and refused.kind == PASS_CONFIG:
                raise UsageError(refused.message)
            if refused is not None:
                return Judged(refused, None, frozenset(), lowering, time.monotonic() - begin)
            if snapshot.stat().st_size > _LARGEST:
                return Judged(_TOO_LARGE, None, frozenset(), lowering, time.monotonic() - begin)
            calls = frozenset(_CALLS.findall(snapshot.read_text(encoding="utf-8")))
            found = self._bench.verdicts(snapshot, self._request)
            if any(c.blames_compiler for c in all_claims(found.claims)) and self._request.brief:
                found = self._bench.verdicts(snapshot, replace(self._request, brief=False))
            if keep is not None:
                shutil.copyfile(snapshot, keep)
            return Judged(None, found, calls, lowering, time.monotonic() - begin, self._bench.release(0))
        finally:
            file.unlink(missing_ok=True)
            snapshot.unlink(missing_ok=True)
