"""cp.async in the facts: bytes of a copy by release, and waits by what they leave under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.fixtures.index import read
from tlcheck.facts import Facts, changes
from tlcheck.facts.extract import facts_of
from tlcheck.program.async_copies import copied_bytes
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Attr, Buffer, Evaluate, Expr, For, Seq, Snapshot, Stmt, Thread
from tlcheck.snapshot.walk import rebuild

BASE = next(f for f in read().fixtures if f.path == "edges/ragged_source-0.1.15").snapshot()


def number(value: int) -> Expr:
    return Expr("int", "int32", value=value)


def buffer(name: str, scope: str, uid: int) -> Buffer:
    return Buffer(name, "float16", (number(4096),), scope, Expr("var", "handle", value=name, uid=uid))


SHARED, GLOBAL = buffer("s", "shared.dyn", 90_101), buffer("A", "global", 90_102)


def address(of: Buffer) -> Expr:
    return Expr("call", "handle", (Expr("load", "float16", (number(0),), buffer=of),), "address_of")


def by_address(size: int) -> Expr:
    return Expr("call", "handle", (address(SHARED), address(GLOBAL), number(size)), "ptx_cp_async")


def by_offset(size: int) -> Expr:
    args = (SHARED.data, number(0), GLOBAL.data, number(0), number(size))
    return Expr("call", "handle", args, "ptx_cp_async")


@pytest.mark.parametrize(
    ("call", "release", "expected"),
    [
        (by_address(16), "0.1.7.post3", 16),
        (by_address(16), "0.1.8", 16),
        (by_address(8), "0.1.9", 16),
        (by_address(8), "0.1.15", 16),
        (by_address(16), "0.1.9", 32),
        (by_offset(16), "0.1.6.post2", 16),
        (by_offset(16), "0.1.15", 16),
    ],
)
def test_the_size_of_a_copy_is_bytes_or_elements(call: Expr, release: str, expected: int) -> None:
    assert copied_bytes(call, 16, Release.of(release)) == expected


def test_a_size_that_varies_is_not_known() -> None:
    varies = Expr("var", "int32", value="n", uid=90_103)
    call = Expr("call", "handle", (address(SHARED), address(GLOBAL), varies), "ptx_cp_async")
    assert copied_bytes(call, 16, Release.of("0.1.15")) is None


def lowered(release: str, statements: Sequence[Stmt]) -> Snapshot:
    """A snapshot of a release whose threads do this at the last checkpoint."""
    last = BASE.checkpoints["device-tir"]

    def change(_: Stmt, stmt: Stmt) -> Stmt:
        inner = isinstance(stmt, Thread) and stmt.tag == "threadIdx.x"
        return replace(stmt, body=Seq(tuple(statements))) if inner else stmt  # type: ignore[call-arg]

    changed = replace(last, body=rebuild(last.body, change))
    toolchain = {**BASE.toolchain, "tilelang": release}
    return replace(BASE, toolchain=toolchain, checkpoints={**BASE.checkpoints, "device-tir": changed})


def wait(newest: int) -> Stmt:
    return Evaluate(Expr("call", "handle", (number(newest),), "ptx_wait_group"))


def scope(newest: int) -> Stmt:
    """The same wait as pipelines up to 0.1.8 spell it."""
    return Attr("async_wait_queue_scope", number(0), Attr("async_wait_inflight_count", number(newest), Seq(())))


def pipeline(release: str, copy: Expr, waits: Sequence[Stmt]) -> Facts:
    """Six steps, of which the last two are peeled."""
    loop = For(Expr("var", "int32", value="k", uid=90_104), number(0), number(4), "serial", waits[0])
    return facts_of(lowered(release, [Evaluate(copy), loop, *waits[1:]]))


def test_the_same_copies_and_waits_in_the_words_of_two_releases_are_the_same() -> None:
    old = pipeline("0.1.8", by_address(16), [scope(2), scope(1), scope(0)])
    new = pipeline("0.1.10", by_address(8), [wait(2), wait(1), wait(0)])
    assert changes(old, new) == ()
    assert [s.name for s in new.syncs if "cp.async" in s.name] == [
        f"cp.async wait for all but {n} groups" for n in (0, 1, 2)
    ]


def test_a_wait_that_leaves_more_groups_under_way_is_a_change() -> None:
    """2, 2, 0 where 2, 1, 0 is right: what 0.1.9 makes of a pipelined gemm."""
    old = pipeline("0.1.8", by_address(16), [scope(2), scope(1), scope(0)])
    new = pipeline("0.1.9", by_address(8), [wait(2), wait(2), wait(0)])
    found = {(c.subject, c.detail) for c in changes(old, new) if c.kind == "wait"}
    assert found == {
        ("cp.async wait for all but 1 groups", "1 -> 0 in a thread"),
        ("cp.async wait for all but 2 groups", "4 -> 5 in a thread"),
    }
