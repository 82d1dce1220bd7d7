"""Products of tiles: operands that each step loads or all share, in registers, odd pitches, pipelines in branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tlcheck.fuzz import tiles
from tlcheck.fuzz.writer import DrawnBuffer, KernelText

_FORMS = {"each step": 3.0, "loaded before": 1.2, "registers": 0.6, "one for both": 0.7}
_AROUND = {"nothing": 4.0, "branch": 0.8, "steps": 0.8}
Load = Callable[[str], None]  # of a step


def product(w: KernelText) -> None:
    """A product of two tiles, alone or in the steps of a pipeline, which may stand in a branch or another loop."""
    form = w.chance.production({f"product {name}": wanted for name, wanted in _FORMS.items()}).removeprefix("product ")
    dtype = w.chance.among(("float16", "float16", "float16", "bfloat16", "int8", "float32"))
    turned = w.chance.of(0.25), w.chance.of(0.4)
    m, n, k = _sizes(w, form, dtype, turned)
    sums = "int32" if dtype == "int8" else "float32"
    sums = "float16" if dtype == "float16" and w.chance.of(0.2) else sums
    result = w.alloc("fragment", (m, n), sums)
    w.line(f"T.clear({result.name})")
    sides = (k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n)
    around = w.chance.production({f"product in {name}": x for name, x in _AROUND.items()}).removeprefix("product in ")
    a, b, loads = _operands(w, form, dtype, sides)
    how = "".join(f", transpose_{x}=True" for x, is_turned in zip("AB", turned, strict=True) if is_turned)
    policy = w.chance.among(("", "", "", "FullRow", "FullCol", "Square"))
    how += f", policy=T.GemmWarpPolicy.{policy}" if policy else ""
    with _around(w, around):
        _steps(w, loads, f"T.gemm({a.name}, {b.name}, {result.name}{how})")
    if form == "registers" and w.chance.of(0.5):
        w.line(f"T.copy({a.name}, {w.alloc('shared', a.shape, dtype).name})")
    kept = (a,) if form in ("loaded before", "registers") else ()
    w.buffers = [known for known in w.buffers if known in kept or known not in (a, b)]  # others have several copies now


_MOST = 4  # steps


def _sizes(w: KernelText, form: str, dtype: str, turned: tuple[bool, bool]) -> tuple[int, int, int]:
    """Draw rows, columns and depth, with tiles of 16 x 8 for all warps of a block. One operand may be both sides."""
    k = w.chance.among((16, 32, 64, 64) if dtype != "int8" else (32, 64))
    m, n = w.chance.among((16, 32, 64, 64, 64, 128, 256)), w.chance.among((16, 32, 64, 64, 104, 128))
    if (m // 16) * (n // 8) < w.threads // 16:
        m, n = 64, w.chance.among((64, 128))
    if form != "one for both":
        return m, n, k
    return (64, 64, 64) if turned[0] == turned[1] else (m, m, k)


def _operands(
    w: KernelText, form: str, dtype: str, sides: tuple[tuple[int, int], tuple[int, int]]
) -> tuple[DrawnBuffer, DrawnBuffer, list[Load]]:
    """Allocate both operands, load what all steps share, and return how a step loads the others."""
    a = w.alloc("fragment" if form == "registers" else "shared", sides[0], dtype)
    if form == "one for both":
        return a, a, [_load(w, a)]
    b = w.alloc("shared", sides[1], dtype)
    if form == "each step":
        return a, b, [_load(w, a), _load(w, b)]
    first = w.tensor((2 * sides[0][0], sides[0][1]), dtype)
    w.line(f"T.copy({first.name}[0, 0], {a.name})")
    w.buffers.remove(b)
    if form == "loaded before":
        _used_before(w, a, first)
    w.buffers.append(b)
    return a, b, [_load(w, b)]


def _used_before(w: KernelText, a: DrawnBuffer, tensor: DrawnBuffer) -> None:
    """Scale an operand before the pipeline, keep it in registers or load another tile into it; or none of these."""
    for _ in range(w.chance.among((0, 1, 1, 2))):
        match w.chance.production({"operand scaled": 1.0, "operand kept": 1.0, "operand loaded again": 1.5}):
            case "operand scaled":
                with w.block(f"for i, j in T.Parallel({a.shape[0]}, {a.shape[1]}):"):
                    w.line(f"{a.name}[i, j] = {a.name}[i, j] * {w.chance.number(2, 3)}")
            case "operand kept":
                _kept(w, a)
            case _:
                _kept(w, a)
                w.line(f"T.copy({tensor.name}[{a.shape[0]}, 0], {a.name})")
                _kept(w, a)


def _kept(w: KernelText, a: DrawnBuffer) -> None:
    """Copy a tile to registers."""
    kept = w.alloc("fragment", a.shape, a.dtype)
    w.line(f"T.copy({a.name}, {kept.name})")


def _load(w: KernelText, into: DrawnBuffer) -> Load:
    """Return how a step loads a tile: by rows or columns of a tensor with a pitch of its own, whole or by elements."""
    rows, columns = into.shape
    pitch = w.chance.among((0, 0, 0, 0, 2, 6, 8))
    by_rows = w.chance.of(0.6)
    sizes = (_MOST * rows, columns + pitch) if by_rows else (rows, _MOST * columns + pitch)
    tensor = w.tensor(sizes, into.dtype)
    how = w.chance.production({"operand at": 3.0, "operand slice": 1.5, "operand elements": 0.8, "operand sums": 0.5})

    def load(step: str) -> None:
        row, column = (f"{step} * {rows}", "0") if by_rows else ("0", f"{step} * {columns}")
        element = f"{tensor.name}[{row} + i, {column} + j]"
        match how:
            case "operand at":
                w.line(f"T.copy({tensor.name}[{row}, {column}], {into.name})")
            case "operand slice":
                part = f"{row} : {row} + {rows}, {column} : {column} + {columns}"
                w.line(f"T.copy({tensor.name}[{part}], {into.name})")
            case _:
                second = f" + {tensor.name}[{rows - 1} - i, {columns - 1} - j]" if how == "operand sums" else ""
                with w.block(f"for i, j in T.Parallel({rows}, {columns}):"):
                    w.line(f"{into.name}[i, j] = {element}{second}")

    return load


@contextmanager
def _around(w: KernelText, around: str) -> Iterator[None]:
    """A branch or a loop that the steps stand in."""
    if around == "branch":
        with w.block(f"if {tiles.scalar_guard(w)}:", is_partial=True):
            yield
    elif around == "steps":
        name, count = w.fresh("q"), w.chance.number(2, 3)
        with w.block(f"for {name} in T.serial({count}):", {name: count}):
            yield
    else:
        yield


def _steps(w: KernelText, loads: list[Load], multiply: str) -> None:
    """The steps: one without a loop, a number of them, or as many as the block's number."""

    def body(step: str) -> None:
        for load in loads:
            load(step)
        for _ in range(w.chance.among((0, 0, 0, 0, 1, 2))):
            w.chance.among((tiles.elementwise, tiles.copy, tiles.set_tile, tiles.reduction))(w)
        w.line(multiply)

    if w.chance.of(0.15):
        return body("0")
    step, stages = w.fresh("k"), w.chance.among((0, 1, 2, 2, 2, 3, 4))
    steps = w.chance.production({"steps": 4.0, "steps of a block": 0.7, "steps to a block": 0.4})
    blocks = min(w.grid[0], _MOST)
    count = {"steps": str(w.chance.number(1, _MOST)), "steps of a block": "bx", "steps to a block": "bx + 1"}[steps]
    bound = int(count) if count.isdigit() else blocks
    head = f"T.Pipelined({count}, num_stages={stages})"
    with w.block(f"for {step} in {head}:", {step: bound}, is_partial=not count.isdigit()):
        return body(step)
