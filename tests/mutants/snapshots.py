"""The kernels that `make mutants` breaks, lowered, in one small file.

`tlcheck check FILE --arch sm_80,sm_90,gfx942,gfx950 --toolchain 0.1.15 --save DIR` for the files of `KERNELS`, then
`python -m tests.mutants.snapshots DIR tests/mutants/kernels-0.1.15.zip`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.hardware.snapshots import write
from tlcheck.snapshot.codec import loads

# What of which file, for which arch. Where both archs have the same code, one of them.
KERNELS = {
    "tests/mutants/kernels.py": {
        "sm_80": "four_stages halves norm parts rounds rows scaled tails waves",
        "sm_90": "four_stages norm parts prefixes rows scaled softmax tails turned two_stages waves window",
        "gfx942": "halves norm prefixes rounds rows tails window",
        "gfx950": "tails",
    },
    "tests/wrong_code/kernels.py": {"sm_80": "nested skipped"},
    "cases/atomics.py": {"sm_80": "loop_ragged_pipelined replicated_tile"},
    "cases/atomic_operations.py": {"sm_90": "tma_tile"},
}


def main(folder: Path, out: Path) -> None:
    """Pick the kernels out of a folder of saved snapshots, and write them by case and arch."""
    found = {}
    for path in sorted(folder.glob("*.snapshot.json")):
        snapshot = loads(path.read_text())
        case = snapshot.case.split("::")[-1]
        if case in KERNELS.get(snapshot.file, {}).get(snapshot.target, "").split():
            found[f"{case} {snapshot.target}"] = snapshot
    write(found, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
