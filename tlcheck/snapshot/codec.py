"""A snapshot as a file: small, stable JSON with a schema version. The form is described in docs/snapshot.md.

All nodes stand in one table, each once and after the nodes that it refers to by index, in the order in which a walk
through the checkpoints meets them: equal kernels give equal bytes.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from tlcheck.snapshot.decode import CorruptSnapshot, Decoder, check, corrupt, named_functions, text_map
from tlcheck.snapshot.encode import Encoder
from tlcheck.snapshot.ir import Snapshot

__all__ = ["SCHEMA", "CorruptSnapshot", "dumps", "loads"]

SCHEMA = 2
_READ = (1, 2)  # what a newer one adds is optional
_MAPS = ("toolchain", "args", "pass_configs", "passes")
_TEXTS = ("case", "file", "target", "cuda")


def dumps(snapshot: Snapshot) -> str:
    """The snapshot as one line of ASCII, with a newline. `dumps(loads(text)) == text` for every text that it writes."""
    encoder = Encoder()
    checkpoints = {name: encoder.function(function) for name, function in snapshot.checkpoints.items()}
    fields = {
        "schema": SCHEMA,
        "case": snapshot.case,
        "file": snapshot.file,
        "line": snapshot.line,
        "target": snapshot.target,
        "toolchain": dict(sorted(snapshot.toolchain.items())),
        "args": dict(snapshot.args),
        "pass_configs": dict(sorted(snapshot.pass_configs.items())),
        "passes": dict(snapshot.passes),
        "checkpoints": checkpoints,
        "nodes": encoder.table,
        "cuda": snapshot.cuda,
        **({"headers": snapshot.headers} if snapshot.headers else {}),
        **({"inputs": snapshot.inputs} if snapshot.inputs else {}),
    }
    return json.dumps(fields, separators=(",", ":"), allow_nan=False) + "\n"


def loads(text: str) -> Snapshot:
    """Read what `dumps` wrote. Raises CorruptSnapshot, with one line that says why, for any other text."""
    fields = _fields(text)
    decoder = Decoder()
    try:
        decoder.read(fields["nodes"])
        checkpoints = named_functions(decoder, fields["checkpoints"])
        plain: dict[str, Any] = {key: text_map(fields[key], key) for key in _MAPS}
        plain |= {key: check(fields[key], str, key) for key in _TEXTS}
        plain |= {key: check(fields.get(key, ""), str, key) for key in ("headers", "inputs")}
        return Snapshot(**plain, line=check(fields["line"], int, "line"), checkpoints=checkpoints)
    except KeyError as error:
        corrupt(f"{error} is missing")


def _fields(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        corrupt("nested too deeply")
    except ValueError as error:
        corrupt(str(error).partition("\n")[0])
    if type(fields) is not dict or "schema" not in fields:
        corrupt("no schema version")
    if fields["schema"] not in _READ or type(fields["schema"]) is not int:
        corrupt(f"schema {str(fields['schema'])[:20]}, this tlcheck reads {' and '.join(map(str, _READ))}")
    return fields


def _no_number(name: str) -> NoReturn:
    corrupt(f"{name} is no number")
