"""How TileLang's own examples and tests fare with each release, in results/corpus.csv.

`python -m benchmarks.corpus CHECKOUT --toolchains LIST --arch LIST [--minutes N]` runs `tlcheck matrix` on one script
after the other and adds what it says of each kernel. What the file has is not done again, so that it may be stopped and
go on, elsewhere too; it is sorted, so that what is new is what git shows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import tables
from benchmarks.examples import sources

FILE = Path(__file__).parents[1] / "results" / "corpus.csv"
NONE = "none"  # state of a script without a kernel


class Row(NamedTuple):
    """How a kernel of a script fares with a release. rules: of what is refuted."""

    script: str
    arch: str
    release: str
    kernel: str
    state: str
    rules: str


def left(rows: Iterable[Row], script: str, releases: Sequence[str], archs: Sequence[str]) -> list[str]:
    """The releases that a script has not been judged with, for one of the archs at least."""
    known = {(row.release, row.arch) for row in rows if row.script == script}
    return [release for release in releases if not known.issuperset((release, arch) for arch in archs)]


def rows_of(script: str, cells: Iterable[dict[str, Any]]) -> Iterator[Row]:
    """What a report of `tlcheck matrix` says of a script's kernels."""
    for cell in cells:
        rules = {claim["finding"]["rule"] for claim in cell["claims"] if claim["verdict"] == "refuted"}
        yield Row(script, cell["target"], cell["toolchain"], cell["name"], cell["state"], " ".join(sorted(rules)))


def judged(checkout: Path, script: str, releases: Sequence[str], archs: Sequence[str]) -> set[Row]:
    """Run `tlcheck matrix`; a row without a kernel for each release and arch that has none."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "matrix.json")
        command = [sys.executable, "-m", "tlcheck", "matrix", script, "--toolchains", ",".join(releases)]
        command += ["--arch", ",".join(archs), "--timeout", "120", "--format", "json", "-o", str(report)]
        subprocess.run(command, cwd=checkout, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        cells = json.loads(report.read_text())["cells"] if report.exists() else []
    found = {row for row in rows_of(script, cells) if row.kernel and row.state != "absent"}
    pairs = {(row.release, row.arch) for row in found}
    wanted = {(release, arch) for release in releases for arch in archs}
    return found | {Row(script, arch, release, "", NONE, "") for release, arch in wanted - pairs}


def scripts(checkout: Path) -> Iterator[str]:
    """All scripts and tests, relative to the checkout."""
    for _, place in sources(checkout):
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        yield from (str(file.relative_to(checkout)) for file in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--toolchains", required=True)
    parser.add_argument("--arch", default="sm_80,sm_90")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    args = parser.parse_args()
    releases, archs = args.toolchains.split(","), args.arch.split(",")
    checkout, end = args.checkout.resolve(), time.monotonic() + 60 * args.minutes
    rows = tables.read(FILE, Row)
    for script in scripts(checkout):
        missing = left(rows, script, releases, archs)
        if missing and time.monotonic() < end:
            found = judged(checkout, script, missing, archs)
            rows = {row for row in rows if row.script != script or row.release not in missing} | found
            tables.write(FILE, Row._fields, rows)
            print(f"{script}: {', '.join(missing)}: {len(found)} rows", flush=True)


if __name__ == "__main__":
    main()
