"""bar.arrive: threads that say that they have come, and go on; those that wait read what these wrote before."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import buffer, call, load, number, text, variable
from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.observe.race_watch import Watch
from tlcheck.execute.stops import Deadlock
from tlcheck.snapshot.ir import Alloc, Expr, Function, If, Seq, Stmt, Store, Thread

registry.load()
TX = variable("tx")
SLOT, OUT = buffer("slot", "int32", [1], "shared"), buffer("OUT", "int32", [1])
STORED = If(Expr("eq", "bool", (TX, number(0))), Store(SLOT, (number(0),), number(7)))
ARRIVES = call("named_barrier_arrive", number(3), number(64))
WAITS = call("tvm_storage_sync", text("shared"), number(3), number(64))
READ = If(Expr("eq", "bool", (TX, number(32))), Store(OUT, (number(0),), load(SLOT, 0)))


def _ran(*first: Stmt) -> tuple[Machine, Watch]:
    """The first warp does `first`; the second one waits and reads."""
    body = Seq((Alloc(SLOT), If(Expr("lt", "bool", (TX, number(32))), Seq(first), Seq((WAITS, READ)))))
    function = Function("main", (OUT.data,), (OUT,), (), Thread(TX, "threadIdx.x", number(64), body))
    tensors = {"OUT": Tensor(kind_of("int32"), 1, lambda seed, numbers: np.zeros(len(numbers), np.int32))}
    machine = Machine(function, (64, 1, 1), [World(0)], tensors, {}, Options(source=False))
    watch = Watch(machine, frozenset())
    machine.run(watch)
    return machine, watch


def test_who_waits_reads_what_those_wrote_that_have_come() -> None:
    machine, watch = _ran(STORED, ARRIVES)
    assert machine.pages("OUT").flat[0] == 7
    assert not watch.races


def test_what_is_written_after_it_is_not_ordered() -> None:
    _, watch = _ran(ARRIVES, STORED)
    assert [race.buffer for race in watch.races.values()] == ["slot"]


def test_a_barrier_to_which_too_few_come_lets_nobody_go() -> None:
    with pytest.raises(Deadlock, match="barrier 3"):
        _ran(STORED)
