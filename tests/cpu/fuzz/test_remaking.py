"""A kernel that a campaign has judged is made again from its number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cpu.fuzz.test_campaign import TOOLCHAIN, claim, judged
from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.fuzz import campaign as campaigns
from tlcheck.fuzz.bench import Judged
from tlcheck.fuzz.campaign import Campaign, CampaignPlan
from tlcheck.fuzz.campaign_folder import CampaignFolder
from tlcheck.fuzz.making import make
from tlcheck.fuzz.remaking import remade

_KERNELS = 12


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The kernels of a campaign of two runs that looks at its weights after every third one."""
    seen: list[str] = []

    class FuzzBench:
        def __init__(self, *_: Any) -> None: ...
        def close(self) -> None: ...
        def judged(self, text: str, *_: Any) -> Judged:
            seen.append(text)
            if len(seen) in (5, _KERNELS):
                campaign.stop()
            return judged(claim())

    monkeypatch.setattr(campaigns, "FuzzBench", FuzzBench)
    monkeypatch.setattr(campaigns, "_EPOCH", 3)
    for _ in range(2):
        campaign = Campaign(CampaignPlan(TOOLCHAIN, ("sm_90",)), CampaignFolder(tmp_path, "0.1.15"), 1)
        campaign.run(60.0)
    return seen


def test_each_kernel_is_made_again(texts: list[str], tmp_path: Path) -> None:
    assert [remade(tmp_path, number, ()).text for number in range(_KERNELS)] == texts
    assert [make(number).text for number in range(_KERNELS)] != texts


def test_a_number_shows_its_kernel(texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "-o", str(tmp_path), "--show", "7"]) == 0
    assert capsys.readouterr().out == texts[7]


def test_a_number_that_the_campaign_did_not_come_to(texts: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"has no kernel {len(texts)}: "):
        remade(tmp_path, len(texts), ())


def test_a_campaign_that_kept_no_weights(texts: list[str], tmp_path: Path) -> None:
    (tmp_path / "weights.jsonl").unlink()
    with pytest.raises(UsageError, match=r"has no weights\.jsonl, by which its kernels were drawn: "):
        remade(tmp_path, len(texts) - 1, ())


def test_a_campaign_of_other_seeds(texts: list[str], tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(log.read_text().replace("grammar", "k.py::copy"))
    with pytest.raises(UsageError, match=r"kernel 0 was made from k\.py::copy, not from grammar: give"):
        remade(tmp_path, 0, ())
    assert texts
