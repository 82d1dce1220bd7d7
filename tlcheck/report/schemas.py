"""JSON Schemas of the reports, made from their classes.

python -m tlcheck.report.schemas docs/schemas    writes one file for each report
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tlcheck.matrix.resume import MatrixReport
from tlcheck.report.bisect_json import BisectReport
from tlcheck.report.check_json import CheckReport
from tlcheck.report.cost_json import CostReport
from tlcheck.report.cpu_report import CpuReport
from tlcheck.report.device_json import GpuReport
from tlcheck.report.doctor_json import DoctorReport
from tlcheck.report.fix_json import FixReport
from tlcheck.report.gate_json import GateReport
from tlcheck.report.times_report import TimesReport
from tlcheck.report.trace_json import TraceReport

REPORTS: Mapping[str, type] = {
    "bisect": BisectReport,
    "check": CheckReport,
    "cost": CostReport,
    "doctor": DoctorReport,
    "fix": FixReport,
    "gate": GateReport,
    "matrix": MatrixReport,
    "run": GpuReport,
    "run-cpu": CpuReport,
    "run-times": TimesReport,
    "trace": TraceReport,
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(report: type) -> dict[str, Any]:
    """The schema of a report. Every field is always written, and there are no others."""
    (root,), components = msgspec.json.schema_components([report], ref_template="#/$defs/{name}")
    for component in components.values():
        component["description"] = inspect.cleandoc(component.get("description", ""))
        if "properties" in component:
            component["properties"] = {name: _plain(part) for name, part in component["properties"].items()}
            component["required"] = list(component["properties"])
            component["additionalProperties"] = False
    return {"$schema": _DIALECT, **root, "$defs": components}


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    """Drop the default that it has in Python."""
    return {key: value for key, value in part.items() if key != "default"}


def index() -> str:
    """Return a page that names each schema."""
    rows = (f"| [`{name}.json`]({name}.json) | {_summary(report)} |\n" for name, report in REPORTS.items())
    return (
        "# JSON Schemas\n\nThe fields of what `--format json` writes. Made by `make docs`.\n\n"
        f"| schema | content |\n|---|---|\n{''.join(rows)}"
    )


def _summary(report: type) -> str:
    return (inspect.getdoc(report) or "").partition(".")[0]


def write(folder: Path) -> None:
    """Write all schemas, and the page that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(index(), encoding="utf-8")
    for name, report in REPORTS.items():
        (folder / f"{name}.json").write_text(json.dumps(schema_of(report), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
