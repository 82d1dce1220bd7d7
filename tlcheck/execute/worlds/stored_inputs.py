"""Inputs within a snapshot: arrays in NumPy's format and what they are, compressed, as text."""

from __future__ import annotations

import base64
import json
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.execute.request import GivenInputs

_MOST = 1 << 26  # bytes of arrays
_MOST_PACKED = 1 << 24


def packed(inputs: GivenInputs) -> str:
    """Return the inputs as text; empty where they take more than 64 MiB, or 16 MiB when they are compressed."""
    file = Path(inputs.file)
    if file.stat().st_size > _MOST:
        return ""
    facts = json.dumps({**asdict(inputs), "file": ""}).encode()
    content = zlib.compress(len(facts).to_bytes(4, "little") + facts + file.read_bytes())
    return base64.b64encode(content).decode() if len(content) <= _MOST_PACKED else ""


@contextmanager
def unpacked(text: str) -> Iterator[GivenInputs]:
    """The inputs, whose file is there until the end. Raises UsageError for what `packed` did not write."""
    try:
        stream = zlib.decompressobj()
        content = stream.decompress(base64.b64decode(text, validate=True), 2 * _MOST)
        begin = 4 + int.from_bytes(content[:4], "little")
        facts = json.loads(content[4:begin])
        sets = tuple((int(seed), tuple(map(int, places))) for seed, places in facts["sets"])
        unknown = tuple(tuple(map(int, places)) for places in facts["unknown"])
        updates = None if facts["updates"] is None else tuple(map(str, facts["updates"]))
        where, captured = str(facts["where"]), bool(facts["captured"])
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise UsageError("the inputs in the snapshot are damaged: save it again") from error
    with tempfile.NamedTemporaryFile(prefix="tlcheck-inputs-") as file:
        file.write(content[begin:])
        file.flush()
        yield GivenInputs(file.name, sets, where, updates, unknown, captured)
