"""Exchange of values within a warp: shuffles, votes, matches, and the election of a thread."""

from __future__ import annotations

from tlcheck.signatures.signature import Collective, Family, Signature

_OF_WARP = Signature(collective=Collective.WARP)
_OF_LANES = Signature(exchanges=True, collective=Collective.WARP)

SHUFFLES = Family(
    "shfl",
    "PTX 9.7.9.6",
    {
        **{
            f"{prefix}shfl_{direction}sync": _OF_LANES
            for direction in ("xor_", "up_", "down_", "")
            for prefix in ("", "__", "tl::")
        },
        "tvm_warp_shuffle": _OF_LANES,
        "tvm_warp_shuffle_xor": _OF_LANES,
        "tvm_warp_shuffle_up": _OF_LANES,
        "tvm_warp_shuffle_down": _OF_LANES,
    },
)

VOTES = Family(
    "vote",
    "PTX 9.7.13.11 to 9.7.13.13: vote, match, activemask",
    {
        **{
            f"{prefix}{name}": _OF_WARP
            for name in ("ballot_sync", "any_sync", "all_sync", "activemask", "match_any_sync")
            for prefix in ("", "__")
        },
        "ballot": _OF_WARP,
        "tvm_warp_activemask": _OF_WARP,
        "match_all_sync": _OF_WARP,
    },
)

ELECTIONS = Family(
    "elect",
    "PTX 9.7.13.16",
    {"tl_shuffle_elect": _OF_WARP, "shuffle_elect": _OF_WARP},
    needs="elect",
)
