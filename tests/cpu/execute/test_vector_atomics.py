"""A vector atomic as written that begins in bounds and ends outside is the author's fault: nothing is judged."""

from __future__ import annotations

from pathlib import Path

from tests.cpu.execute.tiles.building import Kernel, load, multiply
from tlcheck.execute.run import execute
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Evaluate, Expr

RULES = Path(__file__).parents[2] / "fixtures" / "rules"


def test_a_vector_that_ends_outside() -> None:
    """B has 510 elements, and the last thread adds to elements 508 to 511."""
    (output,) = execute(codec.loads((RULES / "TLA007-bad.snapshot.json").read_text())).outputs
    assert output.verdict == "undecided"
    assert "access of B out of bounds" in output.reason


def test_vectors_that_end_inside() -> None:
    (output,) = execute(codec.loads((RULES / "TLA007-good.snapshot.json").read_text())).outputs
    assert output.verdict == "agreed"


def test_a_vector_that_nobody_takes_has_cuda_s_type() -> None:
    """T.atomic_addx4 up to 0.1.12 is a float4, as CUDA calls four floats, and not one of four bits."""
    kernel = Kernel(threads=16)
    a, b = (kernel.tensor(name, "float32", (64,)) for name in "AB")
    first = multiply(kernel.tx, 4)
    ends = [Expr("call", "handle", (load(tensor, first),), "address_of") for tensor in (b, a)]
    added = Evaluate(Expr("call", "float4", tuple(ends), "atomic_addx4_elem_op"))
    (output,) = [out for out in execute(kernel.snapshot([added], [added])).outputs if out.name == "B"]
    assert (output.verdict, output.reason) == ("agreed", "")
