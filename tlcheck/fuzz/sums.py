"""Statements of single threads about sums and numbers: vectors that add up, atomics, tickets, bytes made wider."""

from __future__ import annotations

from tlcheck.fuzz.expressions import constant
from tlcheck.fuzz.simt import other_thread, out, own_place
from tlcheck.fuzz.writer import KernelText


def accumulated(w: KernelText) -> None:
    """Several elements are added to one, in memory or in a register, of one dtype or two."""
    dtype, lanes = w.chance.among(("float32", "float16", "int32", "bfloat16")), w.chance.among((2, 4, 8, 8, 16))
    own = dtype if w.chance.of(0.5) else w.chance.among(("float32", "float16", "int32"))
    tensor = w.tensor((w.threads, lanes), own)
    where = w.chance.production({"sum in memory": 1.0, "sum in a register": 1.0, "sum in shared memory": 0.5})
    if where == "sum in memory":
        total = own_place(w, dtype)
    elif where == "sum in a register":
        name = w.fresh("l")
        w.line(f'{name} = T.alloc_local((1,), "{dtype}")')
        total = f"{name}[0]"
    else:
        total = f"{w.alloc('shared', (w.threads,), dtype).name}[tx]"
    w.line(f"{total} = {constant(w, dtype, w.chance.number(0, 1))}")
    with w.block(f"for v in T.{w.chance.among(('vectorized', 'vectorized', 'serial', 'unroll'))}({lanes}):"):
        w.line(f"{total} = {total} + {tensor.name}[tx, v]")
    if where != "sum in memory":
        out(w, total, dtype)


def wide_atomics(w: KernelText) -> None:
    """Two or four neighbours are added at once, to a tensor or to shared memory."""
    lanes = w.chance.among((2, 4))
    dtype = w.chance.among(("float32", "int32") if lanes == 4 else ("float16", "bfloat16", "float32", "int32"))
    tensor, into = (w.tensor((w.threads * lanes,), dtype, stem) for stem in "AD")
    place = w.chance.among((f"tx * {lanes}", f"(tx // 2) * {lanes}"))
    w.line(f"T.atomic_addx{lanes}({into.name}[{place}], {tensor.name}[tx * {lanes}])")


def tickets(w: KernelText) -> None:
    """A number that an atomic gives out is used once or several times."""
    count, into = w.tensor((1,), "int32", "D"), w.tensor((w.threads * 4,), "int32", "O")
    tensor, name = w.tensor((w.threads,), "int32"), w.fresh("t")
    with w.block(f"if {tensor.name}[tx] > {w.chance.number(-2, 2)}:"):
        w.line(f"{name} = T.atomic_add({count.name}[0], 1, return_prev=True)")
        if w.chance.of(0.7):
            with w.block(f"if {name} < {w.chance.among((16, w.threads, 4 * w.threads))}:"):
                w.line(f"{into.name}[{name}] = 1")
        else:
            w.line(f"{into.name}[T.min({name}, {4 * w.threads - 1})] = 1")


def asked(w: KernelText) -> None:
    """One condition twice, on what the first branch changes."""
    dtype = w.chance.among(("int32", "float32"))
    given, into = own_place(w, dtype), own_place(w, dtype)
    scope = w.chance.production({"asked of a tensor": 1.0, "asked of shared memory": 1.0, "asked of all": 1.0})
    asked_of = changed = given
    s = None
    if scope != "asked of a tensor":
        s = w.alloc("shared", (w.threads,), dtype)
        w.line(f"{s.name}[tx] = {given}")
        place = "tx" if scope == "asked of shared memory" else w.chance.among(("0", "1", "bx"))
        asked_of, changed = f"{s.name}[{place}]", f"{s.name}[tx]"
    w.line(f"{into} = {constant(w, dtype, 0)}")
    test = f"if {asked_of} > {w.chance.number(-1, 2)}:"
    with w.block(test):
        w.line(f"{changed} = {constant(w, dtype, w.chance.number(-3, 0))}")
    if w.chance.of(0.7):
        with w.block(test):
            w.line(f"{into} = {constant(w, dtype, 1)}")
    if s is not None:
        out(w, f"{s.name}[{other_thread(w)}]", dtype)


def widened(w: KernelText) -> None:
    """Numbers of few bits are computed with, and then made wider."""
    narrow = w.chance.among(("uint8", "int8", "uint8", "int16"))
    wide = w.chance.among(("int32", "float32", "int64"))
    one, other = w.tensor((w.threads,), narrow), w.tensor((w.threads,), narrow)
    operator = w.chance.among(("+", "-", "-", "*"))
    out(w, f'T.cast({one.name}[tx] {operator} {other.name}[tx], "{wide}")', wide)


def turned(w: KernelText) -> None:
    """Threads add to shared memory, and then read what others have added to."""
    dtype = w.chance.among(("int32", "float32"))
    s, tensor = w.alloc("shared", (w.threads,), dtype), w.tensor((w.threads,), dtype)
    w.line(f"{s.name}[{other_thread(w)}] = {constant(w, dtype, 0)}")
    w.line(f"T.atomic_add({s.name}[{other_thread(w)}], {tensor.name}[tx])")
    if w.chance.of(0.4):
        w.line(f"T.atomic_add({w.tensor((w.threads,), dtype, 'D').name}, {s.name})")
    out(w, f"{s.name}[{other_thread(w)}]", dtype)
