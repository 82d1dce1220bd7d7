"""Describe how many blocks one multiprocessor holds at once, by what is known before a compiler runs.

Registers are what a compiler tells, if it ran. Sources: CUDA Programming Guide, "Compute Capabilities"; of AMD's see
`targets.amd`.
"""

from __future__ import annotations

from tlcheck.targets.target import Target


def resident_blocks(target: Target, threads: int, shared: int, registers: int = 0) -> tuple[int, str]:
    """Return how many blocks fit, and what limits them: `shared memory`, `threads`, `blocks` or `registers`.

    shared: bytes of a block. registers: of a thread (AMD: VGPRs and AGPRs), 0 where unknown. 0 blocks: the kernel
    cannot be launched.
    """
    limits = target.limits
    if shared > limits.shared:
        return 0, "shared memory"
    reserved = limits.multiprocessor_shared - limits.shared  # of each block, by the driver
    warps = -(-threads // target.warp)
    each = -(-(shared + reserved) // limits.shared_unit) * limits.shared_unit
    by_shared = limits.multiprocessor_shared // each if each else limits.resident_blocks
    found = [
        (by_shared, "shared memory"),
        (limits.resident_threads // (warps * target.warp), "threads"),
        (limits.resident_blocks, "blocks"),
    ]
    if registers:
        of_warp = -(-registers * target.warp // limits.register_unit) * limits.register_unit
        of_file = limits.multiprocessor_registers // limits.register_files // of_warp  # warps
        found.append((of_file * limits.register_files // warps, "registers"))
    return min(found)
