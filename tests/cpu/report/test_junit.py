"""JUnit XML: well formed whatever a kernel's error has in it, and with the counts that a CI server shows."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.cpu.report.documents import DOCUMENT, EMPTY
from tlcheck.report import junit


def test_counts_failures_and_skipped_cases() -> None:
    suite = ElementTree.fromstring(junit.render(DOCUMENT)).find("testsuite")
    assert suite is not None
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")}
    assert counts == {"tests": "4", "failures": "1", "errors": "0", "skipped": "1", "time": "1.500"}
    failed, noted, accepted, skipped = suite.findall("testcase")
    assert (failed.get("classname"), failed.get("name")) == ("kernels/k.py", "full sm_90")
    failure = failed.find("failure")
    assert failure is not None
    assert failure.get("type") == "wrong"
    assert "kernels/k.py:7: wrong: B: it is wrong\nwitness: lane 1" in str(failure.text)
    assert noted.find("failure") is None
    assert "not deployed" in str(accepted.findtext("system-out"))
    assert skipped.find("skipped") is not None


def test_texts_of_kernels_are_neither_markup_nor_control_characters() -> None:
    out = ElementTree.fromstring(junit.render(DOCUMENT)).findall(".//testcase")[1].findtext("system-out")
    assert out is not None
    assert 'a | b <b>[31m & "q"' in out
    assert "]]>  end\nsecond line" in out


def test_a_case_without_notices_passes() -> None:
    (case,) = ElementTree.fromstring(junit.render(EMPTY)).findall(".//testcase")
    assert list(case) == []
