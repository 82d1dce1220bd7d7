"""A process that executes sources, for a script that is captured without a GPU and asks for their values.

It reads one JSON object per line and answers each with one. A request names a kernel's snapshot in an archive, and
for `run` the arguments: a number, the file of an array, or null for a tensor that is None. `{"written": [place, ...]}`
says which parameters the kernel writes; `{"left": [place, ...]}` of which it has written elements, with
`PLACE.elements.npy` and `PLACE.values.npy` in the folder; `{"failed": reason}` why it cannot be executed.
"""

from __future__ import annotations

import json
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tlcheck.errors import UsageError, fault
from tlcheck.execute.compare.interpreter import interpret
from tlcheck.execute.memory.values import Array
from tlcheck.execute.request import ALL, SOURCE, Request
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds import given
from tlcheck.execute.worlds.budget import Budget
from tlcheck.execute.worlds.inputs import known
from tlcheck.program.roles import roles
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot


def main() -> None:
    """Answer until there are no more requests."""
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        snapshot = _snapshot(request["archive"], request["kernel"])
        if "arguments" not in request:
            return {"written": _written(snapshot)}
        return {"left": _run(snapshot, request["arguments"], Path(request["folder"]), request["seconds"])}
    except (Stopped, UsageError) as reason:
        return {"failed": str(reason)}
    except MemoryError:
        return {"failed": "more memory than there is"}
    except Exception as error:  # a fault of ours, or a kernel that no compiler takes
        return {"failed": fault(error)}


@cache
def _snapshot(archive: str, kernel: str) -> Snapshot:
    with zipfile.ZipFile(archive) as content:
        return codec.loads(content.read(kernel).decode())


def _written(snapshot: Snapshot) -> list[int]:
    function = snapshot.checkpoints[SOURCE]
    outputs = {b.data.uid for b in roles(function).outputs}
    return [place for place, p in enumerate(function.params) if p.uid in outputs]


def _run(snapshot: Snapshot, arguments: list[Any], folder: Path, seconds: float) -> list[int]:
    """Raises Stopped, and UsageError for arguments that do not fit."""
    function = snapshot.checkpoints[SOURCE]
    given.require_count(function, len(arguments))
    arrays: dict[str, Array] = {
        str(p.value): np.load(value, mmap_mode="r") if isinstance(value, str) else np.asarray(value)
        for p, value in zip(function.params, arguments, strict=True)
        if value is not None
    }
    given.require_unused(function, arrays)
    given.require_shapes(function, arrays, known(function, arrays))
    execution = interpret(snapshot, Request(ALL, (0,), given={0: arrays}, budget=Budget(seconds=seconds)))
    places = _written(snapshot)
    for place in places:
        left = execution.left[str(function.params[place].value)]
        np.save(folder / f"{place}.elements.npy", left.elements)
        np.save(folder / f"{place}.values.npy", left.values)
    return places


if __name__ == "__main__":
    main()
