"""`make bench`: what tlcheck adds to a bare `tilelang.lower`, how fast footprints are, and how fast the command starts.

Prints Markdown tables; results/performance.md holds those of a run.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KERNEL = ROOT / "cases" / "attention_sink_bwd.py"
ROUNDS = 9


def overhead() -> None:
    """Processor time per stage, the least of interleaved rounds, and their sum as a share of a bare lowering."""
    print("| case | arch | bare lower | capture | extract | load | check | added | share |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case, arch in (("causal", "sm_90"), ("causal", "sm_80"), ("full", "sm_90"), ("full", "sm_80")):
        with tempfile.TemporaryDirectory() as folder:
            snapshot = Path(folder) / "attention.json"
            worker = _toolchain_run(KERNEL, case, arch, snapshot)
            controller = json.loads(_python(["--controller", str(snapshot)]))
        bare = min(worker["bare"])
        stages = [min(worker["captured"]) - bare, min(worker["extract"]), controller["load"], controller["check"]]
        cells = [f"{s * 1000:.0f} ms" for s in (bare, *stages, sum(stages))]
        print(f"| {case} | {arch} | {' | '.join(cells)} | {sum(stages) / bare:.1%} |")


def _toolchain_run(kernel: Path, case: str, arch: str, snapshot: Path) -> dict[str, list[float]]:
    from tlcheck.lower.client import SETTINGS
    from tlcheck.toolchain.resolve import resolve

    toolchain = resolve("pinned", ())
    command = [str(toolchain.python), str(ROOT / "benchmarks" / "overhead.py"), str(kernel), case, arch, str(ROUNDS)]
    env = {**os.environ, **SETTINGS, **toolchain.env}
    done = subprocess.run([*command, str(snapshot)], env=env, capture_output=True, text=True, check=True)
    result: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return result


def _python(arguments: list[str]) -> str:
    command = [sys.executable, str(Path(__file__)), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def controller(snapshot: str) -> None:
    """Processor time of loading and checking one snapshot: the first time in this process, imports left out."""
    import tlcheck.verdicts.atomic_claims
    from tlcheck.snapshot import codec
    from tlcheck.verdicts.rules.rule import rules

    rules()
    text = Path(snapshot).read_text()
    begin = time.process_time()
    loaded = codec.loads(text)
    middle = time.process_time()
    tlcheck.verdicts.atomic_claims.judge_atomics(loaded)
    print(json.dumps({"load": middle - begin, "check": time.process_time() - middle}))


def footprints() -> None:
    """Lanes per second of comparing two footprints of one tile, both enumerated, on one core."""
    print("| lanes | seconds | lanes per second | peak memory added |")
    print("|---|---|---|---|")
    for lanes in (1 << 20, 1 << 23, 100_000_000):
        cells = json.loads(_python(["--footprint", str(lanes)]))
        print(
            f"| {lanes:,} | {cells['seconds']:.3f} | {lanes / cells['seconds']:.3g} | {cells['peak'] / 2**20:.0f} MiB |"
        )


def footprint(lanes: int) -> None:
    """One comparison of a row-major tile with its lanes spread over 256 threads and vectors of 4, in this process."""
    from tests.cpu.prove.tiles import spread, whole
    from tlcheck.prove.sum_comparison import same

    algebra, intended = whole(lanes)
    actual = spread(algebra, lanes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    assert same(algebra, [intended], [actual], bounded=False)
    seconds = time.process_time() - begin
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(json.dumps({"seconds": seconds, "peak": peak}))


def starts() -> None:
    """Wall time of commands that start no worker, best of five."""
    command = str(Path(sys.executable).with_name("tlcheck"))
    print("| command | wall time |")
    print("|---|---|")
    for arguments in (["--help"], ["explain", "TLA001"], ["toolchain", "list"]):
        best = min(
            _wall(lambda run=[command, *arguments]: subprocess.run(run, capture_output=True, check=False))
            for _ in range(5)
        )
        print(f"| `tlcheck {' '.join(arguments)}` | {best:.2f} s |")


def _wall(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def main() -> None:
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}\n")
    for part in (starts, footprints, overhead):
        part()
        print()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--controller"]:
        controller(sys.argv[2])
    elif sys.argv[1:2] == ["--footprint"]:
        footprint(int(sys.argv[2]))
    else:
        main()
