"""A workaround for each finding of tests/wrong_code: which changes mend it in the newest release that has it wrong.

    python benchmarks/fixes.py results/fixes.csv [CASE...]

One line for each case, on the first of its archs; those that are there already are kept.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomllib

from tlcheck.program.release import Release

ROOT = Path(__file__).parents[1]
KERNELS = ("tests/wrong_code/kernels.py", "tests/wrong_code/repaired.py")
COLUMNS = ("case", "arch", "release", "kind", "workaround", "verdict", "costs", "tried")


def main(output: Path, wanted: list[str]) -> int:
    expected = tomllib.loads((ROOT / "tests/wrong_code/expected.toml").read_text())
    done = {row["case"] for row in csv.DictReader(output.open())} if output.exists() else set()
    with output.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not done:
            writer.writeheader()
        for case, arch, release in _cases(expected):
            if case not in done and (not wanted or case in wanted):
                writer.writerow({"case": case, "arch": arch, "release": release, **_fixed(case, arch, release)})
                file.flush()
    return 0


def _cases(expected: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each case with its first arch and the newest release that has it wrong."""
    for case, archs in expected.items():
        for arch, releases in archs.items():
            wrong = [release for release, found in releases.items() if found["verdict"] == "refuted"]
            if wrong:
                yield case, arch, max(wrong, key=Release.of)
                break


def _fixed(case: str, arch: str, release: str) -> dict[str, str]:
    named = [file for file in KERNELS if f"\n{case} = Case(" in (ROOT / file).read_text()]
    command = [sys.executable, "-m", "tlcheck", "fix", f"{named[0]}::{case}", "--toolchain", release, "--arch", arch]
    told = subprocess.run([*command, "--format", "json", "-q"], cwd=ROOT, capture_output=True, text=True, check=False)
    kernels = json.loads(told.stdout)["kernels"]
    if not kernels:
        return {"kind": "not wrong", "tried": told.stderr.strip()[:200]}
    tried = kernels[0]["tried"]
    mends = [one for one in tried if one["outcome"] == "mends"]
    told_of = [one for one in tried if one["outcome"] not in ("absent", "alike")]
    first = mends[0] if mends else {"kind": "none", "proved": False, "costs": []}
    return {
        "kind": first["kind"],
        "workaround": "; ".join(one["change"] for one in mends),
        "verdict": "proved" if first["proved"] else "agreed" if mends else "",
        "costs": "; ".join(first["costs"]),
        "tried": " ".join(f"{one['change']}:{one['outcome']}" for one in told_of),
    }


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
