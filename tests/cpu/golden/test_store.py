"""The golden folder: pending and approved goldens, decisions, and what goes wrong with files."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.golden.goldens import golden
from tlcheck.errors import UsageError
from tlcheck.golden import approvals
from tlcheck.golden.approvals import Approvals, Decision, decision
from tlcheck.golden.entry import Golden, Key, damage, key_of, placed
from tlcheck.golden.pending import Pending
from tlcheck.golden.store import GoldenStore

KEY = Key("cases/atomics.py", "annotated_gemm", "sm_90")
OTHER = Key("cases/atomics.py", "loop_pipelined", "sm_90")
NOW = golden("annotated_gemm")
OLD = golden("annotated_gemm", "0.1.7")
NOBODY = 65534  # a user who owns nothing


def pending(key: Key = KEY, content: Golden | None = NOW) -> Pending:
    return Pending(key, content, {"tilelang": "0.1.15"})


def approved(folder: Path, key: Key = KEY, content: Golden = NOW) -> GoldenStore:
    store = GoldenStore(folder)
    store.record(pending(key, content))
    (waiting,) = store.pending()
    store.accept(waiting, decision(waiting.digest, "seen"))
    return store


def tir(store: GoldenStore, key: Key = KEY) -> Path:
    return store.folder / f"{key.stem}.lower-tile-op.tir"


def test_recording_leaves_what_is_approved_alone(tmp_path: Path) -> None:
    store = approved(tmp_path / "golden", content=OLD)
    before = tir(store).read_bytes()
    store.record(pending())
    assert tir(store).read_bytes() == before
    assert store.read().problem(KEY) == ""
    (waiting,) = store.pending()
    assert waiting == pending()


def test_accepting_moves_it_there_and_says_who_when_and_why(tmp_path: Path) -> None:
    store = approved(tmp_path / "golden")
    contents = store.read()
    assert contents.goldens == {KEY: NOW}
    assert contents.problem(KEY) == ""
    made = contents.approvals.approved[str(KEY)]
    assert (made.reason, made.hash, len(made.when)) == ("seen", NOW.digest, 20)
    assert made.who
    assert store.pending() == []
    assert not list(store.folder.rglob("*.new"))


def test_rejecting_forgets_the_content_and_keeps_that_it_was_rejected(tmp_path: Path) -> None:
    store = approved(tmp_path / "golden", content=OLD)
    store.record(pending())
    store.reject(store.pending()[0], decision(NOW.digest, "not wanted"))
    contents = store.read()
    assert contents.goldens == {KEY: OLD}
    assert contents.approvals.rejected[str(KEY)].reason == "not wanted"
    assert store.pending() == []


def test_a_removal_is_decided_too(tmp_path: Path) -> None:
    store = approved(tmp_path / "golden")
    store.record(pending(content=None))
    store.accept(store.pending()[0], decision("", "the case is gone"))
    assert store.read().goldens == {}
    assert store.read().approvals.approved == {}
    assert sorted(p.name for p in store.folder.rglob("*") if p.is_file()) == [
        ".gitattributes",
        ".gitignore",
        "approvals.toml",
    ]


def test_any_character_changed_in_a_file_is_noticed(tmp_path: Path) -> None:
    store = approved(tmp_path / "golden")
    for part in NOW.parts:
        file = store.folder / f"{KEY.stem}.{part}"
        data = file.read_bytes()
        for place in range(0, len(data), 61):
            file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            assert store.read().problem(KEY)
        file.write_bytes(data)
        assert store.read().problem(KEY) == ""


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda text: text.replace(b"\n", b"\r\n"), "CRLF"),
        (lambda text: b"<<<<<<< HEAD\n" + text + b"=======\n" + text + b">>>>>>> other\n", "merge-conflict"),
        (lambda text: text[:-20], "cut off"),
        (lambda text: b"", "empty"),
        (lambda text: text + b"\xff\n", "UTF-8"),
        (lambda text: text.replace(b"128", b"129"), "changed after"),
    ],
)
def test_it_is_said_what_is_wrong_with_a_file(tmp_path: Path, change: object, what: str) -> None:
    store = approved(tmp_path / "golden")
    tir(store).write_bytes(change(tir(store).read_bytes()))  # type: ignore[operator]
    assert what in store.read().problem(KEY)


def test_a_golden_that_nobody_accepted_is_not_approved(tmp_path: Path) -> None:
    store = approved(tmp_path / "golden")
    (store.folder / approvals.FILE).unlink()
    assert "not approved" in store.read().problem(KEY)


def test_a_missing_part_is_noticed(tmp_path: Path) -> None:
    store = approved(tmp_path / "golden")
    (store.folder / f"{KEY.stem}.facts.json").unlink()
    assert store.read().problem(KEY)


@pytest.mark.parametrize("after", ["approvals", "first part", "all parts"])
def test_what_was_decided_and_not_carried_out_is_carried_out_later(tmp_path: Path, after: str) -> None:
    store = approved(tmp_path / "golden", content=OLD)
    store.record(pending())
    made = Approvals({str(KEY): decision(NOW.digest, "seen")})
    (store.folder / approvals.FILE).write_text(approvals.dumps(made))
    parts = [store.folder / f"{KEY.stem}.{part}" for part in NOW.parts]
    for part in parts[: {"approvals": 0, "first part": 1, "all parts": 2}[after]]:
        part.with_name(f"{part.name}.new").replace(part)
    store.finish()
    assert store.read().goldens == {KEY: NOW}
    assert store.read().problem(KEY) == ""
    assert store.pending() == []


def test_content_that_was_replaced_meanwhile_is_not_accepted(tmp_path: Path) -> None:
    store = GoldenStore(tmp_path / "golden")
    store.record(pending())
    (seen,) = store.pending()
    store.record(pending(content=OLD))
    with pytest.raises(UsageError, match="something else waits"):
        store.accept(seen, decision(seen.digest, "seen"))
    assert store.read().goldens == {}
    assert store.pending()[0].golden == OLD


def test_pending_content_that_was_edited_is_refused(tmp_path: Path) -> None:
    store = GoldenStore(tmp_path / "golden")
    store.record(pending())
    file = store.folder / f"{KEY.stem}.lower-tile-op.tir.new"
    file.write_text(file.read_text().replace("128", "129"))
    with pytest.raises(UsageError, match="run `tlcheck golden update` again"):
        store.pending()
    store.finish()  # is not in the way of the update
    store.record(pending())
    assert store.pending()[0].golden == NOW


def _decide(folder: Path, number: int) -> None:
    key = Key("k.py", f"case{number}", "sm_90")
    approved_alone = GoldenStore(folder)
    approved_alone.record(pending(key))
    (mine,) = [p for p in approved_alone.pending() if p.key == key]
    approved_alone.accept(mine, decision(mine.digest, f"reason {number}"))


def test_processes_that_decide_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_decide, args=(tmp_path / "golden", number)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    contents = GoldenStore(tmp_path / "golden").read()
    assert len(contents.goldens) == 8
    assert [contents.problem(key) for key in contents.goldens] == [""] * 8


def _write_with_little_space(folder: Path, limit: int) -> subprocess.CompletedProcess[str]:
    """A process whose files may have so many bytes."""
    code = f"""
