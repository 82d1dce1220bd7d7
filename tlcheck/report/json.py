"""The report for programs, in the form that `schema.json` beside this file describes: equal runs give equal bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tlcheck import __version__
from tlcheck.prove.difference import Witness
from tlcheck.verdicts.results import AtomicResult, Excuse, FindingResult, Result
from tlcheck.verdicts.words import VERDICTS, witness_in_words
from tlcheck.worker.protocol import Failure

SCHEMA = 1


def render(results: list[Result], notes: list[str], exit_code: int) -> str:
    """The whole report, indented, with a newline at its end."""
    report = {
        "schema": SCHEMA,
        "tlcheck": __version__,
        "exit_code": exit_code,
        "summary": _summary(results),
        "notes": notes,
        "runs": [_run(result) for result in results],
    }
    return json.dumps(report, indent=2) + "\n"


def _summary(results: list[Result]) -> Mapping[str, int]:
    failures = [result for result in results if result.failure is not None]
    excused = sum(result.excuse is not None for result in failures)
    return {
        "cases": len({(result.run.case, result.saved) for result in results}),
        "runs": len(results),
        "atomics": sum(len(result.atomics) for result in results),
        **{verdict: sum(result.count(verdict) for result in results) for verdict in VERDICTS},
        "not_checked": len(failures) - excused,
        "expected_errors": excused,
        "unexpectedly_fine": sum(len(result.broken) for result in results),
    }


def _run(result: Result) -> Mapping[str, Any]:
    run = result.run
    return {
        "case": run.case,
        "file": run.file,
        "name": run.name,
        "target": run.target,
        "snapshot": result.saved or None,
        "toolchain": {"name": run.toolchain, "versions": dict(sorted(run.versions.items()))},
        "args": dict(run.args),
        "pass_configs": dict(result.pass_configs or {}),
        "checked": result.failure is None,
        "failure": _failure(result.failure) if result.failure else None,
        "excuse": _excuse(result.excuse),
        "unexpectedly_fine": list(result.broken),
        "notes": list(result.notes),
        "atomics": [_atomic(atomic) for atomic in result.atomics],
    }


def _failure(failure: Failure) -> Mapping[str, str]:
    return {
        "kind": failure.kind,
        "phase": failure.phase,
        "message": failure.message,
        "detail": failure.detail,
        "where": failure.where,
    }


def _excuse(excuse: Excuse | None) -> Mapping[str, str] | None:
    return {"kind": excuse.kind, "reason": excuse.reason} if excuse else None


def _atomic(atomic: AtomicResult) -> Mapping[str, Any]:
    source = atomic.source
    return {
        "buffer": atomic.buffer,
        "operation": atomic.operation,
        "call": atomic.call,
        "source": {"file": source.file, "line": source.number, "exact": source.exact, "text": source.text},
        "verdict": atomic.verdict,
        "reason": atomic.reason,
        "checkpoints": [{"name": name, "additions": status} for name, status in atomic.checkpoints],
        "instructions": list(atomic.instructions),
        "finding": _finding(atomic, atomic.finding) if atomic.finding else None,
        "excuse": _excuse(atomic.excuse),
    }


def _finding(atomic: AtomicResult, finding: FindingResult) -> Mapping[str, Any]:
    excerpt = finding.excerpt
    return {
        "rule": finding.rule,
        "name": finding.name,
        "title": finding.title,
        "also": list(finding.also),
        "checkpoint": finding.checkpoint,
        "pass": finding.pass_name,
        "what": finding.what,
        "layout": finding.layout,
        "tir": {"line": excerpt.marked, "first": excerpt.first, "lines": list(excerpt.lines)} if excerpt else None,
        "witness": {**_witness(finding.witness), "words": witness_in_words(finding.witness, atomic.buffer)},
        "advice": finding.advice,
        "pass_config": finding.pass_config,
        "right_from": atomic.right_from,
    }


def _witness(witness: Witness) -> Mapping[str, Any]:
    return {
        "instance": dict(witness.instance),
        "iteration": dict(witness.iteration),
        "thread": witness.thread,
        "lane": witness.lane,
        "element": None if witness.element is None else list(witness.element),
        "intended": witness.intended,
        "written": witness.written,
        "stride": witness.stride,
    }
