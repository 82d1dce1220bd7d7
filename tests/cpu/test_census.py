"""The census counts what is in the snapshots, each kernel once."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks import census
from tests.cpu.checking import RIGHT, SAVED, WRONG
from tlcheck.execute.compile import registry


def read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_kernels_are_counted_by_what_they_have(tmp_path: Path) -> None:
    for name, source in (("a", RIGHT), ("again", RIGHT), ("b", SAVED / "tma_tile-0.1.15.snapshot.json"), ("c", WRONG)):
        (tmp_path / f"{name}.snapshot.json").write_bytes(source.read_bytes())
    assert census.main([f"small={tmp_path}", "-o", str(tmp_path / "census.csv")]) == 0
    rows = {(row["level"], row["kind"], row["name"]): row for row in read(tmp_path / "census.csv")}
    old, new = "small sm_90 0.1.7", "small sm_90 0.1.15"
    kernels, gemm, bulk = (
        rows[key]
        for key in (("written", "kernel", ""), ("written", "call", "gemm"), ("lowered", "call", "tma_store_arrive"))
    )
    assert (kernels[old], kernels[new]) == ("1", "2")  # the copy of a kernel is the same kernel
    assert (gemm[new], gemm["arguments"]) == ("1", "13")
    assert (bulk[old], bulk[new]) == ("", "1")
    assert ("lowered", "form", "ptx_wgmma_ss m64n64k16 fp16 fp16 fp32") in rows
    assert ("lowered", "statement", "Alloc shared.dyn") in rows
    assert list(kernels)[-2:] == [old, new]  # releases in their order, not in that of their letters


def test_the_committed_table_is_sorted() -> None:
    rows = read(Path(census.__file__).parents[1] / "results" / "census.csv")
    keys = [(row["level"] != "written", row["kind"] != "kernel", row["kind"], row["name"]) for row in rows]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("tl::AllReduce<tl::SumOp, 16, 1, 0, tl::NamedBarrier<128>>::run", "tl::AllReduce"),
        ("tl::gemm_ss<128, 64, 32, 4, 1, 0, 1>", "tl::gemm_ss"),
        ("exp2f", "exp2f"),
    ],
)
def test_a_device_function_is_one_with_all_template_arguments(function: str, name: str) -> None:
    assert census.plain_name(function) == name


def test_a_corpus_that_is_no_folder_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        census.main(["cases=nowhere"])
    assert "cases=nowhere: not NAME=FOLDER, or no such folder" in capsys.readouterr().err


def test_what_the_committed_table_calls_modelled_still_is() -> None:
    """Whoever removes or moves a handler has to make the table again, and sees which kernels lose it."""
    models, rows = census.models(), read(Path(census.__file__).parents[1] / "results" / "census.csv")
    told = {(row["kind"], row["name"]): row["modelled in"] for row in rows if row["modelled in"]}
    assert len(told) > 200
    assert {thing: models.get(thing, "lost") for thing in told} == told
    execute = Path(registry.__file__).parents[1]
    assert {file for file in told.values() if not (execute / file).is_file()} == set()
