"""The parts of SARIF 2.1.0 that tlcheck writes, as a JSON Schema of our own: nothing else may be in a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TEXT = {"type": "string", "minLength": 1}


def _object(required: Sequence[str], **properties: Any) -> Mapping[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


def _list(items: Any, **rules: Any) -> Mapping[str, Any]:
    return {"type": "array", "items": items, **rules}


_MESSAGE = _object(("text",), text=TEXT)
_ARTIFACT = _object(("uri",), uri={"type": "string", "pattern": r"^[^\\ ]+$"}, uriBaseId=TEXT)
_REGION = _object(("startLine",), startLine={"type": "integer", "minimum": 1})
_LOCATION = _object(
    ("physicalLocation",),
    physicalLocation=_object(("artifactLocation", "region"), artifactLocation=_ARTIFACT, region=_REGION),
)
_SUPPRESSION = _object(("kind",), kind={"enum": ["inSource", "external"]}, justification=TEXT)
_RESULT = _object(
    ("message",),
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level={"enum": ["none", "note", "warning", "error"]},
    message=_MESSAGE,
    locations=_list(_LOCATION, minItems=1),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    suppressions=_list(_SUPPRESSION, minItems=1),
    properties={"type": "object"},
)
_RULE = _object(("id",), id=TEXT, shortDescription=_MESSAGE)
_DRIVER = _object(("name",), name=TEXT, version=TEXT, rules=_list(_RULE, uniqueItems=True))
_RUN = _object(
    ("tool",),
    tool=_object(("driver",), driver=_DRIVER),
    automationDetails=_object((), id=TEXT),
    originalUriBaseIds={"type": "object", "additionalProperties": _object((), description=_MESSAGE)},
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=_list(_RESULT),
)
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_object(
        ("version", "runs"),
        version={"const": "2.1.0"},
        runs=_list(_RUN),
        **{"$schema": {"type": "string", "format": "uri"}},
    ),
}
