"""Who may overwrite what a wgmma has read: whoever has waited for it, in its own warpgroup alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, buffer, call, flag, load, number, text, variable
from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import World
from tlcheck.execute.observe.races import Race
from tlcheck.execute.observe.watching import Watching
from tlcheck.snapshot.ir import Alloc, Evaluate, Expr, For, If, Stmt, Store

registry.load()

K, HALF = 16, "float16"
BARRIER, WAIT = call("tvm_storage_sync", text("shared")), call("warpgroup_wait", number(0))
KERNELS = {
    "waited": ([WAIT], 128, set()),
    "not yet waited": ([], 128, {"a barrier", "fence.proxy.async"}),
    "another warpgroup": ([WAIT], 256, {"a barrier"}),
    "another warpgroup, with a barrier": ([WAIT, BARRIER], 256, set()),
}


@pytest.mark.parametrize(("between", "threads", "missing"), KERNELS.values(), ids=list(KERNELS))
def test_a_warpgroup_that_has_waited_may_overwrite(
    between: Sequence[Evaluate], threads: int, missing: set[str]
) -> None:
    assert {race.missing for race in races(between, threads)} == missing


def races(between: Sequence[Evaluate], threads: int) -> list[Race]:
    """Each warpgroup multiplies the same matrices; then the first one overwrites one of them."""
    kernel = Kernel(threads=threads)
    left, right = kernel.tile("a", HALF, (64 * K,)), kernel.tile("b", HALF, (8 * K,))
    total = kernel.tile("c", "float32", (4,), "local")
    named = [buffer(f"desc_{n}", "uint64", [1], "local.descriptor.wgmma") for n in "ab"]
    first, i = Expr("eq", "bool", (kernel.tx, number(0))), variable("i")
    body: list[Stmt] = [Alloc(d) for d in named]
    for tile, size in ((left, 64 * K), (right, 8 * K)):
        fill = Store(tile, (i,), Expr("float", HALF, (), 1.0))
        body.append(If(first, For(i, number(0), number(size), "serial", fill), None))
    body += [Store(total, (number(n),), Expr("float", "float32", (), 0.0)) for n in range(4)]
    for tile, descriptor in zip((left, right), named, strict=True):
        address = Expr("call", "handle", (load(tile, 0),), "address_of")
        layout = [number(x) for x in (0, 8, K)]
        body.append(call("initialize_wgmma_descriptor", load(descriptor, 0), address, *layout))
    body += [call("fence_proxy_async"), BARRIER, call("warpgroup_arrive")]
    names = [text("m64n8k16"), flag(True), flag(True), *(text(x) for x in ("fp16", "fp16", "fp32"))]
    operands = [x for d in named for x in (d.data, number(0))]
    body.append(call("ptx_wgmma_ss", *names, *operands, total.data, number(0), *[number(1)] * 3))
    body += [call("warpgroup_commit_batch"), *between]
    other = Expr("sub", "int32", (number(127), kernel.tx))
    one = Store(left, (other,), Expr("cast", HALF, (kernel.tx,)))
    body.append(If(Expr("lt", "bool", (kernel.tx, number(128))), one, None))
    body += [] if WAIT in between else [WAIT]
    function = kernel.function(*body)
    machine = Machine(function, (threads, 1, 1), [World(0, (0, 0, 0))], {}, {}, Options(False, plain=True))
    watching = Watching(function, frozenset())
    machine.run(*watching(machine))
    return [race for watch in watching.watches for race in watch.races.values()]
