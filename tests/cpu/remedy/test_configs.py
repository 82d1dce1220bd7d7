"""Test which pass configuration of a kernel makes the difference: every one of them is flipped alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.cpu.checking import make_atomic, make_finding, make_run
from tlcheck.cli.main import main
from tlcheck.lower.selection import Selection
from tlcheck.remedy.configs import judged_configs
from tlcheck.report.bisect_report import Bisected, write
from tlcheck.report.console import console
from tlcheck.verdicts.results import Result

OWN = {"tl.disable_wgmma": "True", "tl.enable_aggressive_shared_memory_merge": "1", "tl.config_index_bitwidth": "64"}


class StandInChecks:
    """A kernel that is wrong with what it sets, and right with `mended` the other way round."""

    def __init__(self, mended: str) -> None:
        self.mended = mended

    def results(self, selections: Sequence[Selection]) -> Iterator[tuple[None, Result]]:
        for place, selection in reversed(list(enumerate(selections))):  # they end in any order
            configs = selection.variation.pass_configs
            wrong = not any(name == self.mended for name, _ in configs)
            finding = make_finding("TLA001") if wrong else None
            claim = replace(make_atomic(), verdict="refuted" if wrong else "agreed", finding=finding)
            run = replace(make_run(), position=(place, 0, 0), variation=selection.variation)
            yield None, Result(run, (claim,), pass_configs=OWN)


@pytest.mark.parametrize(
    ("mended", "last"),
    [
        ("TL_DISABLE_WGMMA", "  wrong as it is, agreed with TL_DISABLE_WGMMA=False"),
        ("TL_OTHER", "  wrong with each of them the other way round"),
    ],
)
def test_the_one_that_makes_the_difference_is_named(capsys: pytest.CaptureFixture[str], mended: str, last: str) -> None:
    run = make_run()
    rows, results = judged_configs(cast(Any, StandInChecks(mended)), [Selection(cast(Any, run.file), run.name)])
    assert [point.at for row in rows for point in row.points] == [
        "as it is",
        "TL_DISABLE_WGMMA=False",
        "TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE=False",
    ]
    assert len(results) == 3
    found = Bisected(configs=tuple(rows), results=tuple(results))
    write(console(), found)
    assert capsys.readouterr().out.splitlines()[-1] == last
    assert found.is_wrong


def test_it_looks_at_one_toolchain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", "cases/gemm.py", "--configs", "--from", "0.1.9"]) == 2
    assert "--configs looks at one --toolchain" in capsys.readouterr().err
