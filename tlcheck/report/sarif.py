"""SARIF 2.1.0, for code scanning: one result for each notice at the kernel's source line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tlcheck import __version__
from tlcheck.lower.runs import near
from tlcheck.report.notices import HAZARD, WARNING, Document, Notice, Subject

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(document: Document) -> str:
    """The whole log, indented, with a newline at its end. What is accepted is there, and suppressed."""
    rules = sorted({notice.id for subject in document.subjects for notice in subject.notices})
    results = [_result(s, n, rules.index(n.id)) for s in document.subjects for n in s.notices]
    driver = {
        "name": "tlcheck",
        "version": __version__,
        "rules": [{"id": name, "shortDescription": {"text": document.kinds.get(name, name)}} for name in rules],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"tlcheck/{document.command}/"},
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the folder that tlcheck ran in"}}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(subject: Subject, notice: Notice, rule: int) -> Mapping[str, Any]:
    result = {
        "ruleId": notice.id,
        "ruleIndex": rule,
        "level": WARNING if notice.level == HAZARD else notice.level,
        "message": {"text": "\n".join([f"{subject.words}: {notice.message}", *notice.detail.splitlines()])},
        "locations": [{"physicalLocation": _place(notice)}],
        "partialFingerprints": {"tlcheck/v1": _fingerprint(subject, notice)},
        "properties": {"case": subject.case, "target": subject.target},
    }
    if notice.accepted:
        result["suppressions"] = [{"kind": "external", "justification": notice.accepted}]
    return result


def _place(notice: Notice) -> Mapping[str, Any]:
    """Relative to the folder that tlcheck ran in, where it can be: code scanning finds files of the repository so."""
    path = Path(near(notice.file))
    absolute = path.is_absolute()
    artifact = {"uri": path.as_uri()} if absolute else {"uri": path.as_posix(), "uriBaseId": "SRCROOT"}
    return {"artifactLocation": artifact, "region": {"startLine": max(notice.line, 1)}}


def _fingerprint(subject: Subject, notice: Notice) -> str:
    """Equal for the same notice of the same case, wherever its lines have moved."""
    what = "\0".join((notice.id, subject.case, subject.target, notice.title))
    return hashlib.sha256(what.encode(errors="backslashreplace")).hexdigest()[:32]
