"""The gate's result for programs, in the form that `gate_schema.json` beside this file describes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from tlcheck import __version__
from tlcheck.facts import to_json
from tlcheck.gate.device import DeviceRun, Found
from tlcheck.gate.gate import Gate
from tlcheck.gate.groups import Group, groups
from tlcheck.gate.outcome import Comparison, Outcome, Side
from tlcheck.gate.words import verdict_in_words
from tlcheck.run.results import DeviceResult

SCHEMA = 2


def render(gate: Gate) -> str:
    """The whole report, indented, with a newline at its end."""
    report = {
        "schema": SCHEMA,
        "tlcheck": __version__,
        "exit_code": gate.exit_code,
        "verdict": verdict_in_words(gate),
        "failing": list(gate.failing),
        "from": {"name": gate.before, "versions": dict(sorted(gate.versions[0].items()))},
        "to": {"name": gate.after, "versions": dict(sorted(gate.versions[1].items()))},
        "nvcc": gate.compiler or None,
        "device": _device_run(gate.device) if gate.device is not None else None,
        "summary": dict(gate.counts()),
        "notes": list(gate.notes),
        "groups": [_group(group) for group in groups(gate.comparisons)],
        "comparisons": [_comparison(compared) for compared in gate.comparisons],
    }
    return json.dumps(report, indent=2) + "\n"


def _group(group: Group) -> Mapping[str, Any]:
    return {
        "class": group.klass,
        "kind": group.kind,
        "before": group.before,
        "after": group.after,
        "accepted": group.accepted or None,
        "members": [
            {"case": compared.case, "target": compared.target, "subject": outcome.subject}
            for compared, outcome in group.members
        ],
    }


def _comparison(compared: Comparison) -> Mapping[str, Any]:
    return {
        "case": compared.case,
        "file": compared.file,
        "source": compared.source,
        "captured": compared.captured,
        "name": compared.name,
        "target": compared.target,
        "class": compared.klass,
        "outcomes": [_outcome(outcome) for outcome in compared.outcomes],
        "before": _side(compared.before),
        "after": _side(compared.after),
    }


def _outcome(outcome: Outcome) -> Mapping[str, Any]:
    return {
        "id": outcome.id,
        "class": outcome.klass,
        "kind": outcome.kind,
        "subject": outcome.subject,
        "before": outcome.before,
        "after": outcome.after,
        "words": outcome.words,
        "line": outcome.line,
        "detail": outcome.detail,
        "rule": outcome.finding.rule if outcome.finding is not None else None,
        "accepted": outcome.accepted or None,
    }


def _side(side: Side | None) -> Mapping[str, Any] | None:
    if side is None:
        return None
    failure, compiled = side.result.failure, side.compiled
    return {
        "failure": {"kind": failure.kind, "phase": failure.phase, "message": failure.message} if failure else None,
        "expected": side.result.excuse is not None,
        "seconds": side.seconds,
        "claims": [
            {
                "kind": a.kind,
                "buffer": a.buffer,
                "line": a.source.line,
                "verdict": a.verdict,
                "rule": a.finding.rule if a.finding is not None else None,
                "instructions": list(a.instructions),
            }
            for a in side.result.claims
        ],
        "facts": to_json(side.facts) if side.facts is not None else None,
        "device": _device(side.device) if side.device is not None else None,
        "nvcc": None
        if compiled is None
        else {
            "registers": compiled.registers,
            "spills": compiled.spills,
            "shared": compiled.shared,
            "error": compiled.error or None,
        },
    }


def _device(result: DeviceResult) -> Mapping[str, Any]:
    """error: the largest relative one; None where it is no number."""
    error = result.worst_error
    return {
        "status": result.status,
        "reason": result.reason,
        "inputs": len(result.trials),
        "error": error if error is not None and math.isfinite(error) else None,
        "source": result.source,
        "difference": list(result.difference),
        "findings": [
            {"kind": f.kind, "buffer": f.buffer, "inputs": f.inputs, "message": f.message, "elements": list(f.elements)}
            for f in result.findings
        ],
    }


def _device_run(run: DeviceRun) -> Mapping[str, Any]:
    options = run.wanted.options
    return {
        "date": run.date,
        "commit": run.commit,
        "clocks": {"before": dict(run.clocks[0]), "after": dict(run.clocks[1])},
        "seeds": options.seeds,
        "repeats": options.repeats,
        "exact": options.exact,
        "limit": options.limit,
        "from": _found(run.before),
        "to": _found(run.after),
    }


def _found(found: Found) -> Mapping[str, Any]:
    return {"gpu": dict(found.device) or None, "missing": found.missing or None}
