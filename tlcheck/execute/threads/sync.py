"""Synchronization of a block's threads: bar.sync (PTX 9.7.13.1), __syncwarp.

Statements run in all lanes before the next one does, so that a barrier has nothing to wait for; what it orders is the
business of the machine's watchers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlcheck.execute.registry import call
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.codes import Run
    from tlcheck.execute.machine import Machine


@call("tvm_storage_sync", "sync_threads", "sync_warp", "sync_grid", "syncwarp")
def storage_sync(e: Expr, machine: Machine) -> Run:
    """All threads (of the block, the warp, or those that a named barrier counts) have come here."""
    return lambda frame: 0
