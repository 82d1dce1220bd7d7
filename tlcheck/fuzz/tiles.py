"""Statements about tiles: copies, parallel loops, reductions, scans, products, atomics, slices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tlcheck.fuzz.chance import boundary
from tlcheck.fuzz.expressions import condition, constant, free, place, two_tensors, value
from tlcheck.fuzz.writer import FLOATS, INTEGERS, DrawnBuffer, KernelText

Statement = Callable[[KernelText], None]
_SIZES = (1, 2, 3, 4, 7, 8, 16, 16, 24, 32, 32, 32, 48, 64, 64, 64, 96, 100, 128, 128, 256)
_DTYPES = (*FLOATS, "float32", "float16", "float32", *INTEGERS, "int32")
_NAMES = ("i", "j", "p")


def shape(w: KernelText, scope: str = "shared") -> tuple[int, ...]:
    """Draw the shape of a tile, of at most some 8192 elements: most tiles of a kernel have related ones."""
    if w.chance.of(0.75):
        rows, columns = w.base
        kinds = ((rows, columns), (rows, columns), (rows, columns), (rows,), (columns,), (columns, rows))
        return w.chance.among(kinds)
    sizes = [w.chance.among(_SIZES) for _ in range(w.chance.among((1, 1, 2, 2, 2, 3)))]
    sizes = [boundary(w.chance, s) if w.chance.of(0.3) and scope == "shared" else s for s in sizes]
    while _product(sizes) > 8192:
        sizes[sizes.index(max(sizes))] //= 2
    return tuple(max(1, s) for s in sizes)


def bases(w: KernelText) -> tuple[int, int]:
    """Draw the sizes that most tiles of a kernel have: powers of two usually, which registers can hold in most ways."""
    sizes = [w.chance.among((4, 8, 16, 16, 32, 32, 64, 64, 128)) for _ in range(2)]
    sizes = [boundary(w.chance, s) if w.chance.of(0.12) else s for s in sizes]
    while _product(sizes) > 8192:
        sizes[sizes.index(max(sizes))] //= 2
    return sizes[0], sizes[1]


def _product(sizes: list[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


def tile(w: KernelText) -> DrawnBuffer:
    """A tile in reach, of which some are made now."""
    known = w.known("shared", "fragment")
    if known and w.chance.of(0.7):
        return w.chance.among(known)
    return load(w)


def load(w: KernelText) -> DrawnBuffer:
    """Make a tile and copy a part of a new tensor into it: in place, at an offset, with a tail, along a loop."""
    scope, dtype = w.chance.among(("shared", "shared", "fragment")), w.chance.among(_DTYPES)
    sizes = shape(w, scope)
    buffer = w.alloc(scope, sizes, dtype)
    starts, tensor = _from_tensor(w, sizes, dtype)
    if w.chance.of(0.7):
        if w.chance.of(0.06) and not w.depth:
            w.line(f"T.annotate_safe_value({{{tensor.name}: {w.chance.number(1, 9)}}})")
        w.line(f"T.copy({tensor.name}[{', '.join(starts)}], {buffer.name})")
        return buffer
    names = _NAMES[: len(sizes)]
    inner = [name if start == "0" else f"{start} + {name}" for name, start in zip(names, starts, strict=True)]
    element = f"{tensor.name}[{', '.join(inner)}]"
    if not _inside(w, starts, sizes, tensor):
        bounds = " and ".join(f"{one} < {size}" for one, size in zip(inner, tensor.shape, strict=True))
        element = f"T.if_then_else({_all(bounds)}, {element}, {constant(w, dtype, 0)})"
    with w.block(f"for {', '.join(names)} in T.Parallel({', '.join(map(str, sizes))}):"):
        w.line(f"{buffer.name}[{', '.join(names)}] = {element}")
    return buffer


def _all(bounds: str) -> str:
    parts = bounds.split(" and ")
    return parts[0] if len(parts) == 1 else f"T.And({parts[0]}, {_all(' and '.join(parts[1:]))})"


def _from_tensor(w: KernelText, sizes: tuple[int, ...], dtype: str) -> tuple[list[str], DrawnBuffer]:
    """Return where a tile begins in a new tensor: along the grid and the loops in reach, some with a tail."""
    steps = [name for name, bound in w.indices.items() if name not in ("tx",) and bound <= 8]
    starts, full = [], []
    for size in sizes:
        name = w.chance.among(steps) if steps and w.chance.of(0.6) else ""
        offset = w.chance.among((0, 0, 0, 0, 1, 4, 8)) if w.chance.of(0.3) else 0
        count = w.indices[name] if name else 1
        tail = w.chance.number(1, max(1, size - 1)) if w.chance.of(0.15) and size > 1 else 0
        spare = w.chance.among((0, 0, 1, 2, 8))
        begin = " + ".join([f"{name} * {size}"] * bool(name) + [str(offset)] * bool(offset)) or "0"
        starts.append(begin)
        full.append(max(1, count * size + offset + spare - tail - spare * bool(tail)))
    return starts, w.tensor(tuple(full), dtype)


def _inside(w: KernelText, starts: list[str], sizes: tuple[int, ...], tensor: DrawnBuffer) -> bool:
    """Whether the tile lies in the tensor wherever it begins."""
    for start, size, full in zip(starts, sizes, tensor.shape, strict=True):
        terms = start.split(" + ")
        last = sum((w.indices[t.split(" * ")[0]] - 1) * size if "*" in t else int(t) for t in terms)
        if last + size > full:
            return False
    return True


def set_tile(w: KernelText) -> None:
    """Fill or clear a tile, or a part of it."""
    chosen = tile(w)
    if w.chance.of(0.5):
        w.line(f"T.clear({_part(w, chosen)})")
    else:
        w.line(f"T.fill({_part(w, chosen)}, {w.chance.number(0 if chosen.dtype == 'uint8' else -7, 7)})")


def _part(w: KernelText, buffer: DrawnBuffer, share: float = 0.3) -> str:
    """A tile's name, or a slice of it."""
    if buffer.scope == "fragment" or not w.chance.of(share):
        return buffer.name
    parts = []
    for size in buffer.shape:
        low = w.chance.number(0, size - 1) if w.chance.of(0.5) else 0
        high = w.chance.number(low + 1, size) if w.chance.of(0.5) else size
        parts.append(f"{low}:{high}")
    return f"{buffer.name}[{', '.join(parts)}]"


