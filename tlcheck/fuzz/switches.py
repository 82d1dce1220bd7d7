"""Pass configurations that are on or off, and change no result where TileLang is right."""

from __future__ import annotations

SWITCHES = (
    "tl.disable_warp_specialized",
    "tl.disable_tma_lower",
    "tl.enable_aggressive_shared_memory_merge",
    "tl.disable_shared_memory_reuse",
    "tl.disable_loop_unswitching",
    "tl.loop_unswitching_allow_non_trivial_else",
    "tl.enable_async_copy",
    "tl.enable_lower_ldgstg",
    "tl.disable_wgmma",
    "tl.storage_rewrite_detect_inplace",
    "tl.force_let_inline",
)
