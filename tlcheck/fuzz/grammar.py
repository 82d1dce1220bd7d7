"""Small kernels over the constructs of the language, each made by the number that is drawn."""

from __future__ import annotations

from collections.abc import Mapping

from tlcheck.fuzz import simt, tiles
from tlcheck.fuzz.chance import Chance
from tlcheck.fuzz.switches import SWITCHES
from tlcheck.fuzz.writer import KernelText

_TILES: Mapping[str, float] = {
    "load": 3, "set_tile": 1.5, "elementwise": 5, "copy": 2.5, "reduction": 2, "scan": 1, "transpose": 0.7,
    "reshaped": 0.7, "product": 1.2, "atomic": 1.2, "reducer": 0.7, "loop": 2, "branch": 1,
}  # fmt: skip
_THREADS: Mapping[str, float] = {
    "exchange": 1, "strided": 1, "serial": 1, "vectors": 1, "counter": 0.8, "warps": 0.5, "branches": 1, "bins": 0.7,
}  # fmt: skip
_SWITCHES = (*SWITCHES, "tl.if_stmt_binding_inline_replayable_binds", "tl.enable_reducer_plan_verbose")


def compose(chance: Chance) -> str:
    """Return the text of one kernel. The same draws make the same text."""
    grid = chance.among(((1, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 1)))
    threads = chance.among((32, 64, 128, 128, 128, 256))
    w = KernelText(chance, threads, grid, indices={"bx": grid[0], "by": grid[1]})
    w.base = tiles.bases(w)
    if chance.of(0.25):
        w.configs = dict.fromkeys(chance.some(_SWITCHES, chance.among((1, 1, 2))), True)
    if chance.of(0.3):
        w.line("tx = T.get_thread_binding()")
        w.indices["tx"] = w.threads
        for _ in range(chance.number(1, 3)):
            _threads(w)
        w.indices.pop("tx")
    if not w.lines or chance.of(0.3):
        for _ in range(chance.number(1, 5)):
            _statement(w, 2)
        for buffer in w.known("shared", "fragment"):
            tiles.store(w, buffer)
    return w.text()


def _threads(w: KernelText) -> None:
    """One statement of single threads, now and then in a loop."""
    chosen = w.chance.production(_THREADS)
    if w.chance.of(0.2):
        step, steps = w.fresh("q"), w.chance.number(1, 3)
        loop = w.chance.among((f"T.serial({steps})", f"T.unroll({steps})"))
        with w.block(f"for {step} in {loop}:", {step: steps}):
            getattr(simt, chosen)(w)
    else:
        getattr(simt, chosen)(w)


def _statement(w: KernelText, depth: int) -> None:
    """One statement about tiles. depth: of loops and branches that may still begin."""
    chosen = w.chance.production({k: v for k, v in _TILES.items() if depth or k not in ("loop", "branch")})
    match chosen:
        case "loop":
            _loop(w, depth)
        case "branch":
            with w.block(f"if {tiles.scalar_guard(w)}:", is_partial=True):
                for _ in range(w.chance.number(1, 2)):
                    _statement(w, depth - 1)
        case _:
            getattr(tiles, chosen)(w)


def _loop(w: KernelText, depth: int) -> None:
    """A loop over steps: sequential, unrolled, pipelined, with a start or a step, or with a variable of its own."""
    step, count = w.fresh("k"), w.chance.number(1, 4)
    start, stride = w.chance.number(0, 2), w.chance.number(1, 3)
    heads = {
        "T.serial": f"T.serial({count})",
        "T.serial from": f"T.serial({start}, {start + count})",
        "T.serial by": f"T.serial({start}, {start + count}, {stride})",
        "T.unroll": f"T.unroll({count})",
        "T.Pipelined": f"T.Pipelined({count}, num_stages={w.chance.number(0, 4)})",
        "T.Pipelined from": f"T.Pipelined({start}, {start + count}, num_stages={w.chance.number(1, 3)})",
        "T.serial to a block": "T.serial(bx + 1)",
        "T.Pipelined to a block": "T.Pipelined(bx + 1, num_stages=2)",
    }
    wanted = dict.fromkeys(heads, 1.0) | {"T.Pipelined": 3.0}
    chosen = w.chance.production(wanted)
    bound = w.grid[0] if "block" in chosen else start + count if "from" in chosen or "by" in chosen else count
    is_partial = chosen not in ("T.serial", "T.unroll", "T.Pipelined")
    with w.block(f"for {step} in {heads[chosen]}:", {step: bound}, is_partial=is_partial):
        for _ in range(w.chance.number(1, 3)):
            _statement(w, depth - 1)
        inner = w.known("shared", "fragment")
        if inner and not w.is_partial and w.chance.of(0.4):
            tiles.store(w, w.chance.among(inner))
