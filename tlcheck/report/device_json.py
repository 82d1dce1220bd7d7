"""The report of `tlcheck run` for programs: everything measured, and where and when."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from tlcheck import __version__
from tlcheck.run.examination import Examination
from tlcheck.run.results import DeviceResult
from tlcheck.verdicts.claim import Claim

SCHEMA = 1


def render(examinations: Sequence[Examination], commit: str, notes: Sequence[str], exit_code: int) -> str:
    """The whole report, with a newline at its end."""
    report = {
        "schema": SCHEMA,
        "tlcheck": __version__,
        "commit": commit,
        "exit_code": exit_code,
        "notes": list(notes),
        "examinations": [_examination(examination) for examination in examinations],
    }
    return json.dumps(report, indent=1) + "\n"


def _examination(examination: Examination) -> Mapping[str, Any]:
    before, after = examination.clocks
    return {
        "toolchain": examination.toolchain,
        "device": dict(examination.device),
        "clocks": {"before": dict(before), "after": dict(after)},
        "date": examination.date,
        "passed_over": examination.passed_over,
        "runs": [_run(result) for result in examination.results],
    }


def _run(result: DeviceResult) -> Mapping[str, Any]:
    run = result.run
    return {
        "case": run.case,
        "target": run.target,
        "versions": dict(sorted(run.versions.items())),
        "args": dict(run.args),
        "status": result.status,
        "reason": result.reason,
        "excused": result.excused,
        "findings": [asdict(found) for found in result.findings],
        "source": result.source,
        "difference": list(result.difference),
        "refuted": [_refuted(claim) for claim in result.refuted],
        "sanitized": [asdict(found) for found in result.sanitized],
        "timing": asdict(result.timing) if result.timing else None,
        "seconds": dict(result.seconds),
        "trials": [dict(trial) for trial in result.trials],
    }


def _refuted(claim: Claim) -> Mapping[str, Any]:
    found = claim.finding
    assert found is not None
    return {
        "buffer": claim.buffer,
        "rule": found.rule,
        "what": found.what,
        "witness": {**msgspec.structs.asdict(found.witness), "in_words": found.words},
    }
