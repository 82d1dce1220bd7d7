"""Writes tlcheck/fuzz/known.toml: how each finding shows, so that `tlcheck fuzz` recognizes it.

    python docs/findings/known.py [CASE...]

Each case of tests/wrong_code is checked with the last installed release that has it wrong; entries of others stay.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

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
    "# How the findings of docs/findings.md show: rule, origin, pass, statements. Written by docs/findings/known.py.\n"
)


def main(wanted: list[str]) -> None:
    """Look at these cases, or at all."""
    expected = tomllib.loads((WRONG / "expected.toml").read_text())
    known = tomllib.loads(OUT.read_text())
    entries = {name: {Symptom(*shows) for shows in entry["shows"]} for name, entry in known.items()}
    for name, archs in expected.items():
        if wanted and name not in wanted:
            continue
        for arch, releases in archs.items():
            wrong = [r for r in RELEASES if releases.get(r, {}).get("verdict") == "refuted" and _is_installed(r)]
            for release in wrong[-1:]:
                entries.setdefault(name, set()).update(_shows(name, arch, release))
                print(name, arch, release, len(entries[name]), flush=True)
                OUT.write_text(HEAD + "".join(_written(entries.items())))


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


def _written(entries: Iterable[tuple[str, set[Symptom]]]) -> Iterator[str]:
    for name, shows in sorted(entries):
        rows = [[s.rule, s.kind, s.pass_name, s.statement, s.other] for s in sorted(shows)]
        lines = ",\n".join(f"    {row!r}".replace("'", '"') for row in rows)
        yield f"\n[{name}]\nshows = [\n{lines},\n]\n"


if __name__ == "__main__":
    main(sys.argv[1:])