def elementwise(w: KernelText) -> None:
    """Compute a tile from others in a parallel loop, all of it or a part, guarded or not."""
    old = w.known("shared", "fragment")
    if old and w.chance.of(0.55):
        into = w.chance.among(old)
    else:
        like = tile(w)
        into = w.alloc(w.chance.among(("shared", "fragment")), like.shape, w.chance.among((like.dtype, *_DTYPES)))
        w.line(f"T.clear({into.name})")
    names, extents, inner = _loop_over(w, into)
    w.buffers = [b for b in w.buffers if b is not into]
    computed = value(w, into.dtype, extents)
    element = f"{into.name}[{', '.join(inner)}]"
    if w.chance.of(0.4):
        computed = f"{element} + {computed}" if w.chance.of(0.7) else f"T.max({element}, {computed})"
    with w.block(_parallel(w, names, extents)):
        if w.chance.of(0.25):
            with w.block(f"if {condition(w, extents)}:"):
                w.line(f"{element} = {computed}")
        else:
            w.line(f"{element} = {computed}")
    w.buffers.append(into)


def _loop_over(w: KernelText, into: DrawnBuffer) -> tuple[list[str], dict[str, int], list[str]]:
    """Variables, their extents, and the element that they are of: a part of the tile, now and then at an offset."""
    names = list(_NAMES[: len(into.shape)])
    extents, inner = {}, []
    for name, size in zip(names, into.shape, strict=True):
        part = size > 1 and w.chance.of(0.12 if into.scope == "fragment" else 0.2)
        extents[name] = w.chance.number(1, size - 1) if part else size
        offset = w.chance.number(0, size - extents[name]) if part and w.chance.of(0.5) else 0
        turned = into.scope == "shared" and not part and w.chance.of(0.06)
        inner.append(f"{size - 1} - {name}" if turned else f"{name} + {offset}" if offset else name)
    return names, extents, inner


