"""Verdicts of snapshots, kept under the hashes of the snapshot and of the code that judges."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import msgspec

from tlcheck.cache.code import code_of
from tlcheck.cache.store import Cache, key_of
from tlcheck.lower.runs import Lowered
from tlcheck.verdicts import results
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.results import Result
from tlcheck.worker.protocol import Failure

_CODE = ("witness.py", "algebra", "program", "prove", "verdicts", "snapshot", "cache", "toolchain/releases.py")
_PACKAGES = ("apache-tvm", "numpy")


@dataclass(frozen=True)
class _Verdicts:
    """What of a result comes from the snapshot alone."""

    claims: tuple[Claim, ...]
    failure: Failure | None
    pass_configs: Mapping[str, str] | None


def result_of(lowered: Lowered, kept: Cache) -> Result:
    """Check the snapshot of a run, unless that was done before."""
    if not lowered.digest:
        return results.result_of(lowered)
    key = key_of(code_of(*_CODE), _versions(), platform.python_version(), lowered.digest)
    content = kept.get("verdicts", key)
    if content is not None:
        return _restored(lowered, msgspec.json.decode(content, type=_Verdicts))
    result = results.result_of(lowered)
    if result.failure is None or result.failure.kind != "internal":
        kept.put("verdicts", key, msgspec.json.encode(_Verdicts(result.claims, result.failure, result.pass_configs)))
    return result


@cache
def _versions() -> tuple[str, ...]:
    """Of the packages that take part, looked up once: that takes milliseconds each time."""
    return tuple(_version(package) for package in _PACKAGES)


def _version(package: str) -> str:
    """Empty where it is not there, as the prover is not on a machine that only runs kernels."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _restored(lowered: Lowered, kept: _Verdicts) -> Result:
    """The source lines are read anew: a comment beside an atomic changes them and not the snapshot."""
    result = Result(lowered.run, kept.claims, kept.failure, pass_configs=kept.pass_configs)
    return replace(results.with_lines(result), notes=results.notes_of(lowered))
