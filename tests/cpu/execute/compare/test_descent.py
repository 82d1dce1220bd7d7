"""Test what a wrong element is followed down to, where values of several buffers are alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.counterparts import Counterparts
from tlcheck.execute.compare.descent import Descent, Parting
from tlcheck.execute.compare.origin import _Search, origin_of
from tlcheck.execute.compare.provenance import TracedStep
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.request import LOWERED, SOURCE, Request
from tlcheck.snapshot.ir import Buffer, Expr, Snapshot, Store
from tlcheck.snapshot.walk import statements
from tlcheck.verdicts.origins import origin_in_words


def stores(snapshot: Snapshot) -> tuple[list[Store], list[Store]]:
    source, lowered = (snapshot.checkpoints[at] for at in (SOURCE, LOWERED))
    own, other = ([stmt for stmt in statements(f.body) if isinstance(stmt, Store)] for f in (source, lowered))
    return own, other


@pytest.mark.parametrize(("shared", "kind"), [(True, "overwritten"), (False, "unwritten")])
def test_what_another_buffer_left_in_shared_memory_is_no_store_of_the_own(shared: bool, kind: str) -> None:
    """s has both values in the source; as lowered its second store is missing, and t lies in its memory."""
    kernel = Kernel(threads=32)
    a, b, out = (kernel.tensor(name, "float32", (32,)) for name in "ABC")
    s, t = (kernel.tile(name, "float32", (32,), "shared") for name in "st")
    by_a, by_b = (Store(s, (kernel.tx,), load(each, kernel.tx)) for each in (a, b))
    other = Store(t, (kernel.tx,), load(a, kernel.tx))
    read = Store(out, (kernel.tx,), load(s, kernel.tx))
    written = by_a, other, by_b, read
    snapshot = kernel.snapshot(written, (by_a, other, read))
    lowered = replace(snapshot.checkpoints[LOWERED], places=tuple((each.data, 0) for each in (s, t)))
    snapshot = replace(snapshot, checkpoints={**snapshot.checkpoints, LOWERED: lowered})
    (output,) = (o for o in execute(snapshot, Request()).outputs if o.difference is not None)
    assert output.difference is not None
    found = origin_of(snapshot, Request(), output.name, output.difference, shared=shared)
    assert found is not None
    assert (found.kind, found.access.buffer, found.writes) == (kind, "s", False)
    assert found.other is not None
    assert found.other.buffer == ("t" if shared else "s")
    said = origin_in_words(snapshot, found, ()).words
    assert ("with the value that t stored" in said) == shared


@pytest.mark.parametrize("kept", [True, False])
def test_a_statement_that_reads_two_buffers_has_what_it_reads_of_the_other_beside_it(kept: bool) -> None:
    """kept: whether the lowered statement has the element of t that it reads."""
    kernel = Kernel(threads=32)
    a, out = kernel.tensor("A", "float32", (32,)), kernel.tensor("C", "float32", (32,))
    s, t = (kernel.tile(name, "float32", (32,), "shared") for name in "st")
    both = add(load(s, kernel.tx), load(t, kernel.tx))
    written = *(Store(tile, (kernel.tx,), load(a, kernel.tx)) for tile in (s, t)), Store(out, (kernel.tx,), both)
    snapshot = kernel.snapshot(written, written)
    own, other = stores(snapshot)
    descent = Descent(Counterparts(*snapshot.checkpoints.values()), {}, lambda step: None)
    wanted = TracedStep("s[0]", "1.0", Origin(own[0])), TracedStep("t[0]", "2.0", Origin(own[1]))
    left, beside = TracedStep("s[0]", "3.0", Origin(other[1])), TracedStep("t[0]", "2.0", Origin(other[1]))
    found = descent.parting(
        TracedStep("C[0]", "3.0", Origin(own[2]), sources=wanted),
        TracedStep("C[0]", "5.0", Origin(other[2]), sources=(left, beside) if kept else (left,)),
    )
    assert found is not None
    assert (found.kind == "overwritten") == kept


@pytest.mark.parametrize(("made", "kind"), [("A[1]", "other-index"), ("A[0]", "unordered")])
def test_a_wrong_value_of_the_own_store_is_not_one_of_order(made: str, kind: str) -> None:
    """Nothing orders the read of s and its store. The value is wrong before that, if the store itself is the right one.

    made: the element that the source stores.
    """
    kernel = Kernel(threads=32)
    a, out = kernel.tensor("A", "float32", (32,)), kernel.tensor("C", "float32", (32,))
    s = kernel.tile("s", "float32", (32,), "shared")
    written = (
        Store(s, (kernel.tx,), number(0)),
        Store(s, (kernel.tx,), load(a, kernel.tx)),
        Store(out, (kernel.tx,), load(s, kernel.tx)),
    )
    snapshot = kernel.snapshot(written, written)
    own, other = stores(snapshot)
    racing = {(id(other[2]), id(stmt)) for stmt in other[:2]}
    descent = Descent(Counterparts(*snapshot.checkpoints.values()), {}, lambda step: None, racing)
    wanted = TracedStep("s[0]", "1.0", Origin(own[1]), sources=(TracedStep("A[1]", "1.0", input=True),))
    leaf = TracedStep("A[0]", "0.0", input=True)
    got = TracedStep("s[0]", "0.0", Origin(other[made == "A[1]"]), sources=(leaf,) if made == "A[1]" else ())
    found = descent.parting(
        TracedStep("C[0]", "1.0", Origin(own[2]), sources=(wanted,)),
        TracedStep("C[0]", "0.0", Origin(other[2]), sources=(got,)),
    )
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize("written", [True, False])
def test_registers_of_the_lowered_kernel_alone_stand_between_no_two_steps(written: bool) -> None:
    """u = s % 5 by way of registers. It reads another element of s, or one that nothing wrote: an integer then."""
    kernel, lowered = Kernel(threads=32), Kernel(threads=32)
    (a, out), (s, u) = _ints(kernel)
    fill, last = Store(s, (kernel.tx,), load(a, kernel.tx)), Store(out, (kernel.tx,), load(u, kernel.tx))
    source = kernel.function(fill, Store(u, (kernel.tx,), _rest(load(s, kernel.tx))), last)
    _ints(lowered)
    first, second = (lowered.tile(name, "int32", (1,), "local") for name in ("s_cast", "u_cast"))
    steps = (first, load(s, kernel.tx)), (second, _rest(load(first, 0))), (u, load(second, 0))
    made = [Store(to, (kernel.tx if to is u else number(0),), value) for to, value in steps]
    snapshot = replace(
        kernel.snapshot((), ()), checkpoints={SOURCE: source, LOWERED: lowered.function(fill, *made, last)}
    )
    own, other = stores(snapshot)
    descent = Descent(Counterparts(*snapshot.checkpoints.values()), {"s": {("A", "0"): "0"}}, lambda step: None)

    leaf = TracedStep("A[0]", "7", input=True)
    got = TracedStep("s[0]", "7", Origin(other[0]), sources=(leaf,))
    got = got if written else TracedStep("s[0]", "poison: never written")
    for name, value, stmt in zip(("s_cast[0]", "u_cast[0]", "u[0]", "C[0]"), "7222", other[1:], strict=True):
        got = TracedStep(name, value, Origin(stmt), sources=(got,))
    wanted = TracedStep("A[4]", "4", input=True)
    for name, value, stmt in zip(("s[4]", "u[0]", "C[0]"), "444", own, strict=True):
        wanted = TracedStep(name, value, Origin(stmt), sources=(wanted,))
    found = descent.parting(wanted, got)
    assert found is not None
    told = ("other-index", "s[0]", "s[4]") if written else ("unwritten", "s[0]", "s[4]")
    assert (found.kind, found.lowered.element, found.source.element) == told


def test_a_read_has_the_line_of_no_statement_that_it_does_not_do() -> None:
    """s is loaded from A, from B, and from A again: as lowered the last one is not known from the first."""
    kernel = Kernel(threads=32)
    a, b = (kernel.tensor(name, "float32", (32,)) for name in "AB")
    s = kernel.tile("s", "float32", (32,), "shared")
    loads = [Store(s, (kernel.tx,), load(each, kernel.tx), line=n) for n, each in ((21, a), (22, b), (24, a))]
    source, last = kernel.function(*loads), replace(loads[2], line=0)
    search = _Search.__new__(_Search)
    search._counterparts = Counterparts(source, kernel.function(last))
    reader, wanted = TracedStep("s[0]", "2.0", Origin(last)), TracedStep("s[0]", "1.0", Origin(loads[1]))
    parting = Parting("other-operand", TracedStep("A[0]", "2.0"), TracedStep("B[0]", "1.0"), reader, wanted)
    assert search._of_parting(parting).access.source is None
    alike = replace(parting, source_reader=TracedStep("s[0]", "1.0", Origin(loads[0])))
    assert search._of_parting(alike).access.source is loads[0]


def test_a_write_of_one_of_several_statements_before_the_own_one_misses_that() -> None:
    """s is loaded from A twice, then doubled. As lowered it is loaded alone, and no line tells by which of the two."""
    kernel = Kernel(threads=32)
    a, out = kernel.tensor("A", "float32", (32,)), kernel.tensor("C", "float32", (32,))
    s = kernel.tile("s", "float32", (32,), "shared")
    loads = [Store(s, (kernel.tx,), load(a, kernel.tx), line=n) for n in (21, 24)]
    own = Store(s, (kernel.tx,), add(load(s, kernel.tx), load(s, kernel.tx)), line=25)
    read = Store(out, (kernel.tx,), load(s, kernel.tx), line=30)
    source = kernel.function(*loads, own, read)
    descent = Descent(Counterparts(source, kernel.function(replace(loads[0], line=0), read)), {}, lambda step: None)
    before = TracedStep("s[0]", "1.0", Origin(loads[0]), sources=(TracedStep("A[0]", "1.0", input=True),))
    wanted = TracedStep("s[0]", "2.0", Origin(own), sources=(before,))
    leaf = TracedStep("A[1]", "1.5", input=True)
    got = TracedStep("m[0]", "1.5", Origin(replace(loads[0], line=0)), sources=(leaf,))
    found = descent.parting(
        TracedStep("C[0]", "2.0", Origin(read), sources=(wanted,)),
        TracedStep("C[0]", "1.5", Origin(read), sources=(got,)),
    )
    assert found is not None
    assert (found.kind, found.source.element) == ("unwritten", "s[0]")
    assert found.source.value == "2.0"


def _rest(value: Expr) -> Expr:
    return Expr("truncmod", "int32", (value, number(5)))


def _ints(kernel: Kernel) -> tuple[list[Buffer], list[Buffer]]:
    """Two tensors and two tiles of integers."""
    tensors = [kernel.tensor(name, "int32", (32,)) for name in "AC"]
    return tensors, [kernel.tile(name, "int32", (32,), "shared") for name in "su"]
