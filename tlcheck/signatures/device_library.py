"""Functions of TileLang's device library (tl_templates/cuda): reductions, scans, products."""

from __future__ import annotations

from tlcheck.signatures.calls import template_arguments
from tlcheck.signatures.signature import Address, Collective, Completion, CountedAs, Family, Proxy, Signature
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.lookup import TARGETS

_OF_LANES = Signature(exchanges=True, collective=Collective.WARP)
_NARROWEST = min(target.warp for target in TARGETS.values())  # a warp of any target has as many threads


def _all_reduce(name: str, args: tuple[Expr, ...]) -> Signature:
    """tl::AllReduce<op, threads, ...>(value[, workspace])."""
    threads = _threads(name)
    if len(args) < 2 or 0 < threads <= _NARROWEST:
        return _OF_LANES
    return Signature(
        updates=tuple(Address(at) for at in range(1, len(args))),
        waits=True,
        releases=True,
        exchanges=True,
        collective=Collective.BLOCK,
        group=threads,
    )


def _all_reduce_batch(name: str, args: tuple[Expr, ...]) -> Signature:
    """tl::AllReduce<op, threads, ...>::run_batch(address of values[, workspace])."""
    threads = _threads(name)
    if len(args) < 2 or 0 < threads <= _NARROWEST:
        return Signature(updates=(Address(0),), exchanges=True, collective=Collective.WARP)
    return Signature(
        updates=tuple(Address(at) for at in range(len(args))),
        waits=True,
        releases=True,
        exchanges=True,
        collective=Collective.BLOCK,
        group=threads,
    )


def _threads(name: str) -> int:
    """Return how many neighbouring threads a reduction is over; 0 where its name does not say."""
    threads = template_arguments(name)[1:2]
    return int(threads[0]) if threads and threads[0].isdigit() else 0


REDUCTIONS = Family(
    "reductions",
    "reduce.h; tvm_thread_allreduce: TVM, lower_thread_allreduce",
    {
        "tl::AllReduce": _all_reduce,
        "tl::AllReduce::run_hopper": _all_reduce,
        "tl::AllReduce::run_batch": _all_reduce_batch,
        **{
            f"{prefix}warp_reduce_{operation}": _OF_LANES
            for operation in ("sum", "max", "min", "bitand", "bitor")
            for prefix in ("", "tl::")
        },
        # (1, value, condition, result, axes)
        "tvm_thread_allreduce": Signature(
            writes=(Address(3),), waits=True, releases=True, exchanges=True, collective=Collective.BLOCK
        ),
    },
)

_SCAN = Signature(reads=(Address(0),), writes=(Address(1),), collective=Collective.BLOCK)

SCANS = Family(
    "scans",
    "scan.h",
    {f"tl::{scan}{dimensions}D": _SCAN for scan in ("CumSum", "CumMax", "InclusiveScan") for dimensions in (1, 2)},
)


def _gemm(name: str, args: tuple[Expr, ...]) -> Signature:
    """(name with template arguments, A, B, C). The last of them say whether it is wgmma, and what it waits for."""
    words = template_arguments(str(args[0].value))
    wgmma = words[12:13] == ["true"]
    return Signature(
        reads=(Address(1), Address(2)),
        updates=(Address(3),),
        asynchronous=Completion.WGMMA_GROUP if wgmma and words[13:14] not in ([], ["0"]) else None,
        proxy=Proxy.ASYNC if wgmma else Proxy.GENERIC,
        collective=Collective.BLOCK,
    )


PRODUCTS = Family(
    "tl::gemm", "gemm_mma.h, gemm_sm90.h", {"tl_gemm": _gemm}, needs="mma", counted=CountedAs.LIBRARY_PRODUCT
)

_DECODE = Signature(reads=(Address(0),), writes=(Address(1),))

NUMBERS = Family(
    "packed numbers",
    "functions that TileLang's examples import",
    {
        "decode_i2u_to_i8s": _DECODE,
        "decode_i2s_to_i8s": _DECODE,
        "decode_i4u_to_f16": _DECODE,
        "decode_i4s_to_f16": _DECODE,
        "decode_fp4_to_bf16_twiddling": _DECODE,
    },
)

DP4A = Family(
    "dp4a",
    "PTX 9.7.1.23; common.h",
    {"DP4A": Signature(reads=(Address(0), Address(1)), updates=(Address(2),))},
    needs="dp4a",
)
