"""Test which job a node of a cluster gets next."""

from __future__ import annotations

from collections.abc import Iterable

from tlcheck.cluster.placement import Placement, QueuedJob

OLD, NEW = "0.1.9", "0.1.15"


def placement(jobs: Iterable[tuple[str, str]], **nodes: Iterable[str]) -> Placement[str]:
    """Jobs as (toolchain, kernel), and what nodes have installed."""
    made: Placement[str] = Placement()
    for toolchain, kernel in jobs:
        made.add(QueuedJob(toolchain, kernel, f"{kernel} {toolchain}"))
    for node, installed in nodes.items():
        made.joins(node, installed)
    return made


def taken(made: Placement[str], node: str) -> str | None:
    job = made.take(node)
    return None if job is None else job.work


def test_a_node_goes_on_with_its_toolchain() -> None:
    made = placement([(OLD, "a"), (NEW, "a"), (NEW, "b"), (NEW, "c"), (OLD, "b")], one=(OLD, NEW), two=(OLD, NEW))
    assert [taken(made, "one"), taken(made, "two")] == ["a 0.1.15", "a 0.1.9"]
    assert [taken(made, "one"), taken(made, "one"), taken(made, "two")] == ["b 0.1.15", "c 0.1.15", "b 0.1.9"]


def test_a_toolchain_is_not_installed_for_a_few_jobs() -> None:
    made = placement([(OLD, f"k{n}") for n in range(8)], one=[OLD], two=[])
    first = made.take("one")
    assert first is not None
    made.ended(first, 10.0)
    assert made.take("two") is None  # 70 s are left, and installing takes 90
    made.joins("three", [OLD])
    assert taken(made, "three") == "k1 0.1.9"


def test_somebody_begins_with_a_toolchain_that_nobody_has() -> None:
    made = placement([(OLD, "a")], one=[])
    assert taken(made, "one") == "a 0.1.9"


def test_what_took_long_with_one_toolchain_comes_first_with_another() -> None:
    made = placement([(name, kernel) for name in (NEW, OLD) for kernel in "abc"], one=(OLD, NEW))
    for seconds in (1.0, 9.0, 5.0):
        job = made.take("one")
        assert job is not None
        made.ended(job, seconds)
    assert [taken(made, "one") for _ in range(3)] == ["b 0.1.9", "c 0.1.9", "a 0.1.9"]


def test_what_judging_waits_for_comes_first() -> None:
    made = placement([(name, kernel) for name in (NEW, OLD) for kernel in "ab"], one=(OLD, NEW))
    made.add(QueuedJob(NEW, "inputs", "inputs 0.1.15", awaited=True))
    for work in ("inputs 0.1.15", "a 0.1.15", "b 0.1.15"):
        job = made.take("one")
        assert job is not None
        assert job.work == work
        made.ended(job, 5.0)
    made.add(QueuedJob(OLD, "inputs", "inputs 0.1.9", awaited=True))  # it has been seen
    made.add(QueuedJob(OLD, "c", "c 0.1.9"))
    assert [taken(made, "one") for _ in range(4)] == ["inputs 0.1.9", "c 0.1.9", "a 0.1.9", "b 0.1.9"]


def test_a_node_that_cannot_gets_no_more_of_a_toolchain() -> None:
    made = placement([(OLD, "a"), (OLD, "b"), (NEW, "a")], one=[NEW], two=[OLD])
    job = made.take("one")
    assert job is not None
    made.cannot("one", OLD)
    made.add(QueuedJob(OLD, "a", "a 0.1.9"))
    assert [taken(made, "one"), taken(made, "one")] == ["a 0.1.15", None]
    assert made.unplaceable() is None
    made.cannot("two", OLD)
    assert made.unplaceable() == OLD
    made.joins("three", [OLD])
    assert made.unplaceable() is None


def test_a_node_that_left_counts_no_more() -> None:
    made = placement([(OLD, f"k{n}") for n in range(4)], one=[OLD], two=[])
    assert taken(made, "one") == "k0 0.1.9"
    assert taken(made, "two") is None
    made.leaves("one")
    assert taken(made, "two") == "k1 0.1.9"


def test_what_waits_can_be_taken_away() -> None:
    made = placement([(OLD, "a"), (NEW, "b")], one=[OLD])
    assert {job.work for job in made.empty()} == {"a 0.1.9", "b 0.1.15"}
    assert len(made) == 0


def test_jobs_that_are_alike_can_be_taken_together() -> None:
    made: Placement[str] = Placement()
    for kernel, file in (("a", "one"), ("b", "two"), ("c", "one"), ("d", "one")):
        made.add(QueuedJob(NEW, kernel, kernel, file))
    made.joins("node", [NEW])
    first = made.take("node")
    assert first is not None
    assert made.alike(first) == 2
    assert [job.work for job in made.take_alike(first, 1)] == ["c"]
    assert [taken(made, "node") for _ in range(3)] == ["b", "d", None]
