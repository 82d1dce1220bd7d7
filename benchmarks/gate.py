"""`make bench`: a gate of two releases over all cases and two archs, cold and warm, against bare lowering.

*Bare* is one process for each release that imports tilelang and the kernel files and calls `tilelang.lower` for all
cases and archs, one after the other. On N processors nothing can be faster than its N-th part.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASES = ("0.1.7", "0.1.15")
ARCHS = "sm_80,sm_90"
ROUNDS = 3

Command = tuple[Sequence[str], Mapping[str, str]]
Seconds = tuple[float, ...]  # wall, processor


def main() -> None:
    from tlcheck.lower.client import processors

    rounds = [_round() for _ in range(ROUNDS)]
    least = {name: tuple(map(min, zip(*(one[name] for one in rounds), strict=True))) for name in rounds[0]}
    print(
        f"Gate of {' and '.join(RELEASES)}, all cases, {ARCHS}, {processors()} processors, least of {ROUNDS} rounds:\n"
    )
    print("| | wall | processor |\n|---|---|---|")
    for name, (wall, processor) in least.items():
        print(f"| {name} | {wall:.1f} s | {processor:.1f} s |")
    ratios = ", ".join(f"{_ratio(one):.2f}" for one in [*rounds, least])
    print(
        f"\nCold, in times of what bare lowering would take on all processors, in each round and of the least: {ratios}"
    )


def _round() -> dict[str, Seconds]:
    """Everything once, one after the other: the speed of a machine may be another minutes later."""
    rows = {f"bare, {release}": _measured(_bare(release)) for release in RELEASES}
    with tempfile.TemporaryDirectory(prefix="tlcheck-bench-") as folder:
        gate = _gate(Path(folder))
        return {**rows, "gate, cold": _measured(gate), "gate, warm": _measured(gate)}


def _ratio(rows: Mapping[str, Seconds]) -> float:
    """Of the wall time of the cold gate to that of bare lowering, if it kept all processors busy."""
    from tlcheck.lower.client import processors

    return rows["gate, cold"][0] / sum(rows[f"bare, {release}"][0] for release in RELEASES) * processors()


def _bare(release: str) -> Command:
    from tlcheck.lower.client import SETTINGS
    from tlcheck.toolchain.resolve import resolve

    toolchain = resolve(release, ())
    files = [str(file) for file in sorted((ROOT / "cases").glob("[!_]*.py"))]
    script = str(ROOT / "benchmarks" / "bare.py")
    return [str(toolchain.python), script, ARCHS, *files], {**SETTINGS, **toolchain.env}


def _gate(folder: Path) -> Command:
    """With the user's toolchains and no results."""
    from tlcheck.files import cache_root

    for name in ("toolchains", "torch"):
        (folder / name).symlink_to(cache_root() / name)
    argv = ["gate", "--from", RELEASES[0], "--to", RELEASES[1], "cases", "--arch", ARCHS, "--format", "json"]
    output = ["-o", str(folder / "report.json")]
    return [sys.executable, "-m", "tlcheck", *argv, *output], {"TLCHECK_CACHE": str(folder)}


def _measured(command: Command) -> tuple[float, float]:
    """Seconds of wall and of processor time of a command and all that it starts."""
    argv, env = command
    begin, used = time.perf_counter(), _used()
    done = subprocess.run(argv, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"{argv[:4]} failed: {json.dumps(done.stderr[-2000:])}")
    return time.perf_counter() - begin, _used() - used


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
