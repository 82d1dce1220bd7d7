"""Small kernels over the constructs of the language, each made by the number that is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tlcheck.fuzz import pipelines, products, reducers, simt, sums, tiles
from tlcheck.fuzz.chance import Chance
from tlcheck.fuzz.switches import SWITCHES
from tlcheck.fuzz.writer import KernelText

_TILES: Mapping[str, tuple[float, Callable[[KernelText], object]]] = {
    "load": (2.5, tiles.load), "set_tile": (1.5, tiles.set_tile), "elementwise": (5, tiles.elementwise),
    "copy": (2.5, tiles.copy), "reduction": (2, tiles.reduction), "scan": (1.5, tiles.scan),
    "transpose": (0.7, tiles.transpose), "reshaped": (1, tiles.reshaped), "product": (2.4, products.product),
    "pipeline": (1.6, pipelines.pipeline), "atomic": (1.4, tiles.atomic), "reducer": (1.2, reducers.reducer),
}  # fmt: skip
_NESTED: Mapping[str, float] = {"loop": 2, "branch": 1.2}
_THREADS: Mapping[str, tuple[float, Callable[[KernelText], object]]] = {
    "exchange": (1, simt.exchange), "strided": (1, simt.strided), "serial": (1, simt.serial),
    "vectors": (1, simt.vectors), "counter": (0.8, simt.counter), "warps": (0.6, simt.warps),
    "branches": (1, simt.branches), "bins": (0.9, simt.bins), "alternated": (0.8, simt.alternated),
    "accumulated": (0.8, sums.accumulated),
    "wide_atomics": (0.6, sums.wide_atomics), "tickets": (0.5, sums.tickets), "asked": (0.6, sums.asked),
    "widened": (0.6, sums.widened), "turned": (0.6, sums.turned),
}  # fmt: skip
_SWITCHES = (
    *SWITCHES,
    "tl.reducer_force_baseline",
    "tl.if_stmt_binding_inline_replayable_binds",
    "tl.enable_reducer_plan_verbose",
)


def compose(chance: Chance) -> str:
    """Return the text of one kernel. The same draws make the same text."""
    grid = chance.among(((1, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 1)))
    threads = chance.among((32, 64, *[128] * 8, *[256] * 3, chance.among((96, 160, 384))))
    w = KernelText(chance, threads, grid, indices={"bx": grid[0], "by": grid[1]})
    w.base = tiles.bases(w)
    if chance.of(0.25):
        w.configs = dict.fromkeys(chance.some(_SWITCHES, chance.among((1, 1, 2))), True)
    if chance.of(0.4):
        w.line("tx = T.get_thread_binding()")
        w.indices["tx"] = w.threads
        for _ in range(chance.number(1, 3)):
            _threads(w)
        w.indices.pop("tx")
    if not w.lines or chance.of(0.4):
        for _ in range(chance.among((1, 1, 2, 2, 3, 4, 5))):
            _statement(w, 2)
        for buffer in w.known("shared", "fragment"):
            tiles.store(w, buffer)
    return w.text()


def _threads(w: KernelText) -> None:
    """One statement of single threads, now and then in a loop."""
    chosen = w.chance.production({name: wanted for name, (wanted, _) in _THREADS.items()})
    made = _THREADS[chosen][1]
    if w.chance.of(0.2):
        step, steps = w.fresh("q"), w.chance.number(1, 3)
        loop = w.chance.among((f"T.serial({steps})", f"T.unroll({steps})"))
        with w.block(f"for {step} in {loop}:", {step: steps}):
            made(w)
    else:
        made(w)


def _statement(w: KernelText, depth: int) -> None:
    """One statement about tiles. depth: of loops and branches that may still begin."""
    wanted = {**{name: wanted for name, (wanted, _) in _TILES.items()}, **(_NESTED if depth else {})}
    chosen = w.chance.production(wanted)
    match chosen:
        case "loop":
            _loop(w, depth)
        case "branch":
            with w.block(f"if {tiles.scalar_guard(w)}:", is_partial=True):
                _statements(w, depth - 1, 2)
            if w.chance.of(0.25):
                with w.block("else:", is_partial=True):
                    _statements(w, depth - 1, 2)
        case _:
            _TILES[chosen][1](w)


def _statements(w: KernelText, depth: int, most: int) -> None:
    """A few statements, and now and then a store of what they made."""
    for _ in range(w.chance.number(1, most)):
        _statement(w, depth)
    inner = w.known("shared", "fragment")
    if inner and w.chance.of(0.12 if w.is_partial else 0.4):
        tiles.store(w, w.chance.among(inner))


def _loop(w: KernelText, depth: int) -> None:
    """A loop over steps: sequential, unrolled, pipelined, with a start or a step, without a step in some blocks."""
    step, count = w.fresh("k"), w.chance.number(1, 4)
    start, stride = w.chance.number(0, 2), w.chance.number(1, 3)
    heads = {
        "T.serial": f"T.serial({count})",
        "T.serial from": f"T.serial({start}, {start + count})",
        "T.serial by": f"T.serial({start}, {start + count}, {stride})",
        "T.unroll": f"T.unroll({count})",
        "T.Pipelined": f"T.Pipelined({count}, num_stages={w.chance.number(0, 4)})",
        "T.Pipelined from": f"T.Pipelined({start}, {start + count}, num_stages={w.chance.number(1, 3)})",
        "T.serial to a block": w.chance.among(("T.serial(bx + 1)", "T.serial(bx)", "T.serial(bx % 2)")),
        "T.Pipelined to a block": w.chance.among(
            ("T.Pipelined(bx + 1, num_stages=2)", "T.Pipelined(bx, num_stages=2)")
        ),
        "while": "",
    }
    wanted = dict.fromkeys(heads, 1.0) | {"T.Pipelined": 3.0, "T.serial to a block": 1.5}
    chosen = w.chance.production(wanted)
    if chosen == "while":
        return _while(w, depth, step, count)
    bound = w.grid[0] if "block" in chosen else start + count if "from" in chosen or "by" in chosen else count
    is_partial = chosen not in ("T.serial", "T.unroll", "T.Pipelined")
    with w.block(f"for {step} in {heads[chosen]}:", {step: bound}, is_partial=is_partial):
        return _statements(w, depth - 1, 3)


def _while(w: KernelText, depth: int, name: str, count: int) -> None:
    """A loop with a variable of its own."""
    w.line(f'{name} = T.alloc_var("int32")')
    w.line(f"{name} = 0")
    with w.block(f"while {name} < {count}:", {name: count}):
        _statements(w, depth - 1, 3)
        w.line(f"{name} = {name} + 1")
