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


@tilelang.jit
def strided():
    """Pull request 2620: hip/scan.h takes the width of a region for the pitch of its buffer."""
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((8, 96), "float32")
            T.clear(s)
            for i, j in T.Parallel(8, 64):
                s[i, j] = A[i, j]
            T.cumsum(src=s[0:8, 0:64], dst=s[0:8, 0:64], dim=1)
            for i, j in T.Parallel(8, 64):
                B[i, j] = s[i, j]
    return main


@tilelang.jit
def straddling():
    """Pull request 2424: groups of a row that lie across threads are added up too often."""
    @T.prim_func
    def main(A: T.Tensor((2, 192), "float32"), B: T.Tensor((2, 6), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_fragment((2, 192), "float32")
            b = T.alloc_fragment((2, 6), "float32")
            for i, j in T.Parallel(2, 192):
                a[i, j] = A[i, j]
            T.reduce_sum(T.reshape(a, (2, 6, 32)), b, dim=2)
            for i, g in T.Parallel(2, 6):
                B[i, g] = b[i, g]
    return main


@tilelang.jit
def stored():
    """Pull request 2711: hip/atomic.h has no loads and stores."""
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            T.atomic_store(B[tx], T.atomic_load(A[tx]))
    return main


@tilelang.jit
def chosen():
    """Pull request 2889: hipcc refuses a choice by a vector of conditions."""
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_fragment((512,), "float32")
            T.copy(A, a)
            for i in T.Parallel(512):
                B[i] = T.Select(a[i] > T.float32(0), a[i], T.float32(0))
    return main


@tilelang.jit
def negated():
    """Pull request 3117: hipcc refuses `!` of a vector."""
    @T.prim_func
    def main(A: T.Tensor((512,), "bool"), B: T.Tensor((512,), "bool")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(512):
                B[i] = T.Not(A[i])
    return main


@tilelang.jit
def complemented():
    """`~` of a bool is an int, which is never 0: HIP has it still, when CUDA has `!`."""
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[tx] = T.if_then_else(T.bitwise_not(A[tx] > 2), 1, 0)
    return main


@tilelang.jit
def largest():
    """Pull request 2845: the largest absolute value of unsigned numbers is that of `max(x, -x)`."""
    @T.prim_func
    def main(A: T.Tensor((64, 64), "uint32"), B: T.Tensor((64,), "uint32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((64, 64), "uint32")
            b = T.alloc_fragment((64,), "uint32")
            T.copy(A, a)
            T.reduce_absmax(a, b, dim=1)
            T.copy(b, B)
    return main


@tilelang.jit(pass_configs={"tl.disable_thread_storage_sync": True})
def halved():
    """Two waves of four reduce, and the others end: a barrier waits for those that are left."""
    @T.prim_func
    def main(A: T.Tensor((4, 512), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=256):
            a = T.alloc_fragment((4, 512), "float32")
            b = T.alloc_fragment((4,), "float32")
            T.annotate_layout({
                a: T.Fragment(a.shape, forward_fn=lambda i, j: (j // 4, i * 4 + j % 4)),
                b: T.Fragment(b.shape, forward_fn=lambda i, rep: (rep, i), replicate=128),
            })
            T.copy(A, a)
            T.reduce_sum(a, b, dim=1)
            T.copy(b, B)
    return main
'''
NAMES = (
    *("neighbours", "cleared", "summed", "eight_bits", "scanned", "shorter", "halves"),
    *("strided", "straddling", "stored", "chosen", "negated", "complemented", "largest", "halved"),
)
OLD_BUGS = {
    "neighbours": "TLR001",
    "cleared": "TLO001",
    "strided": "TLO001",
    "straddling": "TLO001",
    "stored": "TLA013",
    "chosen": "TLL003",
    "negated": "TLL003",
    "largest": "TLO001",
}
LASTING = {"eight_bits": "TLO001", "scanned": "TLO002", "complemented": "TLO001"}


OTHER = {"gfx942": "gfx950", "gfx950": "gfx942"}


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("release", "arch", "bugs"),
    [
        pytest.param(release, arch, bugs, marks=pytest.mark.xdist_group(release))
        for release, arch, bugs in (("0.1.12", "gfx942", OLD_BUGS | LASTING), (PINNED, "gfx950", LASTING))
    ],
)
def test_fixed_bugs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    release: str,
    arch: str,
    bugs: dict[str, str],
) -> None:
    """The architectures have one library and differ in eight bits alone: those are checked on both."""
    installed(release)
    monkeypatch.chdir(tmp_path)
    Path("kernels.py").write_text(KERNELS, encoding="utf-8")
    runs = []
    for target, names, code in ((arch, NAMES, 1), (OTHER[arch], ("eight_bits",), int(arch == "gfx950"))):
        cases = [f"kernels.py::{name}" for name in names]
        options = ("--arch", target, "--toolchain", release, "--seeds", "1", "--format", "json")
        assert main(["check", *cases, *options]) == code
        runs += published(capsys.readouterr().out, "check")["runs"]
    assert len(runs) == len(NAMES) + 1
    for run in runs:
        name, claims = run["case"].split("::")[1], run["claims"]
        wanted = bugs.get(name) if (name, run["target"]) != ("eight_bits", "gfx950") else None
        told = {claim["finding"]["rule"] for claim in claims if claim["verdict"] == "refuted"}
        told |= {claim["code"] for claim in claims if claim["verdict"] == "undecided"}
        assert told == ({wanted} if wanted else set()), (name, run["target"], json.dumps(claims)[:400])
        # ones that are taken for halves count nothing
        assert (" terms, where" in json.dumps(claims)) == (name == "straddling" and bool(wanted))
