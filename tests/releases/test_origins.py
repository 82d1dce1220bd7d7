"""Test where wrong code begins: the origin of each case is what reading the kernel and its TIR found (`origins.toml`).

`python tests/releases/test_origins.py [--why]` measures: it prints what is not as read, and how many are; with `--why`
also by which pass, as `check --why` finds it after each of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path("tests", "wrong_code")
KNOWN = msgspec.toml.decode((ROOT / FOLDER / "origins.toml").read_text())
LOWERED = sorted({(own["release"], arch) for archs in KNOWN.values() for arch, own in archs.items()})


@pytest.mark.parametrize(("release", "arch"), LOWERED)
def test_the_origin_is_what_reading_the_kernel_found(release: str, arch: str) -> None:
    found = dict(origins(release, arch))
    assert {case: found[case][0] for case in found} == {case: expected(case, arch) for case in found}
    assert set(found) == {case for case in KNOWN if KNOWN[case].get(arch, {}).get("release") == release}


@pytest.mark.parametrize(("release", "arch"), LOWERED)
def test_no_pass_is_blamed_that_is_not_guilty(release: str, arch: str) -> None:
    """Several passes may stand between two checkpoints: then none is named."""
    for case, (_, blamed) in origins(release, arch):
        assert blamed in ("", *KNOWN[case][arch]["guilty"]), case


def expected(case: str, arch: str) -> dict[str, str]:
    known = KNOWN[case][arch]
    return {key: known.get(key, "") for key in ("kind", "buffer", "line", "other")}


def origins(release: str, arch: str, *options: str) -> Iterator[tuple[str, tuple[dict[str, str], str]]]:
    """Of each case: what its only finding says of its origin, and the pass that it blames. options: of `check`."""
    cases = [case for case in KNOWN if KNOWN[case].get(arch, {}).get("release") == release]
    texts = {file: file.read_text() for file in sorted((ROOT / FOLDER).glob("*.py"))}
    files = {case: file for case in cases for file, text in texts.items() if f"\n{case} = Case(" in text}
    selected = [f"{FOLDER / files[case].name}::{case}" for case in cases]
    command = [sys.executable, "-m", "tlcheck", "check", *selected, "--arch", arch, "--toolchain", release]
    options = options or ("--no-why",)
    done = subprocess.run(
        [*command, *options, "--format", "json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    for run in json.loads(done.stdout)["runs"]:
        case = run["case"].partition("::")[2]
        findings = [claim["finding"] for claim in run["claims"] if claim["finding"]]
        assert len(findings) == 1, f"{case}: one cause is one finding, not {len(findings)}"
        yield case, (told(findings[0]["origin"], files[case]), blamed_by(findings[0]))


def blamed_by(finding: dict[str, Any]) -> str:
    """The pass of a finding; of several of one name that name."""
    found = finding["pass_name"] or (finding["history"] or {}).get("pass_name", "")
    return "" if found == "the code generator" else str(found).partition(" (")[0]


def told(origin: dict[str, Any] | None, file: Path) -> dict[str, str]:
    lines = ["", *file.read_text().splitlines()]
    if origin is None:
        return {}
    buffers = [*origin["buffers"], ""]
    other = lines[origin["other_line"]].strip() if known_other(origin) else ""
    return {"kind": origin["kind"], "buffer": buffers[0], "line": lines[origin["line"]].strip(), "other": other}


def known_other(origin: dict[str, Any]) -> bool:
    """Whether the other access is another statement that matters: of another element it is the same one."""
    return origin["kind"] not in ("other-index", "other-operand", "unguarded")


def main() -> None:
    right = guilty = count = 0
    for release, arch in LOWERED:
        for case, (origin, blamed) in origins(release, arch, *sys.argv[1:]):
            count += 1
            right += origin == expected(case, arch)
            guilty += (blamed or "none") in KNOWN[case][arch]["guilty"]
            if origin != expected(case, arch):
                print(f"{case} {arch} {release}: {origin}, not {expected(case, arch)}")
            if (blamed or "none") not in KNOWN[case][arch]["guilty"]:
                print(f"{case} {arch} {release}: blamed is {blamed or 'no pass'}, guilty {KNOWN[case][arch]['guilty']}")
    print(f"origin right in {right} of {count}, pass in {guilty}")


if __name__ == "__main__":
    main()
