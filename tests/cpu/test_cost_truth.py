"""Test what ncu prints against what tlcheck counts, and what a GPU needs to launch a kernel."""

from __future__ import annotations

import zipfile
from pathlib import Path

from benchmarks.cost_truth import METRICS, Compared, compared, launches, summary
from tests.hardware.costs_pack import Entry
from tlcheck.snapshot import codec

ERA = Path(__file__).parents[1] / "fixtures" / "era"


def table(folder: Path, rows: int) -> Path:
    """Return what ncu prints of so many launches, each counter of which is 1,024."""
    names = ",".join(f'"{name}"' for name in ("ID", *METRICS))
    lines = ["==PROF== Connected", names, ",".join(['""'] * (len(METRICS) + 1))]
    lines += [",".join([f'"{row}"', *['"1,024"'] * len(METRICS)]) for row in range(rows)]
    file = folder / "ncu.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_launches_of_a_kernel_are_added_up(tmp_path: Path) -> None:
    found = launches(table(tmp_path, 3), ["a", "a", "b"])
    assert {found["a"][name] for name in METRICS} == {2048.0}
    assert {found["b"][name] for name in METRICS} == {1024.0}


def test_a_kernel_that_faulted_on_its_way_is_left_out(tmp_path: Path) -> None:
    assert launches(table(tmp_path, 2), ["a", "b", "b"]).keys() == {"a"}


def test_a_counter_of_one_side_alone_is_an_error() -> None:
    site = {"space": "global", "operation": "read", "instruction": "load", "requests": 8, "sectors": 16}
    found = list(compared({"k": dict.fromkeys(METRICS, 0.0), "unknown": {}}, {"k": {"sites": [site]}}))
    assert found == [Compared("k", "global load requests", 0, 8), Compared("k", "global load sectors", 0, 16)]
    assert [row.error for row in found] == [8.0, 16.0]
    assert summary([*found, Compared("l", "x", 100, 99)]).startswith(
        "3 counters of 2 kernels: median error 8.0000, 0.0%"
    )


def test_a_device_gets_the_arguments_that_were_counted(tmp_path: Path) -> None:
    snapshot = codec.loads((ERA / "annotated_gemm-0.1.15.snapshot.json").read_text(encoding="utf-8"))
    with zipfile.ZipFile(tmp_path / "pack.zip", "w") as archive:
        made = Entry("annotated_gemm", "0.1.15", snapshot).write(archive)
        samples = {name: len(archive.read(tensor["sample"])) for name, tensor in made["tensors"].items()}
        assert archive.read(made["cuda"]).decode() == snapshot.cuda
    assert samples == {name: tensor["octets"] for name, tensor in made["tensors"].items()}
    (kernel,) = made["kernels"]
    assert kernel["dynamic"] == 16384
    assert {form for form, _ in kernel["arguments"]} <= {"tensor", "map"}
