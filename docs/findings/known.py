"""Writes tlcheck/fuzz/known.toml: how each finding shows, so that `tlcheck fuzz` recognizes it.

    python docs/findings/known.py [CASE...]

Each case of tests/wrong_code is checked with the last installed release that has it wrong; entries of others stay, and
so does what is written by hand: `like` (further symptoms, `*` for anything), `says`, `source`, `has`, `without`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomllib

from tlcheck.cli.progress import bar
from tlcheck.execute.request import Request
from tlcheck.fuzz.outcome import Symptom, symptom
from tlcheck.gate.verdict_outcomes import all_claims
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.toolchain.releases import RELEASES
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.judge import Policy

ROOT = Path(__file__).parents[2]
WRONG = ROOT / "tests" / "wrong_code"
OUT = ROOT / "tlcheck" / "fuzz" / "known.toml"
HEAD = (
    "# How the findings of docs/findings.md show: rule, origin, pass, statements. docs/findings/known.py writes\n"
    "# `shows` and `releases`; the rest is written by hand.\n"
)


def main(wanted: list[str]) -> None:
    """Look at these cases, or at all."""
    expected = tomllib.loads((WRONG / "expected.toml").read_text())
    entries = tomllib.loads(OUT.read_text())
    for name, archs in expected.items():
        entry = entries.setdefault(name, {"shows": []})
        has = {r for found in archs.values() for r, each in found.items() if each["verdict"] == "refuted"}
        entry["releases"] = [release for release in RELEASES if release in has]
        if wanted and name not in wanted:
            continue
        shows = {Symptom(*each) for each in entry["shows"]}
        for arch, releases in archs.items():
            wrong = [r for r in RELEASES if releases.get(r, {}).get("verdict") == "refuted" and _is_installed(r)]
            for release in wrong[-1:]:
                shows.update(_shows(name, arch, release))
                print(name, arch, release, len(shows), flush=True)
        entry["shows"] = [[s.rule, s.kind, s.pass_name, s.statement, s.other] for s in sorted(shows)]
    OUT.write_text(HEAD + "".join(_written(entries)))


def _is_installed(release: str) -> bool:
    try:
        resolve(release, ())
    except Exception:
        return False
    return True


def _shows(name: str, arch: str, release: str) -> Iterator[Symptom]:
    """How a case is wrong there."""
    texts = {file: file.read_text() for file in (WRONG / "kernels.py", WRONG / "repaired.py")}
    file = next(file for file, text in texts.items() if f"\n{name} = Case(" in text)
    settings = Settings(toolchain=release, arch=(arch,), jobs=1)
    policy = Policy(excusing=False, execute=Request())
    with (
        tempfile.TemporaryDirectory() as folder,
        bar(-1) as watcher,
        checking(settings, policy, Path(folder), watcher) as checks,
    ):
        for _, result in checks.results([Selection(file, name)]):
            for claim in all_claims(result.claims):
                if claim.blames_compiler and claim.finding is not None:
                    yield symptom(claim, texts[file])


def _written(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, entry in sorted(entries.items()):
        yield f"\n[{name}]\n"
        for key in ("says", "source", "has", "without"):
            if key in entry:
                yield f"{key} = {_literal(entry[key])}\n"
        for key in ("shows", "like"):
            if key in entry:
                lines = ",\n".join(f"    {_literal(row)}" for row in entry[key])
                yield f"{key} = [\n{lines},\n]\n"
        yield f"releases = {_literal(entry['releases'])}\n"


def _literal(value: str | Sequence[str]) -> str:
    """TOML of a text or a list of texts: one with a backslash stays as it is, in single quotes, if it has none."""
    if not isinstance(value, str):
        return f"[{', '.join(map(_literal, value))}]"
    return f"'{value}'" if "\\" in value and "'" not in value else json.dumps(value)


if __name__ == "__main__":
    main(sys.argv[1:])
