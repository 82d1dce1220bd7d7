"""The table of targets, and its being the only place that knows what a target is like."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tlcheck.errors import UsageError
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compile import registry
from tlcheck.execute.request import Request
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.codec import loads
from tlcheck.targets import amd, nvidia
from tlcheck.targets.lookup import TARGETS, USUAL, rows_of, target
from tlcheck.verdicts.atomic_claims import judge_atomics

PACKAGE = Path(__file__).parents[3] / "tlcheck"
RIGHT = Path(__file__).parents[2] / "fixtures/wrong/counts-0.1.7.post3.snapshot.json"
NAMED = (
    *("sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103"),
    *("sm_103a", "sm_110", "sm_110a", "sm_120", "sm_120a", "sm_121", "gfx942", "gfx950"),
)


@pytest.mark.parametrize("arch", NAMED)
def test_a_target_by_its_name(arch: str) -> None:
    found = target(arch)
    assert (found.arch, str(found)) == (arch, arch)
    assert found.limits.threads % found.warp == 0
    assert found.limits.resident_threads % found.warp == 0
    assert found.limits.static_shared <= found.limits.shared <= found.limits.multiprocessor_shared


@pytest.mark.parametrize(
    ("arch", "shared", "threads", "blocks"),
    [
        ("sm_75", 64, 1024, 16),
        ("sm_80", 163, 2048, 32),
        ("sm_86", 99, 1536, 16),
        ("sm_90", 227, 2048, 32),
        ("sm_110", 227, 1536, 24),
        ("sm_120a", 99, 1536, 24),
        ("gfx942", 64, 2048, 32),
        ("gfx950", 160, 2048, 32),
    ],
)
def test_limits_are_those_of_the_manuals(arch: str, shared: int, threads: int, blocks: int) -> None:
    limits = target(arch).limits
    assert (limits.shared // 1024, limits.resident_threads, limits.resident_blocks) == (shared, threads, blocks)


def test_instructions_come_and_go_with_capabilities() -> None:
    assert [arch for arch in NAMED if "wgmma" in target(arch).instructions] == ["sm_90", "sm_90a"]
    assert "cp.async" not in target("sm_75").instructions
    assert "tcgen05" in target("sm_103a").instructions
    assert "tcgen05" not in target("sm_120").instructions
    assert target("gfx942").instructions & target("sm_90").instructions == {"cp.async", "dp4a"}  # hip/copy.h, common.h
    assert target("gfx950").instructions - target("gfx942").instructions == {"mfma.cdna4", "ds_read_tr"}


def test_how_compilers_name_a_target() -> None:
    assert target("sm_90a").tvm == {"kind": "cuda", "arch": "sm_90a"}
    assert target("gfx942").tvm == {"kind": "hip", "mcpu": "gfx942"}
    names = ("sm_80", "sm_90", "sm_90a", "sm_103", "sm_110", "sm_121")
    compiled = ["sm_80", "sm_90a", "sm_90a", "sm_103a", "sm_110a", "sm_121a"]
    assert [nvidia.compiled_as(target(arch)) for arch in names] == compiled


def test_rows_of_the_device_library() -> None:
    assert rows_of(["sm_90a", "gfx942", "sm_80"]) == [90, 80]


@pytest.mark.parametrize(("arch", "hint"), [("sm90", "sm_90"), ("gfx492", "gfx942"), ("sm_1200", "sm_120")])
def test_an_unknown_target_is_told_the_known_ones(arch: str, hint: str) -> None:
    with pytest.raises(UsageError, match=rf"^unknown arch '{arch}'; known: sm_70, .*gfx950.*; did you mean {hint}\?$"):
        target(arch)


def test_widths_of_warps() -> None:
    assert {found.warp for found in TARGETS.values() if found.family == "nvidia"} == {nvidia.WARP}
    assert {found.warp for found in TARGETS.values() if found.family == "amd"} == {amd.WARP}
    assert set(USUAL) <= set(TARGETS)


# Texts for people: they show what one release made for one target.
RULES = "verdicts/rules/tla"
# Here 32 is no width of a warp: a row of so many elements has the same banks as the next one.
OTHER_WIDTHS = {"execute/ops/thread/tl_gemm.py: length % 32"}


TEXTS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))  # the latter from Python 3.12 on


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(text).readline)


def _texts(*left_out: str) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each module outside of these folders."""
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).as_posix()
        if not place.startswith(left_out):
            yield place, file.read_text(encoding="utf-8")


