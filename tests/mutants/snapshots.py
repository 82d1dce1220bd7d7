"""The kernels that `make mutants` breaks, lowered, in one small file.

`tlcheck check FILE --arch sm_80,sm_90,gfx942,gfx950 --toolchain 0.1.15 --save DIR` for the files of `KERNELS`, then
`python -m tests.mutants.snapshots DIR tests/mutants/kernels-0.1.15.zip`. Those of `BLACKWELL`, of our fixtures and of
TileLang's tests (`tlcheck capture FILE -o DIR --arch sm_100`), are in a file of their own:
`python -m tests.mutants.snapshots DIR tests/mutants/kernels-sm_100.zip`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.fixtures.index import FOLDER
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
# Name and arch: a fixture, or a snapshot that was captured.
BLACKWELL = {
    "serial sm_100": "tensor_memory/serial-0.1.15",
    "scaled sm_100": "tensor_memory/scaled-0.1.15",
    "parted sm_100": "tensor_memory/parted-0.1.14",
    "two_blocks sm_100": "clusters/two_blocks-0.1.15",
    "multicast sm_90": "clusters/multicast-0.1.15",
    "rows sm_100": "blackwell/rows-0.1.15",
    "narrow sm_120": "blackwell/narrow-0.1.15",
    "dsmem sm_100": "test_tma_dsmem-kernel-sm_100-0.1.15",
    "tmem_copy sm_100": "test_tilelang_language_tmem_copy-main-2-sm_100-0.1.15",
    "tcgen05_gemm sm_100": "test_tilelang_language_tcgen05_gemm-main-2-sm_100-0.1.15",
}


def main(folder: Path, out: Path) -> None:
    """Pick the kernels out of a folder of saved snapshots, and write them by case and arch."""
    if "sm_100" in out.name:
        places = {
            name: (FOLDER if "/" in path else folder) / f"{path}.snapshot.json" for name, path in BLACKWELL.items()
        }
        write({name: loads(path.read_text()) for name, path in places.items()}, out)
        return
    found = {}
    for path in sorted(folder.glob("*.snapshot.json")):
        snapshot = loads(path.read_text())
        case = snapshot.case.split("::")[-1]
        if case in KERNELS.get(snapshot.file, {}).get(snapshot.target, "").split():
            found[f"{case} {snapshot.target}"] = snapshot
    write(found, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
