"""Judging snapshots on nodes."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlcheck.cluster.node import JudgingDiedError
from tlcheck.execute.given import GivenInputs
from tlcheck.execute.request import Request

if TYPE_CHECKING:
    from tlcheck.cluster.connection import RayCluster


class NodeJudge:
    """Judges one snapshot after the other, as `JudgingProcess` does, each on the node that lowered it."""

    def __init__(self, cluster: RayCluster) -> None:
        self._cluster = cluster
        self._task: Any = None
        self._code = -signal.SIGKILL

    def verdicts(self, snapshot: Path, request: Request | None, inputs: GivenInputs | None) -> bytes:
        """Of `JudgingProcess`; EOFError also where no node came to the end of it."""
        arrays = Path(inputs.file).read_bytes() if inputs is not None else b""
        node, content = self._cluster.snapshots.pop(str(snapshot), ("", None))
        if content is not None:
            try:
                return self._verdicts(node, content, request, inputs, arrays)
            except EOFError:
                pass  # the node took its copy with it
        return self._verdicts("", snapshot.read_bytes(), request, inputs, arrays)

    def _verdicts(self, node: str, *args: Any) -> bytes:
        self._task = self._cluster.judge(node, *args)
        try:
            found: bytes = self._cluster.result(self._task)
        except JudgingDiedError as error:
            self._code = error.code
            raise EOFError from None
        except self._cluster.lost:
            raise EOFError from None
        return found

    def end(self) -> int:
        """Of `JudgingProcess`."""
        return self._code

    def kill(self) -> None:
        """Cancel what it is at."""
        if self._task is not None:
            self._cluster.cancel(self._task)
