"""Run by the toolchain's interpreter: processor time of a bare `tilelang.lower` and of tlcheck's capture and
extraction.

`overhead.py KERNEL_FILE CASE ARCH ROUNDS OUTPUT` prints one JSON document: lists of seconds, one entry a round. The
two kinds of lowering alternate within a round, which goes first alternates between rounds; both lower the same
PrimFunc.
"""

from __future__ import annotations

import gc
import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAIN = Path(__file__).resolve().parents[1] / "tlcheck" / "worker" / "__main__.py"


def main(file: str, case_name: str, arch: str, rounds: int, output: str) -> dict[str, list[float]]:
    runpy.run_path(str(MAIN))["_register_package"]()
    import tilelang
    from tilelang import tvm

    from tlcheck.snapshot import codec
    from tlcheck.worker import assumed_device, kernel_file, kernel_forms, lowering, translate
    from tlcheck.worker.statement_lines import StatementLines

    assumed_device.pretend(arch)
    lines = StatementLines()
    lines.watch()
    module = kernel_file.load(file, ())
    case = kernel_file.lookup(module, case_name)
    target = lowering.make_target(arch)
    with target:
        built = kernel_forms.build(case.kernel, dict(case.args), case_name)
    stamped = lines.stamp(built.prim_func)

    def bare() -> Any:
        with tvm.transform.PassContext(opt_level=3, config=dict(built.pass_configs)), target:
            return tilelang.lower(
                built.prim_func, target=target, enable_host_codegen=False, enable_device_compile=False
            )

    def captured() -> Any:
        return lowering.lower(stamped, built.pass_configs, target, every_pass=False)

    def extract(lowered: Any) -> None:
        gc.disable()  # as in the worker
        graph, _ = lowering.save(lowered.modules)
        meta = {
            "case": case_name,
            **kernel_file.place(module, file, case_name, case.kernel),
            "toolchain": {"tilelang": str(tilelang.__version__)},
            "target": arch,
            "args": {},
            "pass_configs": kernel_forms.configs_as_text(built.pass_configs),
            "passes": dict(lowered.passes),
            "cuda": lowered.cuda,
        }
        Path(output).write_text(codec.dumps(translate.translate(graph, meta)))
        gc.enable()

    bare()
    extract(captured())
    seconds: dict[str, list[float]] = {"bare": [], "captured": [], "extract": []}
    for number in range(rounds):
        for name, run in sorted({"bare": bare, "captured": captured}.items(), reverse=bool(number % 2)):
            result = _timed(seconds[name], run)
            if name == "captured":
                _timed(seconds["extract"], lambda lowered=result: extract(lowered))
    return seconds


def _timed(where: list[float], run: Callable[[], Any]) -> Any:
    begin = time.process_time()
    result = run()
    where.append(time.process_time() - begin)
    return result


if __name__ == "__main__":
    arguments = sys.argv[1:]
    print(json.dumps(main(arguments[0], arguments[1], arguments[2], int(arguments[3]), arguments[4])))
