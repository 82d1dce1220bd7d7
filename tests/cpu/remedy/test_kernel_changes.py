"""Test what is tried, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.checking import make_run
from tlcheck.lower.selection import Variation
from tlcheck.remedy.kernel_changes import PASS_CONFIG, RELEASE, KernelChange, arguments, key_of, pairs, pass_configs


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("tl.enable_aggressive_shared_memory_merge", "TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE"),
        ("tl.disable_safe_memory_legalize", "TL_DISABLE_SAFE_MEMORY_ACCESS"),
        ("tirx.disable_vectorize", "TIR_DISABLE_VECTORIZE"),
        ("tir.disable_cse_tir", "TIR_DISABLE_CSE"),
    ],
)
def test_configurations_have_the_name_that_is_pasted(name: str, key: str) -> None:
    assert key_of(name) == key


def test_what_concerns_the_guilty_pass_comes_first_then_what_the_kernel_sets() -> None:
    own = {"tl.disable_warp_specialized": "True", "tl.enable_aggressive_shared_memory_merge": "1", "tl.x": "level 3"}
    likely, others = (words_of(each) for each in pass_configs(own, "tl.MergeSharedMemoryAllocations"))
    assert likely == [
        "TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE=False",
        "TL_DISABLE_SHARED_MEMORY_REUSE=True",
        "TL_DISABLE_WARP_SPECIALIZED=False",
    ]
    assert len({*likely, *others}) == len(likely) + len(others)
    assert words_of(pass_configs({}, "")[0]) == []
    assert words_of(pass_configs({}, "")[1])[0] == "TL_DISABLE_WARP_SPECIALIZED=True"


def test_what_orders_the_accesses_of_a_race_comes_before_others() -> None:
    likely, others = pass_configs({"tl.disable_wgmma": "True"}, "", {"TLO001", "TLR001"})
    assert words_of(likely) == ["TIR_USE_ASYNC_COPY=False", "TL_DISABLE_WGMMA=False"]
    assert not {*words_of(likely)} & {*words_of(others)}
    assert words_of(pass_configs({}, "", {"TLO001"})[0]) == []


def words_of(changes: list[KernelChange]) -> list[str]:
    return [change.words for change in changes]


def test_a_kernel_without_barriers_of_its_own_gets_those_of_tilelang_back() -> None:
    likely, others = pass_configs({"tl.disable_thread_storage_sync": "True"}, "")
    assert words_of(likely) == ["TL_DISABLE_THREAD_STORAGE_SYNC=False"]
    never = "TL_DISABLE_THREAD_STORAGE_SYNC=True"
    assert never not in words_of(others)
    assert never not in words_of(pass_configs({}, "")[1])


def test_numbers_of_the_builder() -> None:
    run = replace(
        make_run(), args={"num_stages": "2", "dtype": "'float16'"}, numbers={"threads": "96", "block_n": "64"}
    )
    assert [change.words for change in arguments(run)] == [
        "threads=192",
        "block_n=32",
        "block_n=128",
        "num_stages=1",
        "num_stages=0",
    ]
    assert arguments(replace(make_run(), args={"threads": "1024", "n": "64"})) == [
        KernelChange("argument", Variation(args=(("threads", "512"),)))
    ]


def test_pairs_are_of_two_different_ones() -> None:
    singles = [KernelChange(PASS_CONFIG, Variation(pass_configs=((name, "True"),))) for name in "abc"]
    assert [change.words for change in pairs(singles)] == [
        "a=True and b=True",
        "a=True and c=True",
        "b=True and c=True",
    ]
    assert KernelChange(RELEASE, release="0.1.9").words == "TileLang 0.1.9"
