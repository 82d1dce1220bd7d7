"""How many blocks one multiprocessor holds at once, by what is known before a compiler runs.

Registers are what nvcc tells, if it ran. Source: CUDA Programming Guide, "Compute Capabilities".
"""

from __future__ import annotations

from tlcheck.targets.target import Target

_UNIT = 256  # registers, in multiples of which a warp has them


def resident_blocks(target: Target, threads: int, shared: int, registers: int = 0) -> tuple[int, str]:
    """At most so many blocks, and what limits them: `shared memory`, `threads`, `blocks` or `registers`.

    shared: bytes of a block. registers: of a thread, 0 where unknown. 0 blocks: the kernel cannot be launched.
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
    if registers:
        of_warp = -(-registers * target.warp // _UNIT) * _UNIT
        found.append((limits.multiprocessor_registers // of_warp // warps, "registers"))
    return min(found)
