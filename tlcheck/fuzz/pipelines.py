"""Loops whose steps load a tile and use it: before, after, some of them; rows that a variable or a table says."""

from __future__ import annotations

from tlcheck.fuzz.expressions import constant, index
from tlcheck.fuzz.writer import DrawnBuffer, KernelText

_ORDERS = {"load, use": 3.0, "use, load": 1.2, "load, use, load": 0.4}
_ROWS = {"step": 3.0, "variable": 1.2, "table": 0.6, "memory": 0.6}
_GUARDS = {"always": 3.0, "parity": 0.9, "first": 0.5, "block": 0.4}
_NAMES = ("i", "j", "p")


def pipeline(w: KernelText) -> None:
    """A loop with a tile that its steps load, and another one that all of them load."""
    order = _drawn(w, "order", _ORDERS)
    rows, guard = _drawn(w, "rows", _ROWS), _drawn(w, "loads", _GUARDS if order == "load, use" else {"always": 1.0})
    dtype, count = w.chance.among(("float32", "float32", "float16", "int32", "bfloat16", "int8")), w.chance.number(2, 5)
    sizes = w.chance.among(((w.threads,), (32,), (64,), (128,), (2 * w.threads,), (16, 64), (8, 32), (64, 32)))
    s = w.alloc("shared", sizes, dtype)
    tensor = w.tensor((3 * count + 3, *sizes), dtype)
    other = w.alloc("shared", sizes, dtype) if w.chance.of(0.4) or guard != "always" else None
    if other is not None:
        w.buffers.remove(other)
    second = w.tensor((count, *sizes), dtype) if other is not None else None
    row = _begin(w, rows, count)
    if order != "load, use" or guard == "block" or (guard != "always" and w.chance.of(0.3)):
        w.line(f"T.copy({_part(tensor, '0')}, {s.name})")
    into = w.tensor((*w.indices.values(), count, *sizes), dtype, "O")
    step = w.fresh("k")
    with w.block(f"for {step} in {_head(w, count)}:", {step: count}):
        place = _row(w, rows, row, step, count)
        if order != "use, load":
            _load(w, guard, step, tensor, place, s)
        if other is not None and second is not None:
            w.line(f"T.copy({_part(second, step)}, {other.name})")
        if rows == "variable" and w.chance.of(0.3):
            w.line(f"{row} = {row} + 1")
            rows = ""
        _use(w, s, other, into, step)
        if order != "load, use":
            after = f"{step} + 1" if rows in ("step", "") else place
            w.line(f"T.copy({_part(tensor, after)}, {s.name})")
        if rows == "variable":
            w.line(f"{row} = {row} + {w.chance.number(1, 2)}")
    if order == "load, use" or w.chance.of(0.3):
        w.buffers.remove(s)  # which may have several copies now


def _drawn(w: KernelText, what: str, wanted: dict[str, float]) -> str:
    return w.chance.production({f"{what}: {name}": x for name, x in wanted.items()}).removeprefix(f"{what}: ")


def _part(tensor: DrawnBuffer, row: str) -> str:
    """One tile of a tensor of tiles."""
    return f"{tensor.name}[{', '.join([row, *[':'] * (len(tensor.shape) - 1)])}]"


def _begin(w: KernelText, rows: str, count: int) -> str:
    """Declare what says the row of a step. Returns its name."""
    match rows:
        case "variable":
            name = w.fresh("row")
            w.line(f'{name} = T.alloc_var("int32")')
            w.line(f"{name} = {w.chance.number(0, 1)}")
            return name
        case "table":
            return w.tensor((count,), "int32", "P").name
        case "memory":
            name = w.fresh("m")
            w.line(f'{name} = T.alloc_shared((1,), "int32")')
            return name
    return ""


def _row(w: KernelText, rows: str, name: str, step: str, count: int) -> str:
    match rows:
        case "variable":
            return name
        case "table":
            return f"T.abs({name}[{step}]) % {count}"
        case "memory":
            w.line(f"{name}[0] = {step} * {w.chance.number(1, 2)}")
            offset = w.fresh("o")
            w.line(f"{offset} = {name}[0]")
            return offset
    return w.chance.among((step, step, f"{step} + 1", f"2 * {step}"))


def _head(w: KernelText, count: int) -> str:
    kind = w.chance.production({"T.Pipelined": 4.0, "T.serial": 0.7, "T.unroll": 0.4})
    stages = f", num_stages={w.chance.among((0, 1, 2, 2, 2, 3, 3, 4))}" if kind == "T.Pipelined" else ""
    return f"{kind}({count}{stages})"


def _load(w: KernelText, guard: str, step: str, tensor: DrawnBuffer, row: str, s: DrawnBuffer) -> None:
    text = f"T.copy({_part(tensor, row)}, {s.name})"
    tests = {"parity": f"{step} % 2 == 0", "first": f"{step} < {w.chance.number(1, 2)}", "block": f"{step} <= bx"}
    if guard == "always":
        return w.line(text)
    with w.block(f"if {tests[guard]}:"):
        return w.line(text)


def _use(w: KernelText, s: DrawnBuffer, other: DrawnBuffer | None, into: DrawnBuffer, step: str) -> None:
    """Store what the step computes of its tiles."""
    names = list(_NAMES[: len(s.shape)])
    extents = dict(zip(names, s.shape, strict=True))
    lead = [name for name in w.indices if name != "tx"]
    read = [index(w, n, extents[n], extents[n], "shared") for n in names]
    text = f"{s.name}[{', '.join(read)}]"
    if other is not None:
        text += f" + {other.name}[{', '.join(names)}]"
    elif w.chance.of(0.3):
        text += f" + {constant(w, s.dtype, w.chance.number(1, 3))}"
    if w.chance.of(0.15):
        w.line(f"T.copy({s.name}, {into.name}[{', '.join([*lead, *['0'] * len(names)])}])")
        return
    with w.block(f"for {', '.join(names)} in T.Parallel({', '.join(map(str, s.shape))}):"):
        w.line(f"{into.name}[{', '.join([*lead, *names])}] = {text}")
