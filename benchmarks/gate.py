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


def main() -> None:
    from tlcheck.toolchain.client import processors

    rows = {f"bare, {release}": _measured(_bare(release)) for release in RELEASES}
    bare = [sum(column) for column in zip(*rows.values(), strict=True)]
    with tempfile.TemporaryDirectory(prefix="tlcheck-bench-") as folder:
        gate = _gate(Path(folder))
        rows |= {"gate, cold": _measured(gate), "gate, warm": _measured(gate)}
    print(f"Gate of {' and '.join(RELEASES)}, all cases, {ARCHS}, {processors()} processors:\n")
    print("| | wall | processor |\n|---|---|---|")
    for name, (wall, processor) in rows.items():
        print(f"| {name} | {wall:.1f} s | {processor:.1f} s |")
    ideal = bare[0] / processors()
    print(
        f"\nCold is {rows['gate, cold'][0] / ideal:.2f} times the {ideal:.1f} s that bare lowering would take on all."
    )


Command = tuple[Sequence[str], Mapping[str, str]]


def _bare(release: str) -> Command:
    from tlcheck.toolchain.client import SETTINGS
    from tlcheck.toolchain.resolve import resolve

    toolchain = resolve(release, ())
    files = [str(file) for file in sorted((ROOT / "cases").glob("[!_]*.py"))]
    script = str(ROOT / "benchmarks" / "bare.py")
    return [str(toolchain.python), script, ARCHS, *files], {**SETTINGS, **toolchain.env}


def _gate(folder: Path) -> Command:
    """With the user's toolchains and no results."""
    from tlcheck.toolchain.store import cache_root

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
