"""Verdicts of snapshots, kept under the hashes of the snapshot and of the code that judges."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version

from tlcheck import results
from tlcheck.cache import records
from tlcheck.cache.code import code_of
from tlcheck.cache.store import Cache, key_of
from tlcheck.results import AtomicResult, Result
from tlcheck.session import Lowered
from tlcheck.toolchain.client import Failure

_CODE = ("analysis", "rules", "snapshot", "cache", "check.py", "results.py", "remedies.py", "toolchain/releases.py")
_PACKAGES = ("apache-tvm", "numpy")


@dataclass(frozen=True)
class _Verdicts:
    """What of a result comes from the snapshot alone."""

    atomics: tuple[AtomicResult, ...]
    failure: Failure | None
    pass_configs: Mapping[str, str] | None


def result_of(lowered: Lowered, cache: Cache) -> Result:
    """Check the snapshot of a run, unless that was done before."""
    if not lowered.digest:
        return results.result_of(lowered)
    key = key_of(code_of(*_CODE), [version(p) for p in _PACKAGES], platform.python_version(), lowered.digest)
    content = cache.get("verdicts", key)
    if content is not None:
        return _restored(lowered, records.loads(_Verdicts, content))
    result = results.result_of(lowered)
    if result.failure is None or result.failure.kind != "internal":
        cache.put("verdicts", key, records.dumps(_Verdicts(result.atomics, result.failure, result.pass_configs)))
    return result


def _restored(lowered: Lowered, kept: _Verdicts) -> Result:
    """The source lines are read anew: a comment beside an atomic changes them and not the snapshot."""
    result = Result(lowered.run, kept.atomics, kept.failure, pass_configs=kept.pass_configs)
    return replace(results.with_lines(result), notes=results.notes_of(lowered))
