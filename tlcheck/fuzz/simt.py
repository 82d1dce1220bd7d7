"""Statements of single threads: shared memory by thread, loops that begin or step by a thread, vectors, warps."""

from __future__ import annotations

from tlcheck.fuzz.expressions import constant
from tlcheck.fuzz.writer import DrawnBuffer, KernelText

_DTYPES = ("float32", "float32", "float16", "int32", "int32", "int8", "bfloat16")


def exchange(w: KernelText) -> None:
    """Each thread writes an element of shared memory, and reads that of another thread."""
    dtype = w.chance.among(_DTYPES)
    s = w.alloc("shared", (w.threads,), dtype)
    tensor = w.tensor((w.threads + 64,), dtype)
    w.line(f"{s.name}[{other_thread(w)}] = {tensor.name}[tx]")
    for _ in range(w.chance.number(0, 2)):
        other = w.alloc("shared", (w.threads,), dtype)
        w.line(f"{other.name}[tx] = {s.name}[{other_thread(w)}] + {tensor.name}[tx + {w.chance.number(0, 64)}]")
        s = other
    out(w, f"{s.name}[{other_thread(w)}]", dtype)


def strided(w: KernelText) -> None:
    """A loop that begins at the thread's number, or steps by the number of threads."""
    dtype = w.chance.among(_DTYPES)
    lanes = w.chance.among((16, 32, w.threads))
    lane = "tx" if lanes >= w.threads else f"tx % {lanes}"
    rows = 1 if lanes >= w.threads else max(1, w.threads // lanes)
    size = w.chance.among((lanes - 1, lanes, lanes + 1, 2 * lanes, lanes // 2, lanes + lanes // 2, 3 * lanes))
    size = max(1, size)
    s = _shared(w, (rows, size), dtype) if w.chance.of(0.5) else w.alloc("shared", (rows, size), dtype)
    row = "0" if rows == 1 else f"tx // {lanes}"
    tensor = w.tensor((rows, size), dtype)
    step = w.chance.among((lanes, lanes, lanes, lanes * 2))
    loop = w.chance.among(("serial", "serial", "serial", "unroll"))
    begin = lane if w.chance.of(0.8) else f"{lane} + {w.chance.number(0, 3)}"
    with w.block(f"for e in T.{loop}({begin}, {size}, {step}):"):
        w.line(f"{s.name}[{row}, e] = {tensor.name}[{row}, e] + {constant(w, dtype, w.chance.number(0, 3))}")
    kept = w.alloc("shared", (rows, size), dtype)
    w.line(f"T.copy({s.name}, {kept.name})")


def serial(w: KernelText) -> None:
    """A sum in a register over a loop with a start, a step or an end that a thread or a block decides."""
    dtype = w.chance.among(("float32", "int32", "int64", "float16"))
    size = w.chance.among((4, 7, 8, 16, 33))
    tensor = w.tensor((w.threads, size), dtype)
    total = w.fresh("l")
    w.line(f'{total} = T.alloc_local((1,), "{dtype}")')
    w.line(f"{total}[0] = {constant(w, dtype, w.chance.number(0, 2))}")
    start = w.chance.among(("0", "1", "bx", "tx % 3", f"tx % {size}", "3"))
    end = w.chance.among((str(size), f"{size} - 1", f"tx % {size + 1}", f"T.min({size}, bx + 3)"))
    step = w.chance.among((1, 1, 2, 3, 4))
    loop = w.chance.among(("serial", "serial", "unroll"))
    arguments = [start, end] if step == 1 and start != "0" else [start, end, str(step)]
    with w.block(f"for e in T.{loop}({', '.join(arguments)}):"):
        if w.chance.of(0.3):
            with w.block(f"if {w.chance.among(('e % 2 == 0', 'e < tx', 'e != 2'))}:"):
                w.line(f"{total}[0] = {total}[0] + {tensor.name}[tx, e]")
        else:
            w.line(f"{total}[0] = {total}[0] + {tensor.name}[tx, e]")
    out(w, f"{total}[0]", dtype)


def vectors(w: KernelText) -> None:
    """Vectors that a thread loads, computes with and stores, aligned or not."""
    dtype = w.chance.among(_DTYPES)
    lanes, offset = w.chance.among((2, 4, 8)), w.chance.among((0, 0, 0, 1, 2, 4))
    tensor = w.tensor((w.threads * lanes + offset + 8,), dtype)
    local = DrawnBuffer(w.fresh("l"), "local", (lanes,), dtype)
    w.line(f'{local.name} = T.alloc_local(({lanes},), "{dtype}")')
    loop = w.chance.among(("vectorized", "vectorized", "unroll", "serial"))
    with w.block(f"for v in T.{loop}({lanes}):"):
        w.line(f"{local.name}[v] = {tensor.name}[tx * {lanes} + v + {offset}]")
    for _ in range(w.chance.number(0, 2)):
        loop = w.chance.among(("vectorized", "unroll", "serial"))
        first = w.chance.among((f"{local.name}[v]", f"{local.name}[{lanes - 1} - v]" if loop != "vectorized" else "v"))
        first = first if first != "v" else f'T.cast(v, "{dtype}")'
        with w.block(f"for v in T.{loop}({lanes}):"):
            w.line(f"{local.name}[v] = {local.name}[v] {w.chance.among('+-*')} {first}")
    into = w.tensor((*w.grid, w.threads * lanes + offset), dtype, "O")
    with w.block(f"for v in T.{w.chance.among(('vectorized', 'serial', 'unroll'))}({lanes}):"):
        w.line(f"{into.name}[bx, by, tx * {lanes} + v + {offset}] = {local.name}[v]")


def counter(w: KernelText) -> None:
    """A while loop with a variable of its own, that shared memory is rotated in."""
    dtype, steps = w.chance.among(("float32", "int32")), w.chance.number(1, 4)
    tensor = w.tensor((steps * w.chance.number(1, 2), w.threads), dtype)
    s, n, total = w.alloc("shared", (w.threads,), dtype), w.fresh("n"), w.fresh("l")
    w.line(f'{n} = T.alloc_var("int32")')
    w.line(f'{total} = T.alloc_local((1,), "{dtype}")')
    w.line(f"{n} = 0")
    w.line(f"{total}[0] = {constant(w, dtype, 0)}")
    head = w.chance.among((f"while {n} < {steps}:", f"for q in T.serial({steps}):", f"for q in T.unroll({steps}):"))
    with w.block(head):
        w.line(f"{s.name}[tx] = {tensor.name}[{n}, tx]")
        w.line(f"{total}[0] = {total}[0] + {s.name}[{other_thread(w)}]")
        w.line(f"{n} = {n} + 1")
    out(w, f"{total}[0]", dtype)


def warps(w: KernelText) -> None:
    """A reduction in a warp."""
    dtype = w.chance.among(("float32", "int32", "float16", "int64"))
    tensor = w.tensor((w.threads,), dtype)
    value = f"{tensor.name}[tx]"
    if dtype == "int64" and w.chance.of(0.5):
        value = f"{value} * 4294967296 + tx"
    kind = w.chance.among(("sum", "max", "min") if dtype != "int32" else ("sum", "max", "min", "bitand", "bitor"))
    out(w, f"T.warp_reduce_{kind}({value})", dtype)


def branches(w: KernelText) -> None:
    """Threads that do different things to registers and shared memory, then meet."""
    dtype = w.chance.among(("float32", "int32", "float16"))
    s, tensor = _shared(w, (w.threads,), dtype), w.tensor((2, w.threads), dtype)
    edge = w.chance.among((1, 31, 32, 33, w.threads // 2, w.threads - 1))
    with w.block(f"if {w.chance.among((f'tx < {edge}', 'tx % 2 == 0', f'{tensor.name}[1, tx] > 0', 'bx == 0'))}:"):
        w.line(f"{s.name}[tx] = {tensor.name}[0, tx]")
    if w.chance.of(0.6):
        with w.block("else:"):
            w.line(f"{s.name}[tx] = {tensor.name}[1, tx]")
    out(w, f"{s.name}[{other_thread(w)}]", dtype)


def alternated(w: KernelText) -> None:
    """Steps of a loop that take turns: some write shared memory, others read what other threads wrote."""
    dtype, steps = w.chance.among(("float32", "int32", "float16")), w.chance.number(2, 6)
    s, tensor, total = w.alloc("shared", (w.threads,), dtype), w.tensor((steps, w.threads), dtype), w.fresh("l")
    w.line(f'{total} = T.alloc_local((1,), "{dtype}")')
    w.line(f"{total}[0] = {constant(w, dtype, 0)}")
    w.line(f"{s.name}[tx] = {tensor.name}[0, tx]")
    q = w.fresh("q")
    tests = (f"{q} % 2 == 0", f"{q} % 2 == 1", f"{q} < {steps // 2}", f"{q} % 3 == 0", f"{q} > bx")
    reads, writes = f"{total}[0] = {total}[0] + {s.name}[{other_thread(w)}]", f"{s.name}[tx] = {tensor.name}[{q}, tx]"
    first, second = (reads, writes) if w.chance.of(0.5) else (writes, reads)
    test = w.chance.among(tests)
    with w.block(f"for {q} in T.{w.chance.among(('serial', 'serial', 'unroll'))}({steps}):", {q: steps}):
        with w.block(f"if {test}:"):
            w.line(first)
        with w.block(w.chance.among(("else:", "else:", f"if not ({test}):", f"if {w.chance.among(tests)}:"))):
            w.line(second)
    out(w, f"{total}[0]", dtype)


def bins(w: KernelText) -> None:
    """A histogram in shared memory."""
    count = w.chance.among((4, 16, 64))
    s, tensor = _shared(w, (count,), "int32"), w.tensor((w.threads,), "int32")
    w.line(f"T.atomic_add({s.name}[T.abs({tensor.name}[tx]) % {count}], {w.chance.number(1, 2)})")
    out(w, f"{s.name}[tx % {count}]", "int32")


def _shared(w: KernelText, shape: tuple[int, ...], dtype: str) -> DrawnBuffer:
    made = w.alloc("shared", shape, dtype)
    w.line(f"T.clear({made.name})")
    return made


def other_thread(w: KernelText) -> str:
    """The number of a thread: the own, a neighbour's, the mirrored one."""
    n = w.threads
    return w.chance.among(("tx", f"{n - 1} - tx", "tx ^ 1", f"(tx + 1) % {n}", f"(tx + 32) % {n}", "tx ^ 16"))


def own_place(w: KernelText, dtype: str) -> str:
    """Return an element of a new tensor that only this thread has, in this step of the loops in reach."""
    lead = [name for name in w.indices if name not in ("tx",)]
    into = w.tensor((*(w.indices[name] for name in lead), w.threads), dtype, "O")
    return f"{into.name}[{', '.join([*lead, 'tx'])}]"


def out(w: KernelText, text: str, dtype: str) -> None:
    """Write a thread's value to its own place."""
    w.line(f"{own_place(w, dtype)} = {text}")
