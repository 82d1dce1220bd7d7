"""Scripts that ask for the values of what kernels leave: these are executed as written, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import installed, published
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

pytestmark = pytest.mark.toolchain

HEAD = """
import torch, tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[1])
def add(n, block=128):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] + 1.0
    return main
"""
# the experts of each token, how many tokens each expert has, and a product for each of these numbers
ROUTING = """
@tilelang.jit(out_idx=[1, 2])
def topk(tokens, experts, k, block=32):
    @T.prim_func
    def main(
        S: T.Tensor((tokens, experts), "float32"),
        W: T.Tensor((tokens, k), "float32"),
        I: T.Tensor((tokens, k), "int32"),
    ):
        with T.Kernel(T.ceildiv(tokens, block), threads=128) as bx:
            s = T.alloc_fragment((block, experts), "float32")
            best = T.alloc_fragment((block,), "float32")
            where = T.alloc_fragment((block, experts), "int32")
            at = T.alloc_fragment((block,), "int32")
            T.copy(S[bx * block, 0], s)
            for j in T.serial(k):
                T.reduce_max(s, best, dim=1)
                for i, e in T.Parallel(block, experts):
                    where[i, e] = T.if_then_else(best[i] == s[i, e], e, -1)
                T.reduce_max(where, at, dim=1)
                for i, e in T.Parallel(block, experts):
                    s[i, e] = T.if_then_else(where[i, e] == at[i], -1e30, s[i, e])
                for i in T.Parallel(block):
                    W[bx * block + i, j] = best[i]
                    I[bx * block + i, j] = at[i]
    return main

