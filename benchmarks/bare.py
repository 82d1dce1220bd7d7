"""Run by a toolchain's interpreter: `bare.py ARCHS FILE...` lowers every case of the files for its targets among ARCHS.

Prints a JSON document for each: case, arch, and seconds of processor time. What cannot be lowered is passed over, as
early as it shows.
"""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
import time
from pathlib import Path

MAIN = Path(__file__).resolve().parents[1] / "tlcheck" / "worker" / "__main__.py"


def main(archs: list[str], files: list[str]) -> None:
    runpy.run_path(str(MAIN))["_register_package"]()
    import tilelang
    from tilelang import tvm

    from tlcheck.worker import assumed_device, kernel_file, kernel_forms, lowering

    for file in files:
        assumed_device.pretend(archs[-1])
        for name, case in kernel_file.declared_cases(kernel_file.load(file, ())).items():
            for arch in (arch for arch in archs if arch in case.targets):
                assumed_device.pretend(arch)
                target = lowering.make_target(arch)
                with contextlib.suppress(Exception), target:
                    built = kernel_forms.build(case.kernel, dict(case.args), name)
                    begin = time.process_time()
                    with tvm.transform.PassContext(opt_level=3, config=dict(built.pass_configs)):
                        tilelang.lower(
                            built.prim_func, target=target, enable_host_codegen=False, enable_device_compile=False
                        )
                    print(json.dumps([name, arch, time.process_time() - begin]))


if __name__ == "__main__":
    main(sys.argv[1].split(","), sys.argv[2:])