import resource
from pathlib import Path
from tests.cpu.golden.test_store import KEY, NOW, pending
from tlcheck.errors import UsageError
from tlcheck.golden.store import GoldenStore
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
try:
    GoldenStore(Path({str(folder)!r})).record(pending())
except UsageError as error:
    print(error)
"""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    store = approved(tmp_path / "golden", content=OLD)
    store.record(pending(OTHER))
    before = {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file()}
    done = _write_with_little_space(store.folder, 1000)
    assert "File too large; nothing was changed there" in done.stdout
    assert {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file()} == before


@contextmanager
def _unprivileged() -> Iterator[None]:
    """Nothing is refused to root, so that root is another user meanwhile."""
    user = os.geteuid()
    os.seteuid(user or NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the folders around it may be closed to another user
    tmp_path.chmod(0o755)
    store = approved(Path("golden"))
    folder = tir(store).parent
    before = {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file()}
    folder.chmod(0o555)
    try:
        with _unprivileged(), pytest.raises(UsageError, match="Permission denied; nothing was changed"):
            store.record(pending(OTHER))
    finally:
        folder.chmod(0o755)
    assert {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file()} == before


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "golden").write_text("")
    with pytest.raises(UsageError, match=r"golden: "):
        GoldenStore(tmp_path / "golden").record(pending())


def test_places_of_goldens(tmp_path: Path) -> None:
    assert placed(f"{KEY.stem}.lower-tile-op.tir.new") == (KEY, "lower-tile-op.tir")
    assert placed(f"{KEY.stem}.facts.json") == (KEY, "facts.json")
    amd = replace(KEY, target="gfx942")
    assert placed(f"{amd.stem}.lower-tile-op.tir") == (amd, "lower-tile-op.tir")
    assert placed(f"{KEY.stem}.facts.json".replace(KEY.target, "sm_91")) is None
    assert placed("approvals.toml") is None
    assert placed("cases/notes.md") is None
    assert key_of(str(tmp_path / "cases" / "atomics.py"), "annotated_gemm", "sm_90", tmp_path) == KEY
    with pytest.raises(UsageError, match="outside"):
        key_of(str(tmp_path / ".." / "k.py"), "a", "sm_90", tmp_path)


def test_approvals_are_read_as_written() -> None:
    awkward = Decision(
        'A "quoted" \\ name <a@b>',
        "2026-01-01T00:00:00Z",
        "line\nbreak \x7f \u00e9 \U0001f600",
        "ab",
        ("x",),
        ("output C: agreed",),
    )
    made = Approvals({"k.py::a sm_90": awkward, "b": awkward}, {"c": awkward})
    assert approvals.loads(approvals.dumps(made), "here") == made
    assert approvals.dumps(made) == approvals.dumps(Approvals(dict(sorted(made.approved.items())), made.rejected))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<<<<<<< HEAD\n", "merge-conflict"),
        ("[approved\n", "here: "),
        ("[accepted.a]\n", "unknown field `accepted`"),
        ("approved = 1\n", "Expected `object`, got `int`"),
        ('[approved.a]\nwho = "x"\n', "missing required field `when`"),
        ('[approved.a]\nwho = 1\nwhen = ""\nreason = ""\nhash = ""\n', "Expected `str`, got `int`"),
    ],
)
def test_approvals_that_cannot_be_read(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        approvals.loads(text, "here")


def test_damage_of_a_sound_golden_is_nothing() -> None:
    assert damage(NOW) == ""
