"""Verdicts of snapshots as plain data, kept under the hashes of the snapshot and of the code that judges."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import msgspec

from tlcheck.cache.code import code_of
from tlcheck.cache.store import Cache, key_of
from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.execute.request import Request
from tlcheck.execute.stops import MEMORY, TIME
from tlcheck.program.device_library import known_headers
from tlcheck.verdicts.claim import Claim
from tlcheck.worker.protocol import Failure

_PACKAGES = ("apache-tvm", "ml_dtypes", "numpy")
_KEPT = ("check",)  # kinds of failures that say something of the snapshot; any other may not come again


@dataclass(frozen=True)
class Verdicts:
    """A record of what of a result comes from the snapshot alone: its claims, or why it was not checked.

    notes, source_digest, cost: see `Result`.
    """

    claims: tuple[Claim, ...] = ()
    failure: Failure | None = None
    pass_configs: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()
    source_digest: str = ""
    cost: KernelCost | None = None


# Several threads read verdicts, and where two of them are the first to ask msgspec for a type, Python crashes.
msgspec.convert({}, Verdicts)


def dumps(verdicts: Verdicts) -> bytes:
    """Verdicts as JSON, in ASCII: texts of kernels may be no valid Unicode."""
    return json.dumps(msgspec.to_builtins(verdicts), separators=(",", ":")).encode()


def loads(content: bytes) -> Verdicts:
    """Read what `dumps` wrote."""
    return msgspec.convert(json.loads(content), Verdicts)


def known(cache: Cache, digest: str, request: Request | None) -> Verdicts | None:
    """The verdicts of a snapshot with this hash, if this code has judged and executed it so before.

    Those with its cost serve where that is not asked for.
    """
    content = cache.get("verdicts", _key(digest, request))
    if content is None and request is not None and not request.cost:
        content = cache.get("verdicts", _key(digest, replace(request, cost=True)))
    return loads(content) if content is not None else None


def keep(cache: Cache, digest: str, request: Request | None, verdicts: Verdicts) -> None:
    """Keep verdicts; not those of a fault of tlcheck's own, nor what ran out of time or memory."""
    if any(claim.code in (TIME.code, MEMORY.code) for claim in verdicts.claims):
        return
    if verdicts.failure is None or verdicts.failure.kind in _KEPT:
        cache.put("verdicts", _key(digest, request), dumps(verdicts))


def _key(digest: str, request: Request | None) -> str:
    code = code_of("proofs" if request is None else "verdicts")
    return key_of(code, _versions(), platform.python_version(), digest, repr(request), known_headers())


@cache
def _versions() -> tuple[str, ...]:
    """Return the versions of the packages that take part, looked up once: that takes milliseconds each time."""
    return tuple(_version(package) for package in _PACKAGES)


def _version(package: str) -> str:
    """Empty where it is not there, as the prover is not on a machine that only runs kernels."""
    from importlib.metadata import PackageNotFoundError, version  # 10 ms, which a judging process does not need

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
