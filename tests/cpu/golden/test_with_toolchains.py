"""Goldens of kernels that are lowered for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tests.cpu.golden.goldens import ATTENTION
from tlcheck.cli.main import main
from tlcheck.golden.normal import normal_text
from tlcheck.golden.recording import golden_of
from tlcheck.golden.store import GoldenStore
from tlcheck.snapshot import codec
from tlcheck.toolchain.releases import PINNED

EDITED = Path(__file__).parent / "kernels" / "edited.py"
FIRST = {
    "tile": ("B, a, c: 64 x 64 -> 128 x 64", "argument rows: none -> 128"),
    "layout": ("w: layout swizzle 128B -> row-major", "argument swizzled: none -> False"),
}


@pytest.fixture
def _pinned() -> None:
    installed(PINNED)


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("_pinned")
def test_the_first_line_names_what_was_changed_in_a_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its argument where it has one, then what came of it; other edits are in facts/test_edits.py."""
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("[tool.tlcheck]\n")
    Path("edited.py").write_text(EDITED.read_text())
    cases = [f"edited.py::{name}" for name in ("original", *FIRST)]
    assert main(["check", *cases, "--quick", "--save", "."]) == 0
    saved = {path.name.split("-")[1]: path for path in tmp_path.glob("*.snapshot.json")}
    capsys.readouterr()
    for name, (fact, argument) in FIRST.items():
        assert main(["diff", str(saved["original"]), str(saved[name])]) == 1
        _, first, second, *_ = capsys.readouterr().out.splitlines()
        assert (first.strip(), second.strip()) == (argument, fact)


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("_pinned")
def test_every_process_and_order_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process for two kernels, and a fresh one that meets the second alone."""
    monkeypatch.chdir(tmp_path)
    kernel, _, cases = EDITED.read_text().partition("original =")
    two = [line for line in cases.splitlines() if line.startswith(("tile", "layout"))]
    found = []
    for folder, lines, options in (("a", two, ["--jobs", "1"]), ("b", two[1:], ["--no-fork"])):
        Path("k.py").write_text("\n".join([kernel, *lines]))
        Path("pyproject.toml").write_text(f'[tool.tlcheck]\ngolden = "{folder}"\n')
        assert main(["golden", "update", "--no-cache", "k.py", *options]) == 0
        found.append({pending.key: pending.golden for pending in GoldenStore(Path(folder)).pending()})
    assert (len(found[0]), len(found[1])) == (2, 1)
    assert found[1].items() <= found[0].items()


def test_the_attention_kernel_is_small_and_has_one_statement_a_line() -> None:
    snapshot = codec.loads(ATTENTION.read_text(encoding="utf-8"))
    text = normal_text(snapshot, "lower-tile-op")
    golden = golden_of(snapshot, ("lower-tile-op",))
    assert 10_000 < sum(map(len, golden.parts.values())) < 60_000
    assert text.startswith("# tilelang: 0.1.7\n# target: sm_90\n# checkpoint: lower-tile-op\n# argument batch: 1\n")
    assert "    # layout dQ: (i, j, k, l) -> (0, j, k // 8, l // 8, l % 2, k % 8 * 4 + l % 8 // 2)\n" in text
    assert text.count("T.atomic_add") == sum("T.atomic_add" in line for line in text.splitlines())
