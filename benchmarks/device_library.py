"""`make device-library`: measures releases that are installed and writes what was found into tlcheck's table.

python benchmarks/device_library.py RELEASE... [--arch ARCH ...]
"""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.files import put
from tlcheck.probes.calls import calls
from tlcheck.probes.compilation import Headers, version
from tlcheck.probes.library_table import Measured, results, text
from tlcheck.probes.measurement import measure
from tlcheck.program.device_library import FILE, DeviceLibrary, read
from tlcheck.targets.lookup import USUAL, rows_of
from tlcheck.targets.nvidia import arch_of
from tlcheck.toolchain.identity import identify, probe
from tlcheck.toolchain.resolve import resolve
from tlcheck.worker.headers import digest


def main() -> int:
    """Measure each release named and write the table after each, so that an interrupted run keeps what it has."""
    parser = argparse.ArgumentParser(prog="make device-library", description="Measure TileLang's device library.")
    parser.add_argument("release", nargs="+", help="a release that is installed (tlcheck toolchain install RELEASE)")
    parser.add_argument("--arch", nargs="+", default=list(USUAL), help=f"default: {' '.join(USUAL)}")
    asked = parser.parse_args()
    try:
        for release in asked.release:
            _add(release, rows_of(asked.arch))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _add(release: str, archs: list[int]) -> None:
    """Measure one release."""
    toolchain = resolve(release)
    probed = probe(toolchain)
    identity = identify(toolchain, probed)
    headers = Headers(Path(probed.places["tilelang"]).parent)
    wanted = calls()
    for arch in archs:
        measured = measure(headers, arch, wanted)
        put(FILE, with_measured(_table(), identity.release, identity.content, digest(headers.root), arch, measured))
        print(f"{identity.release} {arch_of(arch)}: {len(measured)} of {len(wanted)} calls measured", flush=True)


def with_measured(table: DeviceLibrary, release: str, wheel: str, headers: str, arch: int, measured: Measured) -> str:
    """The table's text with one more measurement. Results of another wheel of that release are dropped."""
    kept = {c: r for c, r in results(table).items() if c[0] != release or table.wheels[release] == wheel}
    wheels = {**table.wheels, release: wheel}
    hashes = {**table.headers, release: headers}
    new = {**kept, (release, arch): measured}
    return text(date.today().isoformat(), f"nvcc {version()}", wheels, hashes, new) + "\n"


def _table() -> DeviceLibrary:
    """The table as it is; an empty one where there is none."""
    return read(FILE.read_text(encoding="utf-8")) if FILE.is_file() else DeviceLibrary("", "", {}, (), (), (), {})


if __name__ == "__main__":
    sys.exit(main())
