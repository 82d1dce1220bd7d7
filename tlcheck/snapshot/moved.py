"""The snapshot of a kernel that stands elsewhere in its file now, and is otherwise as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tlcheck.snapshot.ir import Stmt

_STATEMENTS = frozenset(kind.__name__ for kind in Stmt.__subclasses__())


def moved(text: str, place: Mapping[str, Any], lines: Mapping[int, int]) -> str | None:
    """The text of such a snapshot, as `codec.dumps` would write it; None where it names a line that is not in `lines`.

    place: `file`, `line` and `args` of the kernel now. lines: of statements, before and now.
    """
    fields = {**json.loads(text), **place}
    for entry in fields["nodes"]:
        if entry[0] in _STATEMENTS and entry[1]:
            if entry[1] not in lines:
                return None
            entry[1] = lines[entry[1]]
    return json.dumps(fields, separators=(",", ":")) + "\n"
