"""How small `tlcheck reduce` makes the kernels of tests/wrong_code/grown.py.

    python benchmarks/reductions.py results/reductions.csv FOLDER [KERNEL...]

One line for each kernel; those that are there already are kept. The small kernels go to FOLDER. `seconds` are of all
processors: answers of earlier runs make them fewer, unless TLCHECK_CACHE names an empty folder.
"""

from __future__ import annotations

import csv
import re
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
KERNELS = {
    "gated_mlp": ("0.1.9", "sm_80"),
    "chunk_scan": ("0.1.15", "sm_90"),
    "codebook_norm": ("0.1.13", "sm_80"),
    "staged_norm": ("0.1.10", "sm_80"),
    "embedding_grad": ("0.1.11", "sm_80"),
}
COLUMNS = ("kernel", "arch", "release", "before", "after", "seconds", "finding", "pass", "right in")
_FIRST = re.compile(r"# TileLang [^,]+, (?:(?P<pass>[^,]+), )?sm_\d+: (?P<rule>\w+) at (?P<buffer>\w+)")


def main(output: Path, folder: Path, wanted: list[str]) -> int:
    done = {row["kernel"] for row in csv.DictReader(output.open())} if output.exists() else set()
    with output.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not done:
            writer.writeheader()
        for name in wanted or KERNELS:
            if name not in done:
                writer.writerow(_reduced(name, folder / f"{name}.py"))
                file.flush()
    return 0


def _reduced(name: str, small: Path) -> dict[str, object]:
    release, arch = KERNELS[name]
    command = [sys.executable, "-m", "tlcheck", "reduce", f"tests/wrong_code/grown.py::{name}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = ["--toolchain", release, "--arch", arch, "-q", "-o", str(small)]
    subprocess.run([*command, *options], cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    text = small.read_text()
    first, lines = _FIRST.search(text), re.search(r"(\d+) -> (\d+) lines", text)
    right = re.search(r"right (?:\(agreed\) )?in ([^;\n]+)", text)
    assert first
    assert lines
    return {
        "kernel": name,
        "arch": arch,
        "release": release,
        "before": lines[1],
        "after": lines[2],
        "seconds": round(seconds),
        "finding": f"{first['rule']} at {first['buffer']}",
        "pass": first["pass"] or "",
        "right in": right[1] if right else "",
    }


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2]).resolve(), sys.argv[3:]))
