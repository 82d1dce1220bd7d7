"""Reducers: how they are set, updated and finished, of which threads have copies."""

from __future__ import annotations

from tlcheck.fuzz.expressions import value
from tlcheck.fuzz.writer import DrawnBuffer, KernelText


def reducer(w: KernelText) -> None:
    """A reducer over a tile, in the newer form or in the older one, in one loop or in the steps of one."""
    form = w.chance.production({"reducer updated": 1.0, "reducer added to": 1.0})
    dtype = w.chance.among(("float32", "float32", "int32"))
    rows, columns = w.chance.among((1, 2, 2, 4, 8, 16, 64, 128)), w.chance.among((1, 2, 2, 4, 8, 16, 64, 64))
    kept = w.chance.number(0, 1)
    size, name = (rows, columns)[kept], w.fresh("r")
    op = w.chance.among(("sum", "sum", "max", "min"))
    batch = w.chance.among((2, 4)) if size > 1 and w.chance.of(0.25) else 0
    if w.chance.of(0.5 if batch else 0.15):
        w.configs["tl.reducer_force_baseline"] = True
    copies = w.chance.among(("", ', replication="all"', ', replication="all"' if batch else ', replication="none"'))
    w.line(f'{name} = T.alloc_reducer(({size},), "{dtype}", op="{op}"{copies if form == "reducer added to" else ""})')
    into = w.alloc("fragment", (size,), dtype)
    w.buffers.remove(into)
    if form == "reducer updated":
        w.line(f"T.reducer_init({name}{', ' + str(w.chance.number(0, 5)) if w.chance.of(0.3) else ''})")
    else:
        w.line(f"T.fill({name}, {0 if op == 'sum' else -100 if op == 'max' else 100})")
    if w.chance.of(0.3):
        step, count = w.fresh("k"), w.chance.number(2, 8)
        with w.block(f"for {step} in T.serial({count}):", {step: count}):
            _update(w, name, form, op, (rows, columns), kept, dtype)
    else:
        for _ in range(w.chance.among((1, 1, 1, 2))):
            _update(w, name, form, op, (rows, columns), kept, dtype)
    by = f", batch={batch}" if batch else ""
    w.buffers.append(into)
    if form == "reducer updated":
        return w.line(f"T.finalize_reducer({name}, {into.name}{by})")
    w.line(f"T.finalize_reducer({name}{by})")
    return w.line(f"T.copy({name}, {into.name})")


def _update(w: KernelText, name: str, form: str, op: str, sizes: tuple[int, int], kept: int, dtype: str) -> None:
    """Add a tile's elements: one that is loaded now, or others of its size."""
    rows, columns = sizes
    source = DrawnBuffer(w.fresh("f"), "fragment", sizes, dtype)
    before = list(w.buffers)
    if w.chance.of(0.7):
        tensor = w.tensor(sizes, dtype)
        through = w.chance.of(0.4)
        if through:
            w.line(f'{source.name}s = T.alloc_shared({sizes}, "{dtype}")')
            w.line(f"T.copy({tensor.name}, {source.name}s)")
        w.line(f'{source.name} = T.alloc_fragment({sizes}, "{dtype}")')
        w.line(f"T.copy({source.name + 's' if through else tensor.name}, {source.name})")
        w.buffers.append(source)
    element = f"{name}[{'ij'[kept]}]"
    with w.block(f"for i, j in T.Parallel({rows}, {columns}):"):
        text = f"{source.name}[i, j]" if source in w.buffers and w.chance.of(0.7) else ""
        text = text or value(w, dtype, {"i": rows, "j": columns}, 1)
        if form == "reducer updated":
            w.line(f"T.reducer_update({element}, {text})")
        elif op == "sum":
            w.line(f"{element} += {text}")
        else:
            w.line(f"{element} = T.{op}({element}, {text})")
    w.buffers = before
