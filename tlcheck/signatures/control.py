"""Leaving loops and the kernel, numbers of threads, and hints."""

from __future__ import annotations

from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.signature import Family, Leaves, Signature
from tlcheck.snapshot.ir import Expr

_BREAK, _CONTINUE = Signature(leaves=Leaves.LOOP), Signature(leaves=Leaves.ITERATION)
_NOTHING = Signature()
_THREAD = "launch_thread_idx"

FAMILY = Family(
    "control",
    "TIR; PTX 10, special registers; nanosleep; tools/cuda/iket of TileLang",
    {
        "loop_break": _BREAK,
        "break_loop": _BREAK,
        "loop_continue": _CONTINUE,
        "continue_loop": _CONTINUE,
        "thread_return": Signature(leaves=Leaves.KERNEL),
        _THREAD: _NOTHING,
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


def thread_axis(e: Expr) -> int | None:
    """Return the axis, 0 to 2, of which an expression is the thread's number in its block; None for another one."""
    if e.op != "call" or not e.args or name_of_call(e) != _THREAD or not isinstance(e.args[0].value, int):
        return None
    return e.args[0].value if 0 <= e.args[0].value < 3 else None
