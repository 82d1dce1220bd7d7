"""Kernels of scripts: which belongs to which, and what comes of one that is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import make_result
from tlcheck.errors import UsageError
from tlcheck.facts import Facts
from tlcheck.gate.compare import outcomes
from tlcheck.gate.gate import Gate
from tlcheck.gate.outcome import DEFAULT_FAILING, LoweredPair, LoweredSide
from tlcheck.gate.pairing import FoundSides, paired, remarks
from tlcheck.lower.runs import Run
from tlcheck.lower.scripts import End
from tlcheck.verdicts.results import Result
from tlcheck.worker.protocol import Failure

ENDED = Failure("exception", "run", "TypeError: no", where="s.py:9")
VALUES = replace(ENDED, kind="capture", message="NoValuesError: `item` of a tensor")
LATE = Failure("timeout", "run", "80 of its 91 tests were left after 150 s")
UNUSABLE = Failure("usage", "run", "compiles no kernel")


def run_of(name: str, toolchain: str, place: int = 0, args: Mapping[str, str] | None = None) -> Run:
    position = (0 if toolchain == "old" else 1, 0, place)
    return Run("s.py", name, "sm_90", toolchain, {"tilelang": toolchain}, args or {}, position=position)


def kernel(name: str, toolchain: str, place: int, *verdicts: str, threads: int = 64, **args: str) -> LoweredSide:
    result = make_result(*verdicts, run=run_of(name, toolchain, place, args))
    return LoweredSide(result, Facts(toolchain, threads=threads), 1.0, 7, "digest")


def found(
    toolchain: str, *kernels: LoweredSide, ended: Failure | None = None, whole: Failure | None = None
) -> FoundSides:
    """Return what a script came to. whole: what is told of it where it has no kernel."""
    said = (f"{len(kernels)} until {ended.message}",) if ended is not None and whole is None else ()
    end = End(run_of("", toolchain), len(kernels), ended, said)
    sides = {("s.py", side.result.run.name, "sm_90"): side for side in kernels}
    if whole is not None:
        sides["s.py", "", "sm_90"] = LoweredSide(Result(end.run, failure=whole))
    return FoundSides(sides, {("s.py", "sm_90"): end})


def named(toolchain: str, *names: str, **more: Failure | None) -> FoundSides:
    return found(toolchain, *(kernel(name, toolchain, place) for place, name in enumerate(names)), **more)


def names(pairs: list[LoweredPair]) -> list[tuple[str, str, str]]:
    """The name of each pair, and those on both sides."""
    return [(p.name, _name(p.before), _name(p.after)) for p in pairs]


def _name(side: LoweredSide | None) -> str:
    return side.result.run.name if side is not None else ""


def classes(pairs: list[LoweredPair]) -> dict[str, list[str]]:
    return {pair.name: [outcome.klass for outcome in outcomes(pair, one_toolchain=False)] for pair in pairs}


def test_kernels_of_one_name_are_paired_in_their_order() -> None:
    pairs = paired(named("old", "b", "a", "a-2"), named("new", "a", "b", "a-2"), 1)
    assert names(pairs) == [("a", "a", "a"), ("b", "b", "b"), ("a-2", "a-2", "a-2")]
    assert all(pair.captured for pair in pairs)


def test_a_string_is_what_another_release_has_a_type_for() -> None:
    old = found("old", kernel("a[t='float16']", "old", 0, t="'float16'"))
    new = found("new", kernel("a[t=float16]", "new", 0, t="float16"))
    assert names(paired(old, new, 1)) == [("a[t=float16]", "a[t='float16']", "a[t=float16]")]


def test_tensors_that_a_name_does_not_show_tell_kernels_apart() -> None:
    old = found("old", kernel("a", "old", 0, x="f[64]"), kernel("a-2", "old", 1, x="f[128]"))
    new = found("new", kernel("a", "new", 0, x="f[128]"))
    assert names(paired(old, new, 1)) == [("a", "a-2", "a"), ("a (old)", "a", "")]


def test_where_one_side_has_more_of_a_name_their_form_tells_which_is_which() -> None:
    old = found("old", *(kernel(f"a-{n}", "old", n, threads=32 * n) for n in range(2, 6)))
    new = found("new", *(kernel(f"a-{n}", "new", n, threads=32 * n + 32) for n in range(2, 5)))
    assert names(paired(old, new, 1)) == [
        ("a-2", "a-3", "a-2"),
        ("a-2 (old)", "a-2", ""),
        ("a-3", "a-4", "a-3"),
        ("a-4", "a-5", "a-4"),
    ]


def test_a_script_that_fails_now_has_broken_the_kernels_that_it_does_not_come_to() -> None:
    pairs = paired(named("old", "a", "b"), named("new", "a", ended=ENDED), 1)
    assert classes(pairs) == {"a": [], "b": ["broken"]}
    (broken,) = outcomes(pairs[1], one_toolchain=False)
    assert broken.words == "fails now, run: the script does not come to it: TypeError: no (s.py:9)"
    back = paired(named("old", "a", ended=ENDED), named("new", "a", "b"), 1)
    assert classes(back) == {"a": [], "b": ["fixed"]}


@pytest.mark.parametrize("ended", [VALUES, LATE])
@pytest.mark.parametrize("before", [None, replace(LATE, message="70 of its 91 tests were left after 150 s")])
def test_a_script_that_ends_for_want_of_values_or_time_has_broken_nothing(
    ended: Failure, before: Failure | None
) -> None:
    pairs = paired(named("old", "a", "b", ended=before), named("new", "a", ended=ended), 1)
    assert classes(pairs) == {"a": [], "b": ["changed"]}
    assert pairs[1].after is not None
    assert pairs[1].after.result.failure is not None  # and so it was not checked
    back = paired(named("old", "a", ended=ended), named("new", "a", "b", ended=before), 1)
    assert classes(back) == {"a": [], "b": ["changed"]}


@pytest.mark.parametrize("ended", [None, ENDED])
def test_a_kernel_that_a_script_no_longer_compiles_is_a_change(ended: Failure | None) -> None:
    """Also where it ends early, and as it did before."""
    pairs = paired(named("old", "a", "b", ended=ended), named("new", "b", "c", ended=ended), 1)
    assert names(pairs) == [("a", "a", ""), ("b", "b", "b"), ("c", "", "c")]
    words = [outcome.words for pair in pairs for outcome in outcomes(pair, one_toolchain=False)]
    assert words == [
        "the kernel is no longer compiled by the script",
        "the kernel is compiled by the script only now",
    ]


def test_more_kernels_of_one_function_take_longer_to_compile() -> None:
    old = found("old", kernel("a[n=64]", "old", 0, n="64"), kernel("b", "old", 1))
    new = found("new", *(kernel(f"a[n={n}]", "new", n, n=str(n)) for n in (64, 65, 66)), kernel("c", "new", 3))
    pairs = paired(old, new, 1)
    assert classes(pairs) == {
        "a[n=64]": [],
        "a[n=65]": ["changed", "slower-risk"],
        "a[n=66]": ["changed", "slower-risk"],
        "b": ["changed"],
        "c": ["changed"],
    }
    (added,) = [pair for pair in pairs if pair.name == "a[n=65]"]
    risk = outcomes(added, one_toolchain=False)[1]
    assert risk.words == "the script compiles 3 kernels of this function, 1 before: each is compiled by itself"
    assert classes(paired(new, old, 1))["a[n=65]"] == ["changed"]


@pytest.mark.parametrize(("accepted", "code"), [("", 3), ("it is not needed", 0)])
def test_a_kernel_that_is_gone_was_not_checked(accepted: str, code: int) -> None:
    """Unlike a case, which its author no longer declares."""
    (pair,) = paired(named("old", "a"), named("new"), 1)
    judged = [replace(o, accepted=accepted) for o in outcomes(pair, one_toolchain=False)]
    gone = replace(pair, outcomes=tuple(judged))
    assert Gate("old", "new", ({}, {}), (gone,), DEFAULT_FAILING).exit_code == code
    assert Gate("old", "new", ({}, {}), (replace(gone, captured=False),), DEFAULT_FAILING).exit_code == 0


def test_a_new_kernel_that_is_refuted_is_wrong() -> None:
    pairs = paired(found("old"), found("new", kernel("a", "new", 0, "refuted")), 1)
    assert classes(pairs) == {"a": ["changed", "wrong"]}


def test_scripts_without_a_kernel() -> None:
    failing = named("new", ended=ENDED, whole=ENDED)
    assert classes(paired(named("old", "a", "b"), failing, 1)) == {"a": ["broken"], "b": ["broken"]}
    assert classes(paired(named("old"), failing, 1)) == {"": ["broken"]}
    assert classes(paired(named("old", ended=ENDED, whole=ENDED), failing, 1)) == {"": ["fails-in-both"]}
    assert paired(named("old"), named("new"), 1) == []
    assert paired(named("old", ended=ENDED), named("new", ended=ENDED), 1) == []  # with --keep-going
    assert classes(paired(named("old", "a"), named("new", whole=UNUSABLE), 1)) == {"a": ["changed"]}
    with pytest.raises(UsageError, match="compiles no kernel"):
        paired(named("old", whole=UNUSABLE), named("new", whole=UNUSABLE), 1)


def test_a_script_that_fails_does_so_at_a_line() -> None:
    here = replace(ENDED, where=f"{Path('s.py').resolve()}:9")
    for old in (named("old"), named("old", ended=here, whole=here)):
        (pair,) = paired(old, named("new", ended=here, whole=here), 1)
        (outcome,) = outcomes(pair, one_toolchain=False)
        assert (pair.source, outcome.line) == ("s.py", 9)
        assert outcome.words.endswith("TypeError: no (s.py:9)")
    there = replace(here, where=f"{Path('other.py').resolve()}:9")
    (pair,) = paired(named("old"), named("new", ended=there, whole=there), 1)
    assert outcomes(pair, one_toolchain=False)[0].line == 0


def test_ends_are_told_once_where_they_are_the_same() -> None:
    ends = [*named("old", "a", ended=ENDED).ends.values(), *named("new", "b", ended=ENDED).ends.values()]
    assert list(remarks(ends)) == ["1 until TypeError: no"]
    ends[1] = next(iter(named("new", ended=VALUES).ends.values()))
    assert list(remarks(ends)) == [
        "with old, 1 until TypeError: no",
        "with new, 0 until NoValuesError: `item` of a tensor",
    ]