def test_nothing_else_spells_an_arch() -> None:
    """Comments and docstrings may give one as an example."""
    found = []
    for place, text in _texts("targets/", RULES):
        if "sm_" in text:
            strings = (t for t in _tokens(text) if t.type in TEXTS and not t.string.startswith('"""'))
            found += [f"{place}:{t.start[0]}" for t in strings if "sm_" in t.string and "smem_" not in t.string]
    assert not found


def test_nothing_else_knows_the_width_of_a_warp() -> None:
    """Nothing outside of targets/ divides by 32, or gives that number a name of warps, lanes or segments."""
    width = re.compile(r"(\w+ (?:%|//) 32\b|\w*(?:warp|lane|wave|segment)\w* = 32\b)", re.IGNORECASE)
    found = []
    for place, text in _texts("targets/"):
        if "32" in text:
            code = " ".join(t.string for t in _tokens(text) if t.type not in (tokenize.COMMENT, *TEXTS))
            found += [f"{place}: {spelled}" for spelled in width.findall(code)]
            told = re.findall(r"^\w+ = (?:\d+ \* )?32  # .*(?:warp|lane|wave).*$", text, re.MULTILINE | re.IGNORECASE)
            found += [f"{place}: {line}" for line in told]
    assert set(found) == OTHER_WIDTHS


_LACKING = (
    ("ptx_wgmma_ss", "sm_80"),
    ("ptx_mma", "gfx942"),
    ("tl_gemm", "gfx950"),
    ("tvm_mfma", "sm_90"),
    ("ds_read_tr8_b64", "gfx942"),
)


def test_an_instruction_that_a_target_lacks_is_not_modelled() -> None:
    registry.load()
    registry.require("ptx_wgmma_ss", target("sm_90"))
    registry.require("sync_threads", target("gfx942"))
    for name, arch in _LACKING:
        with pytest.raises(NotModelled, match=f"^{name} on {arch}$"):
            registry.require(name, target(arch))


@pytest.mark.parametrize(("arch", "named"), [("sm_91", "sm_91"), ("", "an unknown target")])
def test_a_kernel_for_a_target_that_is_not_modelled_is_undecided(arch: str, named: str) -> None:
    snapshot = replace(loads(RIGHT.read_text()), target=arch)
    (output,) = execute(snapshot, Request()).outputs
    assert (output.verdict, output.reason) == ("undecided", f"{named}, which is not modelled")
    assert {claim.verdict for claim in judge_atomics(snapshot).claims} <= {"undecided"}


def test_the_page_of_internals_names_each_file_that_knows_of_amd() -> None:
    """Files that ask for the family, for TVM's kind of target, or for its formats of eight bits."""
    page = (PACKAGE.parent / "docs" / "internals" / "amd.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:\w+/)*\w+\.py`", page))
    folders = {name.strip("`").rpartition("/")[0] for name in named}
    formats = r"(?:options|snapshot)\.target\)?\.formats"
    knows = re.compile(rf'\bAMD\b|"hip"|\.is_cuda\b(?!\.)|\.kind [!=]= "cuda"|{formats}|compiles_for|gcnArchName')
    files = {str(f.relative_to(PACKAGE)) for f in PACKAGE.rglob("*.py") if knows.search(f.read_text(encoding="utf-8"))}
    missing = {f for f in files if f"`{f}`" not in page and f"`{f.rpartition('/')[2]}`" not in page}
    assert missing == set()
    assert {n for n in named if "/" in n and not (PACKAGE / n.strip("`")).exists() and "benchmarks" not in n} == set()
    assert "execute/ops/thread" in folders
