"""The findings that a campaign recognizes are those of docs/findings.md."""

from pathlib import Path

import msgspec

from tlcheck.fuzz.known import known
from tlcheck.fuzz.outcome import Symptom

ROOT = Path(__file__).parents[3]
KNOWN = msgspec.toml.decode((ROOT / "tlcheck" / "fuzz" / "known.toml").read_text())
EXPECTED = msgspec.toml.decode((ROOT / "tests" / "wrong_code" / "expected.toml").read_text())


def test_every_entry_is_a_finding() -> None:
    assert set(KNOWN) == set(EXPECTED)


def test_what_shows_alike_is_recognized() -> None:
    loop = Symptom("TLO002", "unwritten", "tl.LayoutInference", "store global in T.Parallel")
    assert known(loop) == "loop"
    assert known(Symptom("TLO002", "unwritten", "tl.LayoutInference", "T.copy fragment global")) == ""
