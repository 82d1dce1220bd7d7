"""Judging snapshots on nodes."""

from __future__ import annotations

import signal
from pathlib import Path

from tlcheck.cluster.node import Arrays, JudgingDiedError, NoInputsError
from tlcheck.cluster.nodes import RayNodes
from tlcheck.errors import UsageError
from tlcheck.execute.request import GivenInputs, Request

_TRIES = 4  # of a snapshot whose node dies


class ClusterJudge:
    """Judges one snapshot after the other, as `JudgingProcess` does, each on the node that has least to do."""

    def __init__(self, nodes: RayNodes) -> None:
        self._nodes = nodes
        self._node = ""  # that is at it
        self._code = -signal.SIGKILL
        self._killed = False

    def verdicts(self, snapshot: Path, request: Request | None, inputs: GivenInputs | None) -> bytes:
        """Implement `JudgingProcess`; EOFError also where no node came to the end of it."""
        near, arrays = self._arrays(inputs)
        unable: set[str] = set()
        for _ in range(_TRIES):
            self._node = self._nodes.free(unable, near, lambda: self._killed)
            if not self._node:
                raise EOFError
            try:
                return self._nodes.judge(self._node, snapshot.read_bytes(), request, inputs, arrays).result()
            except JudgingDiedError as error:
                self._code = error.code
                raise EOFError from None
            except (NoInputsError, UsageError):
                unable.add(self._node)
            except self._nodes.lost:
                self._nodes.leave(self._node)
            finally:
                self._node = ""
        raise EOFError

    def _arrays(self, inputs: GivenInputs | None) -> tuple[str, Arrays]:
        """The node that has a case's own inputs, if one has, and these."""
        if inputs is None:
            return "", Arrays()
        if (staying := self._nodes.inputs(inputs.file)) is not None:
            return staying[0], Arrays(order=staying[1])
        return "", Arrays(Path(inputs.file).read_bytes())

    def end(self) -> int:
        """Implement `JudgingProcess`."""
        return self._code

    def kill(self) -> None:
        """Cancel what it is at, and with it all that its node does."""
        self._killed = True
        if self._node:
            self._nodes.leave(self._node)
