"""Lowered kernels, as written and as lowered, in one small file, so that tests need no toolchain.

`tlcheck check tests/hardware/forms.py --arch sm_90 --toolchain 0.1.15 --save DIR`, then
`python -m tests.hardware.snapshots DIR tests/hardware/forms-0.1.15.zip`.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot

KEPT = ("source", "device-tir")


def pack(folder: Path, out: Path) -> None:
    """Write all snapshots of a folder into a zip, by the name of their case."""
    read = [codec.loads(path.read_text()) for path in sorted(folder.glob("*.snapshot.json"))]
    write({snapshot.case: snapshot for snapshot in read}, out)


def write(snapshots: Mapping[str, Snapshot], out: Path) -> None:
    """Write snapshots into a zip, by name, with `KEPT` checkpoints only."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        for name, whole in snapshots.items():
            checkpoints = {kept: whole.checkpoints[kept] for kept in KEPT}
            passes = {kept: whole.passes[kept] for kept in KEPT}
            small = replace(whole, checkpoints=checkpoints, passes=passes, cuda="")
            archive.writestr(zipfile.ZipInfo(f"{name}.json"), codec.dumps(small), zipfile.ZIP_LZMA)


def unpack(archive: Path) -> dict[str, Snapshot]:
    """Read such a zip: name -> snapshot."""
    with zipfile.ZipFile(archive) as files:
        return {name.removesuffix(".json"): codec.loads(files.read(name).decode()) for name in files.namelist()}


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
