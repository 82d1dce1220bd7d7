"""The form of `tlcheck doctor --format json`."""

from __future__ import annotations

from dataclasses import dataclass

from tlcheck.toolchain.health import Item

SCHEMA = 1


@dataclass(frozen=True)
class DoctorReport:
    """Report of `tlcheck doctor --format json`.

    schema: of this form. tlcheck: its version. items: cheap ones first.
    """

    schema: int
    tlcheck: str
    items: tuple[Item, ...]
