"""Define what the table of the device library says of the kernels of `adds.py`: `python -m tests.hardware.adds_expected
DIR`.

DIR has their snapshots: `tlcheck check tests/hardware/adds.py --quick --save DIR`, with each release. Writes
`adds-expected.json`: release -> case -> calls of the library with what each does, and what tlcheck says of the kernel.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tlcheck.program.instructions import Instruction
from tlcheck.prove.subject import device_of, subject
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.atomic_claims import judge_atomics

FILE = Path(__file__).with_name("adds-expected.json")
LAST = "device-tir"


def expected(snapshot: Snapshot) -> dict[str, Any]:
    """Return what is expected of one kernel."""
    of = subject(snapshot)
    made = [instruction for _, instruction in of.calls(of.found[LAST].sites, LAST)]
    claims = judge_atomics(snapshot).claims
    rules = sorted({claim.finding.rule for claim in claims if claim.finding is not None})
    verdicts = sorted({claim.verdict for claim in claims})
    return {"calls": dict(sorted({_spelled(i): _done(i) for i in made}.items())), "verdicts": verdicts, "rules": rules}


def _spelled(made: Instruction) -> str:
    return str(made.call) if made.call is not None else made.missing


def _done(made: Instruction) -> str:
    return made.behaviour.verdict if made.behaviour is not None else "not measured"


def main(folder: Path) -> None:
    """Write what is expected of all snapshots of a folder."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.snapshot.json")):
        snapshot = codec.loads(path.read_text())
        found.setdefault(device_of(snapshot).release, {})[snapshot.case] = expected(snapshot)
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
