"""How many blocks one multiprocessor holds at once, by what is known before a compiler runs.

Registers are not: `tlcheck gate --compile` has nvcc tell them. Source: CUDA Programming Guide, "Compute Capabilities".
"""

from __future__ import annotations

from tlcheck.targets.target import Target


def resident_blocks(target: Target, threads: int, shared: int) -> tuple[int, str]:
    """At most so many blocks, and what limits them: `shared memory`, `threads` or `blocks`.

    shared: bytes of a block. 0 blocks: the kernel cannot be launched.
    """
    limits = target.limits
    if shared > limits.shared:
        return 0, "shared memory"
    reserved = limits.multiprocessor_shared - limits.shared  # of each block, by the driver
    warps = -(-threads // target.warp)
    by_shared = limits.multiprocessor_shared // (shared + reserved) if shared + reserved else limits.resident_blocks
    found = [
        (by_shared, "shared memory"),
        (limits.resident_threads // (warps * target.warp), "threads"),
        (limits.resident_blocks, "blocks"),
    ]
    return min(found)
