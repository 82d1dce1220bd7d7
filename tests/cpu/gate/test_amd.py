"""Bugs of TileLang's HIP backend: refuted in a release that has them, and not in one that does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cpu.checking import installed, published
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

KERNELS = '''
import tilelang
import tilelang.language as T


@tilelang.jit(pass_configs={"tl.disable_thread_storage_sync": True})
def neighbours():
    """Pull request 2872: nothing is printed for T.sync_warp."""
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32", scope="shared")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            T.sync_warp()
            B[tx] = s[tx ^ 32]
    return main


@tilelang.jit
def cleared():
    """Pull request 2721: a false predicate of 4 bytes clears 16."""
    @T.prim_func
    def main(A: T.Tensor((1,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            s = T.alloc_shared((4,), "float32", scope="shared")
            for i in T.serial(4):
                s[i] = T.float32(i + 1)
            T.ptx_cp_async(T.access_ptr(s[0], "w", 1), T.access_ptr(A[0], "r", 1), 1, predicate=False)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            for i in T.serial(4):
                B[i] = s[i]
    return main


@tilelang.jit
def summed():
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=256):
            a = T.alloc_fragment((256,), "float32")
            b = T.alloc_fragment((1,), "float32")
            T.copy(A, a)
            T.reduce_sum(a, b, dim=0)
            T.copy(b, B)
    return main


@tilelang.jit
def eight_bits():
    """gfx942 takes float8_e4m3fn for float8_e4m3fnuz, gfx950 does not."""
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float8_e4m3fn"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float8_e4m3fn")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.copy(A, a)
            T.gemm(a, a, c, transpose_B=True)
            T.copy(c, C)
    return main


@tilelang.jit
def scanned():
    """Pull request 2313 lets 32 threads scan on a wave of 64: they leave half of each segment."""
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((128,), "float32")
            T.copy(A, s)
            T.cumsum(s)
            T.copy(s, B)
    return main


@tilelang.jit
def shorter():
    """As many elements as threads."""
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "float32")
            T.copy(A, s)
            T.cumsum(s)
            T.copy(s, B)
    return main


@tilelang.jit
def halves():
    """Lanes below 32 add up what 64 lanes have, as on a warp of 32: the author's sum of half of a wave."""
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            x = T.alloc_local((1,), "float32")
            x[0] = A[tx]
            B[tx] = T.warp_reduce_sum(x[0])
    return main
'''
NAMES = ("neighbours", "cleared", "summed", "eight_bits", "scanned", "shorter", "halves")


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("release", "refuted"),
    [
        ("0.1.12", {"neighbours": "TLR001", "cleared": "TLO001", "eight_bits": "TLO001", "scanned": "TLO002"}),
        (PINNED, {"eight_bits": "TLO001", "scanned": "TLO002"}),
    ],
)
def test_fixed_bugs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    release: str,
    refuted: dict[str, str],
) -> None:
    installed(release)
    monkeypatch.chdir(tmp_path)
    Path("kernels.py").write_text(KERNELS, encoding="utf-8")
    cases = [f"kernels.py::{name}" for name in NAMES]
    options = ("--arch", "gfx942,gfx950", "--toolchain", release, "--seeds", "1", "--format", "json")
    assert main(["check", *cases, *options]) == 1
    runs = published(capsys.readouterr().out, "check")["runs"]
    assert len(runs) == 2 * len(NAMES)
    for run in runs:
        name, claims = run["case"].split("::")[1], run["claims"]
        wanted = refuted.get(name) if (name, run["target"]) != ("eight_bits", "gfx950") else None
        found = {claim["finding"]["rule"] for claim in claims if claim["verdict"] == "refuted"}
        assert found == ({wanted} if wanted else set()), (name, run["target"], json.dumps(claims)[:400])
        assert all(claim["verdict"] != "undecided" for claim in claims)