@tilelang.jit
def count(tokens, k, experts):
    @T.prim_func
    def main(I: T.Tensor((tokens * k,), "int32"), C: T.Tensor((experts,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            for i in T.Parallel(tokens * k):
                T.atomic_add(C[I[i]], 1)
    return main

@tilelang.jit(out_idx=[-1])
def gemm(m, n, k, block=32):
    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, block), T.ceildiv(n, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, 32), "float16")
            b = T.alloc_shared((block, 32), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=2):
                T.copy(A[bx * block, ko * 32], a)
                T.copy(B[by * block, ko * 32], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[bx * block, by * block])
    return main

torch.manual_seed(0)
tokens, experts, k, hidden, inner = 64, 4, 2, 64, 64
scores = torch.randn(tokens, experts, device="cuda").softmax(-1)
weights, experts_of = topk(tokens, experts, k)(scores)
want = scores.topk(k, dim=-1)
torch.testing.assert_close(weights, want.values)
assert torch.equal(experts_of.long(), want.indices)
counts = torch.zeros(experts, dtype=torch.int32, device="cuda")
count(tokens, k, experts)(experts_of.view(-1), counts)
sizes = counts.tolist()
assert sum(sizes) == tokens * k, sizes
assert sizes == experts_of.flatten().bincount(minlength=experts).tolist()
x = torch.randn(tokens, hidden, device="cuda", dtype=torch.float16)
w = torch.randn(experts, inner, hidden, device="cuda", dtype=torch.float16)
order = experts_of.flatten().argsort(stable=True)
begin = 0
for expert, size in enumerate(sizes):
    if size == 0:
        continue
    rows = x[order[begin : begin + size] // k]
    padded = -(-size // 32) * 32
    rows = torch.cat([rows, rows.new_zeros(padded - size, hidden)])
    got = gemm(padded, inner, hidden)(rows, w[expert].contiguous())
    torch.testing.assert_close(got, rows.float() @ w[expert].float().T, rtol=1e-3, atol=1e-3)
    begin += size
"""
# a tensor in place, large ones that have no values until they are asked for, and gradients
MASKS = """
@tilelang.jit
def mask(n, block=256):
    @T.prim_func
    def main(X: T.Tensor((n,), "float16"), M: T.Tensor((n,), "bool")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                M[bx * block + i] = X[bx * block + i] > T.float16(3.0)
    return main

@tilelang.jit(out_idx=[1])
def scale(n, factor, block=64):
    @T.prim_func
    def main(X: T.Tensor((n,), "bfloat16"), Y: T.Tensor((n,), "bfloat16")):
        with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
            for i in T.Parallel(block):
                Y[bx * block + i] = X[bx * block + i] * factor
    return main

n = 1 << 21
x = torch.zeros(n, device="cuda", dtype=torch.float16)
x[5] = 4.0
x[n - 1] = 5.0
m = torch.empty(n, device="cuda", dtype=torch.bool)
mask(n)(x, m)
if m.any():
    found = int(m.sum())
    places = m.nonzero().flatten().tolist()
    assert places == [5, n - 1], places
    y = scale(64 * found, 2.0)(torch.ones(64 * found, device="cuda", dtype=torch.bfloat16))
    if y.float().mean().item() == 2.0:
        scale(64 * found, 3.0)
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return scale(x.shape[0], 4.0)(x)
    @staticmethod
    def backward(ctx, g):
        return scale(g.shape[0], 5.0)(g)
p = torch.ones(128, device="cuda", dtype=torch.bfloat16, requires_grad=True)
F.apply(p).sum().backward()
if p.grad.max().item() == 5.0:
    scale(128, 6.0)
"""
# views and writes of what a kernel has left
VIEWS = """
big = torch.randn(1 << 21, device="cuda")
torch.testing.assert_close(add(1 << 21)(big), big + 1)
y = add(256)(torch.zeros(256, device="cuda"))
n = int(y.sum())
assert n == 256
add(n * 2)
before = y * 10
y += 2
y[0] = 7
assert y.tolist() == [7.0] + [3.0] * 255
y.view(2, 128)[1].mul_(2)
assert y[y > 5].cpu().numpy().sum() == 7 + 128 * 6
assert before.unique().tolist() == [10.0]
add(1024)
"""
# a small tensor in place, compared as it is
PLACED = """
@tilelang.jit
def bump(n, block=128):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = B[bx * block + i] + A[bx * block + i]
    return main

a, b = torch.rand(256, device="cuda"), torch.ones(256, device="cuda")
bump(256)(a, b)
torch.testing.assert_close(b, a + 1)
torch.testing.assert_close(b, (a + 1) * 1.0001, rtol=0, atol=0)  # roundings of a GPU
x, y = torch.randn(1 << 21), torch.randn(1 << 21)
assert not torch.equal(x, y)
bump(384)
"""
# 4 GiB of values, of which three tensors are needed at once; what is drawn again is drawn alike
CHAIN = """
torch.manual_seed(7)
x = first = torch.rand(1 << 22, device="cuda:0", generator=None)
for _ in range(80):
    x = x.mul(0.5)
    x = (x * 2.0 - 1.0).abs() + 0.0
    y = x.cumsum(0)
y = add(1 << 22)(x)
assert y.max().item() > 1.0
torch.testing.assert_close(y, x + 1)
assert (first >= 0).all()
add(512)
"""
WRONG = """
y = add(256)(torch.zeros(256, device="cuda"))
torch.testing.assert_close(y, torch.zeros(256, device="cuda"))
add(512)
"""
LARGE = """
y = add(2**29)(torch.empty(2**29, device="cuda"))
torch.testing.assert_close(y, torch.ones(2**29, device="cuda"))
if y.any(): add(512)
"""
GRADIENT = """
w, x = (torch.randn(64, device="cuda", requires_grad=True) for _ in range(2))
y = x * w
assert torch.allclose(add(64)(w.detach()), w.detach() + 1)
w.sum()  # the kernel has read what backward() needs, and no more
y.sum().backward()
assert torch.allclose(x.grad, w.detach())

# gradients that kernels leave in small tensors, copied and summed where nobody sees it
@tilelang.jit
def double(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            for i in T.Parallel(n):
                B[i] = A[i] * 2.0
    return main

class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        left = torch.empty_like(g)
        double(64)(g.contiguous(), left)
        return left

for times in (1, 2):
    p = torch.randn(64, device="cuda", requires_grad=True)
    g = torch.randn(64, device="cuda")
    sum(Doubled.apply(p) for _ in range(times)).backward(g)
    torch.testing.assert_close(p.grad, 2 * times * g)
"""
# a kernel that writes where addresses in a tensor say: what is there is not known, and not called wrong
ADDRESSED = """
@tilelang.jit
def spread(n):
    @T.prim_func
    def main(Ps: T.Tensor((2,), T.ptr), A: T.Tensor((n,), "float32")):
        with T.Kernel(2, threads=64) as bx:
            B = T.make_tensor(Ps[bx], (n,), "float32")
            for i in T.Parallel(n):
                B[i] = A[i]
    return main

left = [torch.empty(64, device="cuda") for _ in range(2)]
a = torch.randn(64, device="cuda")
spread(64)(torch.tensor([each.data_ptr() for each in left], device="cuda"), a)
torch.testing.assert_close(left[1], a)
add(512)
"""
INFERENCE = """
with torch.inference_mode():
    x, made = torch.zeros(64, device="cuda"), []
    for _ in range(3):
        made.append(add(64)(x))
        x += 5
    assert [y.sum().item() for y in made] == [64, 64 * 6, 64 * 11]
"""
# a kernel of Triton, as `torch.library.wrap_triton` launches it: nobody knows what it leaves
WRAPPED = """
from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_mutation as launch
y = add(64)(torch.zeros(64, device="cuda"))
launch(kernel_idx=0, constant_args_idx=0, grid=[(1, 1, 1)], tma_descriptor_metadata={}, kwargs={"y": y})
add(512)
y.sum().item()
"""
TESTS = """
import pytest

@pytest.mark.parametrize("n", [128, 384])
def test_sum(n):
    y = add(n)(torch.ones(n, device="cuda"))
    assert y.sum().item() == 2 * n
    assert torch.allclose(add(2 * n)(torch.zeros(2 * n, device="cuda")), torch.ones(2 * n)), n

def test_wrong():
    y = add(640)(torch.ones(640, device="cuda"))
    assert y.mean() == 1.0
"""


@pytest.mark.slow
def test_scripts_get_the_values_that_they_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(PINNED)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\n")
    scripts = {"routing": ROUTING, "masks": MASKS, "views": VIEWS, "placed": PLACED, "chain": CHAIN}
    scripts |= {"gradient": GRADIENT, "inference": INFERENCE, "addressed": ADDRESSED, "wrapped": WRAPPED}
    scripts |= {"wrong": WRONG, "large": LARGE, "test_sums": TESTS}
    for name, text in scripts.items():
        (tmp_path / f"{name}.py").write_text(HEAD + text)
    assert main(["check", *(f"{name}.py" for name in scripts), "--quick", "--arch", "sm_90", "--format", "json"]) in (
        0,
        3,
    )
    report: Any = published(capsys.readouterr().out, "check")
    found: dict[str, list[str]] = {}
    for run in report["runs"]:
        file, _, kernel = run["case"].partition("::")
        assert run["failure"] is None
        found.setdefault(file, []).append(kernel)
    routed = [kernel for kernel in found["routing.py"] if kernel.startswith("gemm")]
    assert len(routed) > 1
    assert found == {
        "routing.py": ["topk[tokens=64,experts=4,k=2]", "count[tokens=64,k=2,experts=4]", *routed],
        "masks.py": ["mask[n=2097152]", *(f"scale[n=128,factor={factor}.0]" for factor in (2, 3, 4, 5, 6))],
        "views.py": [f"add[n={n}]" for n in (2097152, 256, 512, 1024)],
        "placed.py": ["bump[n=256]", "bump[n=384]"],
        "chain.py": ["add[n=4194304]", "add[n=512]"],
        "gradient.py": ["add[n=64]", "double[n=64]"],
        "inference.py": ["add[n=64]"],
        "addressed.py": ["spread[n=64]", "add[n=512]"],
        "wrapped.py": ["add[n=64]", "add[n=512]"],
        "wrong.py": ["add[n=256]"],
        "large.py": ["add[n=536870912]"],
        "test_sums.py": [f"add[n={n}]" for n in (128, 256, 640, 384, 768)],  # the first of each test first
    }
    ends = {note.split(" ")[0]: note for note in report["notes"] if "captured" in note}
    assert set(ends) == {"wrapped.py", "wrong.py", "large.py", "test_sums.py"}
    assert "wrong.py:15: AssertionError: Tensor-likes are not close!" in ends["wrong.py"]
    assert ends["wrapped.py"].endswith("or one of Triton, leaves is not known")
    assert "large.py:16: NoValuesError: " in ends["large.py"]
    assert ends["large.py"].endswith("its values would take more than 2 GiB")
    assert "test_wrong failed: AssertionError" in ends["test_sums.py"]
