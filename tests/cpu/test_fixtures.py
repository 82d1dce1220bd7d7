"""The committed snapshots are what `make fixtures` makes, of what is in the tree now."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tests.cpu.client import Client
from tests.fixtures import make
from tests.fixtures.examples import examples, of_page
from tests.fixtures.index import FOLDER, Fixture, read
from tests.warm import WarmWorker
from tlcheck.snapshot import codec
from tlcheck.toolchain.identity import identify
from tlcheck.toolchain.releases import PINNED, RELEASES
from tlcheck.verdicts.rules.rule_pages import RulePage

INDEX = read()
FIXTURES = [pytest.param(fixture, id=fixture.path) for fixture in INDEX.fixtures]
MAX_BYTES = 3_250_000

BAD = """Bad in 0.1.7 (sm_90): so.

```python
def main(): 1
```
"""


def test_every_file_is_in_the_index() -> None:
    files = {
        file
        for part in ("rules", "era", "demo", "edges", "mutations", "tensor_memory", "blackwell", "clusters", "wrong")
        for file in (FOLDER / part).iterdir()
    }
    assert files == {fixture.file for fixture in INDEX.fixtures}
    assert sum(file.stat().st_size for file in files) < MAX_BYTES


def test_every_release_has_every_kernel() -> None:
    kernels = {f"{file}::{name}" for file, names in make.ERA_CASES.items() for name in names}
    found = {(f.release, f.kernel) for f in INDEX.fixtures if f.path.startswith("era/")}
    assert found == {(release, kernel) for release in RELEASES for kernel in kernels}


def test_the_toolchains_are_recorded() -> None:
    assert set(INDEX.toolchains) == {fixture.release for fixture in INDEX.fixtures}
    for release, fields in INDEX.toolchains.items():
        assert fields["packages"]["tilelang"].partition("+")[0] == release
        assert re.fullmatch(r"[0-9a-f]{64}", fields["content"])
    assert len({fields["content"] for fields in INDEX.toolchains.values()}) == len(INDEX.toolchains)


@pytest.mark.parametrize("fixture", FIXTURES)
def test_a_snapshot_is_what_the_index_says(fixture: Fixture) -> None:
    text = fixture.file.read_text(encoding="utf-8")
    snapshot = codec.loads(text)
    assert codec.dumps(snapshot) == text
    assert (snapshot.toolchain["tilelang"].partition("+")[0], snapshot.target) == (fixture.release, fixture.arch)
    assert snapshot.case == fixture.command.split()[2].partition("::")[2]
    assert not snapshot.file.startswith("/")


def test_the_index_is_of_this_schema() -> None:
    assert INDEX.schema == codec.SCHEMA, "run `make fixtures`"


def test_the_examples_on_the_pages_are_those_that_were_lowered() -> None:
    lowered = {fixture.kernel: fixture.digest for fixture in INDEX.fixtures if fixture.digest}
    assert {example.name: example.digest for example in examples()} == lowered, "run `make fixtures`"


def test_an_example_may_share_the_kernel_before_it() -> None:
    bad, good = of_page(RulePage("TLA999", "x", "X", BAD + "\nGood in 0.1.15 (sm_80): the same kernel."))
    assert (bad.kind, bad.release, bad.arch, bad.changed) == ("bad", "0.1.7", "sm_90", False)
    assert (good.kind, good.release, good.arch) == ("good", "0.1.15", "sm_80")
    assert bad.source == good.source
    assert bad.source.endswith("def main(): 1\n")
    assert bad.digest != good.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BAD, "one bad and then one good"),
        (BAD + BAD, "one bad and then one good"),
        (BAD + "\nGood in 0.1.15: the same.", "not `Bad in RELEASE"),
        ("Good in 0.1.15 (sm_90): text only.", "no kernel for"),
    ],
)
def test_a_page_without_its_examples_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        of_page(RulePage("TLA999", "x", "X", text))


def test_missing_toolchains_are_named(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make.ROOT)
    before = _digest()
    assert make.main() == 2
    said = capsys.readouterr().err
    assert all(f"`tlcheck toolchain install {release}`" in said for release in RELEASES)
    assert _digest() == before


def _digest() -> str:
    files = sorted(file for file in FOLDER.rglob("*.json"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@pytest.mark.toolchain
@pytest.mark.parametrize("name", ["TLA001-good", "TLA004-good", "TLA012-bad"])
def test_the_same_toolchain_makes_the_same_bytes(name: str, tmp_path: Path) -> None:
    toolchain = installed(PINNED)
    if INDEX.toolchains[PINNED]["content"] != identify(toolchain).content:
        pytest.skip(f"the wheel of {PINNED} here is another than that of the fixtures")
    wanted = next(w for w in make.of_pages(tmp_path) if w.fixture.kernel == name)
    with Client(WarmWorker(toolchain.python, toolchain.env)) as worker:
        assert make.lower(worker, wanted, tmp_path) == wanted.fixture.file.read_text(encoding="utf-8")
