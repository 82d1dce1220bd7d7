"""Record the graphs: run by a toolchain's interpreter, in this folder, with the repository's root on PYTHONPATH.

    python make.py [SUFFIX]

writes `RELEASE[SUFFIX].KERNEL.json.gz` for sm_90: what the worker hands to `tlcheck.worker.translate`.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import kernels  # type: ignore[import-not-found]

from tlcheck.worker import assumed_device, lowering
from tlcheck.worker.release import import_tilelang

ARCH = "sm_90"


def main(suffix: str = "") -> None:
    assumed_device.pretend(ARCH)
    versions = import_tilelang()
    for name in ("annotated", "histogram", "sequence", "symbolic"):
        target = lowering.make_target(ARCH)
        with target:
            prim_func = getattr(kernels, name)()
        lowered = lowering.lower(prim_func, {}, target, every_pass=False)
        graph, _ = lowering.save(lowered.modules)
        meta = {
            "case": name,
            "file": "kernels.py",
            "line": 1,
            "toolchain": versions,
            "target": ARCH,
            "args": {},
            "pass_configs": {},
            "passes": dict(lowered.passes),
            "cuda": lowered.cuda,
        }
        own = json.dumps(kernels.__file__)[1:-1].replace("/", "\\/")  # as TVM's writer has it
        record = {"graph": graph.replace(own, "kernels.py"), "meta": meta}
        path = Path(f"{versions['tilelang'].partition('+')[0]}{suffix}.{name}.json.gz")
        path.write_bytes(gzip.compress(json.dumps(record).encode(), mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
