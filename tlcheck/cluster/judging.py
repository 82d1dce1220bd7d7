"""Judging snapshots on nodes."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tlcheck.cluster.node import JudgingDiedError
from tlcheck.execute.given import GivenInputs
from tlcheck.execute.request import Request

if TYPE_CHECKING:
    from tlcheck.cluster.connection import RayCluster


_TRIES = 4  # of a snapshot whose node dies
_PAUSE = 5.0  # seconds before nodes are asked again where none takes part


class NodeJudge:
    """Judges one snapshot after the other, as `JudgingProcess` does, each on the node that has least to do."""

    def __init__(self, cluster: RayCluster) -> None:
        self._cluster = cluster
        self._node = ""  # that is at it
        self._code = -signal.SIGKILL
        self._killed = False

    def verdicts(self, snapshot: Path, request: Request | None, inputs: GivenInputs | None) -> bytes:
        """Of `JudgingProcess`; EOFError also where no node came to the end of it."""
        arrays = Path(inputs.file).read_bytes() if inputs is not None else b""
        for _ in range(_TRIES):
            self._node = self._somebody()
            try:
                return self._cluster.judge(self._node, snapshot.read_bytes(), request, inputs, arrays).result()
            except JudgingDiedError as error:
                self._code = error.code
                raise EOFError from None
            except self._cluster.lost:
                self._cluster.leave(self._node)
            finally:
                self._node = ""
        raise EOFError

    def _somebody(self) -> str:
        """A node that takes part, as soon as there is one."""
        while not self._killed:
            if node := self._cluster.idlest():
                return node
            time.sleep(_PAUSE)
        raise EOFError

    def end(self) -> int:
        """Of `JudgingProcess`."""
        return self._code

    def kill(self) -> None:
        """Cancel what it is at, and with it all that its node does."""
        self._killed = True
        if self._node:
            self._cluster.leave(self._node)
