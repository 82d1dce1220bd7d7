"""Accesses of threads to shared memory beside a tcgen05.mma: it reads its operands until its commit is waited for.

By PTX 8.9.1.1 and 9.7.16.6, and 9.7.16.12 (tcgen05.commit), not against a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.cpu.execute.ops.thread.test_tcgen05_mma import image, word
from tests.cpu.execute.ops.thread.test_tensor_memory import BARRIER, allocated, at, freed, lowered
from tests.cpu.execute.ops.tile.building import Kernel, add, call, flag, load, multiply, number, text, variable
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.observe.glance import Glance
from tlcheck.execute.observe.order import HappensBefore
from tlcheck.execute.observe.race_watch import Watch
from tlcheck.snapshot.ir import Buffer, Expr, For, If, Seq, Stmt, Store

THREADS, ROWS, COLUMNS, DEPTH = 128, 128, 32, 16


class Products:
    """A kernel of four warps, some of which issue a product of a tile of 128 x 16 and B, of 32 x 16.

    done: the mbarriers of the commits. other: an mbarrier at which a warp arrives. beside: words that no product reads.
    """

    def __init__(self, late: bool = True) -> None:
        self.kernel = Kernel(threads=THREADS, lowered=lowered(late=late))
        self.base = self.kernel.tile("t", "uint32", (1,), "shared")
        self.done = self.kernel.tile("done", "uint64", (2,), "shared.barrier")
        self.other = self.kernel.tile("other", "uint64", (1,), "shared.barrier")
        self.beside = self.kernel.tile("beside", "int32", (THREADS,))
        self.out = self.kernel.tensor("out", "int32", (THREADS,))
        self.start: list[Stmt] = []
        self.tiles = {name: self._tile(name, rows) for name, rows in (("A", ROWS), ("C", ROWS), ("B", COLUMNS))}
        self.warp = Expr("floordiv", "int32", (self.kernel.tx, number(32)))
        self.lane = Expr("mod", "int32", (self.kernel.tx, number(32)))

    def _tile(self, name: str, rows: int) -> tuple[Buffer, Buffer]:
        """A tile of ones, and its descriptor."""
        flat, leading, step = image(np.ones((rows, DEPTH), kind_of("bfloat16").array), 2, by_k=True, span=32)
        shared = self.kernel.tile(f"{name}s", "bfloat16", (flat.size,))
        made = self.kernel.tile(f"{name}d", "uint64", (1,), "local.descriptor.tcgen05_smem")
        i, one = variable("i"), Expr("float", "bfloat16", (), 1.0)
        fill = Store(shared, (add(multiply(i, THREADS), self.kernel.tx),), one)
        sizes = number(leading >> 4), number(step >> 4), number(0), flag(False), number(6)
        self.start.append(For(i, number(0), number(flat.size // THREADS), "serial", fill))
        self.start.append(call("initialize_tcgen05_descriptor", load(made, 0), at(shared), *sizes))
        return shared, made

    def issue(self, left: str = "A", barrier: int = 0) -> Stmt:
        named = [part for name in (left, "B") for part in (self.tiles[name][1].data, number(0))]
        form = number(word(ROWS, COLUMNS, "bfloat16", "float32"))
        sums = self.base.data, number(barrier * COLUMNS)
        rest = form, number(0), *[number(0)] * 4, flag(False), flag(False)
        return call("ptx_tcgen05_mma_ss", text("bf16"), *named, *sums, *rest)

    def commit(self, barrier: int = 0) -> Stmt:
        return call("tcgen05_mma_arrive", at(self.done, barrier))

    def wait(self, barrier: int = 0) -> Stmt:
        return call("mbarrier_wait_parity", load(self.done, barrier), number(0))

    def arrive(self) -> Stmt:
        return call("ptx_arrive_barrier", load(self.other, 0))

    def wait_for_other(self) -> Stmt:
        return call("mbarrier_wait_parity", load(self.other, 0), number(0))

    def overwrite(self) -> Stmt:
        """Each thread writes an element of A."""
        return Store(self.tiles["A"][0], (self.kernel.tx,), Expr("float", "bfloat16", (), 2.0))

    def read(self) -> Stmt:
        """Each thread reads an element of A."""
        element = load(self.tiles["A"][0], self.kernel.tx)
        return Store(self.out, (self.kernel.tx,), Expr("cast", "int32", (element,)))

    def put(self) -> Stmt:
        """Each lane writes a word that no product reads."""
        return Store(self.beside, (self.lane,), self.kernel.tx)

    def get(self) -> Stmt:
        """Each lane reads such a word."""
        return Store(self.out, (self.kernel.tx,), load(self.beside, self.lane))

    def apart(self, *bodies: Sequence[Stmt]) -> Stmt:
        """Each body by a warp, the last one by those that are left."""
        *first, last = [Seq(tuple(body)) for body in bodies]
        found: Stmt = last
        for number_, body in reversed(list(enumerate(first))):
            found = If(Expr("eq", "bool", (self.warp, number(number_))), body, found)
        return found

    def watched(self, by: type[Watch | Glance], *body: Stmt) -> HappensBefore:
        counts = (load(self.done, 0), 1), (load(self.done, 1), 1), (load(self.other, 0), 32)
        inits = [call("ptx_init_barrier_thread_count", where, number(count)) for where, count in counts]
        first = If(Expr("eq", "bool", (self.kernel.tx, number(0))), Seq(tuple(inits)))
        start = [first, *allocated(self.kernel, self.base, 64), *self.start, call("fence_proxy_async"), BARRIER]
        machine = self.kernel.machine(*start, *body, *freed(self.kernel, self.base, 64))
        watch = by(machine, frozenset())
        machine.run(watch)
        return watch


def told(make: Callable[[Products], list[Stmt]], late: bool = True) -> set[tuple[str, str]]:
    """Buffers with a race, and what is missing: a glance suspects the kernel too, and others not."""
    one, other = Products(late), Products(late)
    watch, glance = one.watched(Watch, *make(one)), other.watched(Glance, *make(other))
    assert isinstance(glance, Glance)
    assert bool(glance.found) is bool(watch.races)
    return {(race.buffer, race.missing) for race in watch.races.values()}


PRODUCT = {("As", "a wait for the product (the mbarrier of its tcgen05.commit)")}


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda p: [p.apart([p.issue(), p.commit(), p.overwrite(), p.wait()], [p.wait()])],
        lambda p: [p.apart([p.issue(), p.commit(), p.wait()], [p.overwrite(), p.wait()], [p.wait()])],
        lambda p: [p.apart([p.issue(), p.commit()], []), p.overwrite(), p.wait()],
        lambda p: [p.apart([p.issue(), p.commit()], []), BARRIER, p.overwrite(), p.wait()],
        lambda p: [
            p.apart(
                [p.issue(), p.commit(), p.arrive(), p.wait()],
                [p.wait_for_other(), p.overwrite(), p.wait()],
                [p.wait()],
            )
        ],
        # each warp waits for the other product alone
        lambda p: [
            p.apart([p.issue("A", 0), p.commit(0)], [p.issue("C", 1), p.commit(1)], []),
            p.wait(1), BARRIER, p.overwrite(), p.wait(0),
        ],
    ],
    ids=["issuer", "other", "all", "behind-a-barrier", "told-by-the-issuer", "waited-for-another"],
)  # fmt: skip
def test_an_operand_is_overwritten_before_the_commit_is_waited_for(
    make: Callable[[Products], list[Stmt]], late: bool
) -> None:
    assert told(make, late) == PRODUCT


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda p: [p.apart([p.issue(), p.commit()], []), p.wait(), p.overwrite()],
        lambda p: [p.apart([p.issue(), p.commit()], []), p.read(), p.wait()],
        lambda p: [p.apart([p.issue(), p.commit(), p.wait()], []), BARRIER, p.overwrite()],
        lambda p: [
            p.apart([p.issue(), p.commit(), p.wait_for_other(), p.overwrite()], [p.wait(), p.arrive()], [p.wait()])
        ],
        lambda p: [p.apart([p.issue(), p.commit(), p.issue(), p.commit(1), p.wait(1), p.overwrite(), p.wait()], [])],
    ],
    ids=["all-wait", "read", "issuer-waits", "told-by-who-waited", "a-later-commit"],
)
def test_who_has_waited_or_heard_of_it_may_overwrite(make: Callable[[Products], list[Stmt]], late: bool) -> None:
    assert not told(make, late)


@pytest.mark.parametrize("late", [True, False])
def test_what_the_issuer_writes_after_the_commit_is_not_released(late: bool) -> None:
    waiting = "beside", "a barrier"

    def after(p: Products) -> list[Stmt]:
        return [p.apart([p.issue(), p.commit(), p.put(), p.wait()], [p.wait(), p.get()], [p.wait()])]

    def before(p: Products) -> list[Stmt]:
        return [p.apart([p.put(), p.issue(), p.commit(), p.wait()], [p.wait(), p.get()], [p.wait()])]

    assert (told(after, late), told(before, late)) == ({waiting}, set())
