"""One edit of a kernel, lowered for real by one release: the first change names it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pytest

from tests.cpu.lower.test_session import Watcher
from tlcheck.errors import UsageError
from tlcheck.facts import Facts, changes
from tlcheck.facts.extract import facts_of
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.toolchain.releases import PINNED
from tlcheck.verdicts.results import read_snapshot

pytestmark = pytest.mark.toolchain

KERNEL = """
    import tilelang.language as T
    from tlcheck.case import Case

    def gemm(rows=128, inner=32, stages=2, threads=128, dtype="float16", padded=False, added=False):
        @T.prim_func
        def main(A: T.Tensor((512, 512), dtype), B: T.Tensor((512, 512), dtype), C: T.Tensor((512, 512), "float32")):
            with T.Kernel(4, 512 // rows, threads=threads) as (bx, by):
                a = T.alloc_shared((rows, inner), dtype)
                b = T.alloc_shared((inner, 128), dtype)
                c = T.alloc_fragment((rows, 128), "float32")
                if padded:
                    T.annotate_layout({a: T.Layout((rows, inner), lambda i, j: i * (inner + 8) + j)})
                T.clear(c)
                for k in T.Pipelined(512 // inner, num_stages=stages):
                    T.copy(A[by * rows, k * inner], a)
                    T.copy(B[k * inner, bx * 128], b)
                    T.gemm(a, b, c)
                if added:
                    T.atomic_add(C[by * rows : by * rows + rows, bx * 128 : bx * 128 + 128], c)
                else:
                    T.copy(c, C[by * rows, bx * 128])
        return main

"""
EDITS = {
    "rows": ("rows=64", "a: 128 x 32 -> 64 x 32"),
    "inner": ("inner=64", "a: 128 x 32 -> 128 x 64"),
    "stages": ("stages=3", "loop k: 2 -> 3 stages"),
    "threads": ("threads=256", "block: 128 -> 256 threads"),
    "dtype": ("dtype='bfloat16'", "A, B, a, b: float16 -> bfloat16"),
    "padded": ("padded=True", "a: layout swizzle 64B -> padded to 40"),
    "added": ("added=True", "C: none -> 16384 AtomicAdd in a block"),
}


@pytest.fixture(scope="module")
def lowered(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Facts]:
    """Facts of the kernel as it is, and after each edit."""
    folder = tmp_path_factory.mktemp("edits")
    cases = [f"{name} = Case(gemm, args=dict({edit}), targets=('sm_80',))" for name, (edit, _) in EDITS.items()]
    file = folder / "kernels.py"
    file.write_text("\n".join([textwrap.dedent(KERNEL), "plain = Case(gemm, targets=('sm_80',))", *cases]))
    try:
        done = list(Session(Settings(), folder, Watcher()).lower([Selection(file)]))
    except UsageError as error:
        pytest.skip(str(error))
    assert [one.failure for one in done if one.failure] == []
    return {one.run.name: facts_of(read_snapshot(one.snapshot)) for one in done if one.snapshot is not None}


@pytest.mark.slow
@pytest.mark.xdist_group(PINNED)
@pytest.mark.parametrize("name", EDITS)
def test_the_first_change_names_the_edit(lowered: Mapping[str, Facts], name: str) -> None:
    found = changes(lowered["plain"], lowered[name])
    assert found[0].words == EDITS[name][1]
