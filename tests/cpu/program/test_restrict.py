"""Elements that one thread stores and others read behind a barrier, through a pointer that is `__restrict__`."""

from __future__ import annotations

from tests.cpu.execute.observe.test_tensors_in_order import store
from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, text, variable
from tlcheck import reasons
from tlcheck.execute.compare.both_levels import execute
from tlcheck.program.restrict import read_early
from tlcheck.snapshot.ir import Expr, For, If, Seq, Stmt

SYNC = call("tvm_storage_sync", text("shared"))
PRINTED = 'extern "C" __global__ void main_kernel(const int* __restrict__ A, int* __restrict__ B, int* S) {\n x * B) }'


class Exchange:
    """A block of 32 threads, tensors S and B."""

    def __init__(self) -> None:
        self.kernel = Kernel(threads=32)
        self.s, self.b = (self.kernel.tensor(name, "int32", (64,)) for name in "SB")
        self.is_first = Expr("eq", "bool", (self.kernel.tx, number(0)))

    def found(self, *body: Stmt, printed: str = "") -> tuple[str, int] | None:
        return read_early(self.kernel.function(*body), printed)

    def stored(self, place: Expr | int = 3) -> Stmt:
        return If(self.is_first, store(self.s, number(place), number(7)), None)

    def read(self, place: Expr | int = 3) -> Stmt:
        return store(self.b, self.kernel.tx, load(self.s, place))


def test_what_one_thread_stores_others_read() -> None:
    made = Exchange()
    assert made.found(made.stored(), SYNC, made.read()) == ("S", 0)


def test_the_outputs_are_not_decided() -> None:
    made = Exchange()
    body = (made.stored(), SYNC, made.read())
    found = {outcome.name: outcome.reason for outcome in execute(made.kernel.snapshot(body, body)).outputs}
    assert found["B"].kind == reasons.CUDA
    assert found["B"] == "S is __restrict__: nvcc may read before a barrier what another thread stores"


def test_a_pointer_that_is_not_restricted() -> None:
    made = Exchange()
    assert made.found(made.stored(), SYNC, made.read(), printed=PRINTED) is None
    assert made.found(made.stored(), SYNC, made.read(), printed=PRINTED.replace("* S", "* __restrict__ S")) == ("S", 0)


def test_what_needs_nobody_else() -> None:
    """Nothing is stored by another thread, at this element, before a barrier."""
    made = Exchange()
    own = add(made.kernel.tx, number(1))
    assert made.found(store(made.s, own, number(7)), SYNC, made.read(own)) is None
    assert made.found(made.stored(), SYNC, made.read(4)) is None
    assert made.found(made.stored(), made.read()) is None
    assert made.found(made.stored(), SYNC, If(made.is_first, made.read(), None)) is None


def test_a_loop_comes_round() -> None:
    made = Exchange()
    body = Seq((made.read(), made.stored(), SYNC))
    assert made.found(body) is None
    assert made.found(For(variable("k"), number(0), number(4), "serial", body)) == ("S", 0)
