"""Headers that the table does not know: those of a toolchain that is named by its path are measured on the way."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.files import put
from tlcheck.probes.compilation import Headers, nvcc, version
from tlcheck.probes.library_table import results, text
from tlcheck.program.device_library import device_library, made_for, read
from tlcheck.targets.lookup import rows_of
from tlcheck.toolchain.identity import identify, probe
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.headers import digest


def measure_unknown(toolchain: Toolchain, archs: Iterable[str]) -> None:
    """Measure a toolchain's headers for these archs, where nvcc is there and no table has them.

    Headers that nvcc refuses stay unknown: the atomics that come to them are undecided.
    """
    if toolchain.kind == "release":
        return
    with suppress(UsageError):
        nvcc()
        probed = probe(toolchain)
        place = probed.places.get("tilelang", "")
        if not place and not toolchain.checkout:
            return  # whoever lowers with it says so
        package = toolchain.checkout.root / "tilelang" if toolchain.checkout else Path(place).parent
        release = identify(toolchain, probed).release
        _measure(package, release, rows_of(archs))


def _measure(package: Path, release: str, archs: Iterable[int]) -> None:
    headers = digest(package)
    if not headers or device_library().has(release, headers):
        return
    from tlcheck.probes.calls import calls  # what computes with NumPy is imported where something is measured
    from tlcheck.probes.measurement import measure

    file = made_for(headers)
    for arch in archs:
        found = results(read(file.read_text(encoding="utf-8"))) if file.is_file() else {}
        if (release, arch) not in found:
            measured = {**found, (release, arch): measure(Headers(package), arch, calls())}
            made = text(date.today().isoformat(), f"nvcc {version()}", {release: ""}, {release: headers}, measured)
            file.parent.mkdir(parents=True, exist_ok=True)
            put(file, made + "\n")
