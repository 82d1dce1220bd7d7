"""Leaving loops and the kernel, numbers of threads, and hints."""

from __future__ import annotations

from tlcheck.signatures.signature import Family, Signature

_LEAVES = Signature(leaves=True)
_NOTHING = Signature()

FAMILY = Family(
    "control",
    "TIR; PTX 10, special registers; nanosleep; tools/cuda/iket of TileLang",
    {
        "loop_break": _LEAVES,
        "break_loop": _LEAVES,
        "loop_continue": _LEAVES,
        "continue_loop": _LEAVES,
        "thread_return": _LEAVES,
        "launch_thread_idx": _NOTHING,
        "get_lane_idx": _NOTHING,
        "get_warp_idx": _NOTHING,
        "get_warp_idx_sync": _NOTHING,
        "get_warp_group_idx": _NOTHING,
        "warpgroup_fence_operand": _NOTHING,  # keeps the C++ compiler from moving registers
        "prefetch_tma_descriptor": _NOTHING,
        "tl::prefetch_tma_descriptor": _NOTHING,
        "__nanosleep": _NOTHING,
        "TL_IKET_EVENT": _NOTHING,
        "TL_IKET_EVENT_PAYLOAD_U32": _NOTHING,
        "TL_IKET_EVENT_PAYLOAD_F32": _NOTHING,
    },
)