def _parallel(w: KernelText, names: list[str], extents: Mapping[str, int]) -> str:
    return f"for {', '.join(names)} in T.Parallel({', '.join(str(extents[n]) for n in names)}):"


def copy(w: KernelText) -> None:
    """Copy a tile, or a slice of it, into a new one of another scope or dtype."""
    source = tile(w)
    scope = w.chance.among(("shared", "fragment"))
    dtype = source.dtype if w.chance.of(0.7) else w.chance.among(_DTYPES)
    part = _part(w, source, 0.3)
    if part == source.name:
        sizes = source.shape
    else:
        ends = [piece.split(":") for piece in part[len(source.name) + 1 : -1].split(", ")]
        sizes = tuple(int(high) - int(low) for low, high in ends)
    into = w.alloc(scope, sizes, dtype)
    w.line(f"T.copy({part}, {into.name})")


def reduction(w: KernelText) -> None:
    """Reduce a tile along a dimension, into a new tile or on top of one. Some tiles have few rows, or odd ones."""
    if w.chance.of(0.2):
        sizes = w.chance.among((1, 2, 3, 5, 6, 7, 12)), w.chance.among((8, 16, 32, 32, 64))
        source = w.alloc("fragment", sizes, w.chance.among(("float32", "float32", "int32", "float16")))
        w.line(f"T.copy({w.tensor(sizes, source.dtype).name}, {source.name})")
    else:
        source = tile(w)
    if source.scope != "fragment":
        inner = w.alloc("fragment", source.shape, source.dtype)
        w.line(f"T.copy({source.name}, {inner.name})")
        source = inner
    _reduced(w, source)


def _reduced(w: KernelText, source: DrawnBuffer) -> None:
    names = {"sum": 3.0, "max": 2.0, "min": 1.0, "abssum": 0.5, "absmax": 0.5}
    if not source.is_float:
        names |= {"bitand": 0.5, "bitor": 0.5, "bitxor": 0.5}
    if source.dtype == "uint8":
        names = {k: v for k, v in names.items() if not k.startswith("abs")}
    kind = w.chance.production({f"reduce_{k}": v for k, v in names.items()})
    dim = w.chance.among((*range(len(source.shape)), len(source.shape) - 1))
    sizes = tuple(s for n, s in enumerate(source.shape) if n != dim) or (1,)
    onto = [b for b in w.known("fragment") if b.shape == sizes and b.dtype == source.dtype and b is not source]
    into = w.chance.among(onto) if onto and w.chance.of(0.5) else w.alloc("fragment", sizes, source.dtype)
    keeps = into in onto and kind != "reduce_abssum" and w.chance.of(0.6)
    w.line(f"T.{kind}({source.name}, {into.name}, dim={dim}{', clear=False' if keeps else ''})")


def scan(w: KernelText) -> None:
    """A running sum or maximum along a dimension, of a tile or a part of it, in place or not, in either direction."""
    source = tile(w)
    if source.scope != "shared" and w.chance.of(0.5):
        inner = w.alloc("shared", source.shape, source.dtype)
        w.line(f"T.copy({source.name}, {inner.name})")
        source = inner
    dim = w.chance.number(0, len(source.shape) - 1)
    turned = ", reverse=True" if w.chance.of(0.4) else ""
    kind = w.chance.production({"cumsum": 2.0, "cummax": 1.0})
    part = _part(w, source, 0.3)
    if part != source.name:
        return w.line(f"T.{kind}(src={part}, dst={part}, dim={dim}{turned})")
    into = (
        source if source.scope == "shared" and w.chance.of(0.5) else w.alloc(source.scope, source.shape, source.dtype)
    )
    given = source.name if into is source and w.chance.of(0.5) else f"{source.name}, {into.name}"
    return w.line(f"T.{kind}({given}, dim={dim}{turned})")


def transpose(w: KernelText) -> None:
    """Exchange rows and columns in shared memory."""
    known = w.known("shared", rank=2)
    if not known:
        return elementwise(w)
    source = w.chance.among(known)
    into = w.alloc("shared", (source.shape[1], source.shape[0]), source.dtype)
    return w.line(f"T.transpose({source.name}, {into.name})")


def reshaped(w: KernelText) -> None:
    """Look at a tile in another shape, and compute from that: groups of its rows, or all of its elements anew."""
    source = tile(w)
    count = _product(list(source.shape))
    groups = [n for n in (2, 3, 4, 6, 8) if source.shape[-1] % n == 0]
    if groups and len(source.shape) == 2 and w.chance.of(0.4):
        group = w.chance.among(groups)
        sizes: tuple[int, ...] = (source.shape[0], group, source.shape[1] // group)
    else:
        first = w.chance.among([n for n in (1, 2, 4, 8, 16, 32) if count % n == 0])
        sizes = (first, count // first)
    seen = DrawnBuffer(w.fresh("v"), source.scope, sizes, source.dtype)
    w.line(f"{seen.name} = T.reshape({source.name}, {seen.shape})")
    if seen.scope == "fragment" and w.chance.of(0.6):
        return _reduced(w, seen)
    return w.buffers.append(seen)


def atomic(w: KernelText) -> None:
    """Add to shared memory or to a tensor, from a parallel loop or as a tile."""
    source = tile(w)
    dtype = source.dtype if source.dtype in ("float32", "int32", "float16", "bfloat16") else "int32"
    into = target(w, dtype, source.shape)
    names = list(_NAMES[: len(source.shape)])
    extents = dict(zip(names, source.shape, strict=True))
    if w.chance.of(0.3) and into.shape == source.shape and dtype == source.dtype:
        return w.line(f"T.atomic_add({into.name}, {source.name})")
    kind = w.chance.among(("add", "add", "add", "max", "min")) if dtype in ("int32", "float32") else "add"
    own = dtype if w.chance.of(0.8) else "float32"
    is_split = max(source.shape) > 1 and w.chance.of(0.12)
    sources = two_tensors(w, own, extents) if is_split else value(w, own, extents, 1)
    with w.block(_parallel(w, names, extents)):
        w.line(f"T.atomic_{kind}({place(w, into, extents)}, {sources})")
    w.buffers = [b for b in w.buffers if b is not into or into.scope == "shared"]
    return None


def target(w: KernelText, dtype: str, sizes: tuple[int, ...]) -> DrawnBuffer:
    """Return what atomics add to: a tensor, or a tile that is set."""
    shapes = [sizes, sizes[:1], (w.chance.among((1, 16, 64)),)]
    if w.chance.of(0.5):
        return w.tensor(w.chance.among(shapes), dtype, "D")
    into = w.alloc("shared", w.chance.among(shapes), dtype)
    w.line(f"T.clear({into.name})")
    return into


def store(w: KernelText, buffer: DrawnBuffer) -> None:
    """Write a tile to a tensor that has a part for each block and each step of the loops in reach."""
    lead = [name for name in w.indices if name not in ("tx",)]
    sizes = tuple(w.indices[name] for name in lead)
    into = w.tensor((*sizes, *buffer.shape), buffer.dtype, "O")
    if w.chance.of(0.6):
        zeros = ["0"] * len(buffer.shape)
        return w.line(f"T.copy({buffer.name}, {into.name}[{', '.join([*lead, *zeros])}])")
    names = list(_NAMES[: len(buffer.shape)])
    with w.block(_parallel(w, names, dict(zip(names, buffer.shape, strict=True)))):
        w.line(f"{into.name}[{', '.join([*lead, *names])}] = {buffer.name}[{', '.join(names)}]")
    return None


def scalar_guard(w: KernelText) -> str:
    """Return a condition that all threads of a block agree on."""
    kept = [b for b in w.known("shared") if not b.is_float]
    if kept and w.chance.of(0.3):
        chosen = w.chance.among(kept)
        return f"{chosen.name}[{', '.join(free(w, s) for s in chosen.shape)}] > {w.chance.number(-1, 2)}"
    tensor = next((b for b in w.parameters if b.dtype == "int32" and b.name.startswith("A")), None)
    if tensor is not None and w.chance.of(0.3):
        return f"{tensor.name}[{', '.join(free(w, s) for s in tensor.shape)}] > {w.chance.number(-2, 2)}"
    return condition(w, {})
