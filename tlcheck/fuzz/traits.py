"""Tell what a kernel's source has that a known finding needs: `pipeline in a branch`, `operand loaded twice`.

Each trait is a question about the order and the nesting of statements, which a regular expression cannot ask in
reasonable time.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tlcheck.fuzz import staged_tiles as staged
from tlcheck.fuzz.conditions import asks_twice, changes_what_it_asked
from tlcheck.fuzz.constructs import SCANS, pitches_in, scopes_in
from tlcheck.fuzz.operand_rows import reads_row_of_operand
from tlcheck.fuzz.small_loops import adds_by_few

_SETS = ("fill", "clear")


@dataclass(frozen=True, eq=False)
class PlacedStatement:
    """A statement, with those that it stands in, the outermost first."""

    stmt: ast.stmt
    around: tuple[ast.stmt, ...]

    @cached_property
    def call(self) -> ast.Call | None:
        """The call that the statement is, or that its loop runs over."""
        e = self.stmt.iter if isinstance(self.stmt, ast.For) else getattr(self.stmt, "value", None)
        return e if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) else None

    @cached_property
    def name(self) -> str:
        """The function that is called: `copy`, `Pipelined`; empty for none."""
        return self.call.func.attr if self.call is not None and isinstance(self.call.func, ast.Attribute) else ""

    @cached_property
    def written(self) -> str:
        """The name of the buffer or variable that the statement writes, empty for none."""
        match self.stmt:
            case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
                return _base(target)
            case ast.Expr() if self.call is not None and self.call.args and self.name in (*_SETS, "copy"):
                return _base(self.call.args[-1 if self.name == "copy" else 0])
        return ""

    @cached_property
    def heads(self) -> tuple[ast.AST, ...]:
        """Return what the statement itself says, without the statements in it."""
        match self.stmt:
            case ast.For(target=target, iter=values):
                return target, values
            case ast.If(test=test) | ast.While(test=test):
                return (test,)
            case ast.With():
                return ()
        return (self.stmt,)

    @cached_property
    def names(self) -> frozenset[str]:
        """All names in the statement."""
        return frozenset(n.id for head in self.heads for n in ast.walk(head) if isinstance(n, ast.Name))

    @cached_property
    def is_load(self) -> bool:
        """Whether it copies a part of something into a whole buffer."""
        args = self.call.args if self.call is not None else []
        return self.name == "copy" and len(args) == 2 and isinstance(args[1], ast.Name)

    def reads(self, name: str) -> bool:
        """Whether the statement uses a name otherwise than as what it writes."""
        uses = sum(isinstance(n, ast.Name) and n.id == name for head in self.heads for n in ast.walk(head))
        return uses > (self.written == name)


class KernelTraits:
    """The statements of a kernel, and what is to be known of them."""

    def __init__(self, text: str, line: int = 0) -> None:
        """line: in the kernel that is meant, where the text has several; 0 for the first one."""
        tree = ast.parse(text)
        self.scopes, self.pitches = scopes_in(tree), pitches_in(tree)
        blocks = [n for n in ast.walk(tree) if isinstance(n, ast.With)]
        block = next((b for b in blocks if not line or b.lineno <= line <= (b.end_lineno or 0)), None)
        self.all = list(_placed(block.body, ())) if block is not None else []
        self.threads = _threads(block) if block is not None else 0
        self.pipelines = [n for n, p in enumerate(self.all) if _stages(p) > 0]

    def at(self, line: int) -> PlacedStatement | None:
        """The innermost statement on a line."""
        found = [p for p in self.all if p.stmt.lineno <= line <= (p.stmt.end_lineno or 0)]
        return found[-1] if found else None

    def inside(self, place: int) -> list[PlacedStatement]:
        """The statements in a loop or a branch."""
        return [p for p in self.all if self.all[place].stmt in p.around]

    def products(self, place: int) -> list[PlacedStatement]:
        return [p for p in self.inside(place) if p.name == "gemm"]

    def parted(self, place: int) -> tuple[list[PlacedStatement], list[PlacedStatement]]:
        """The statements before a loop, and those after it."""
        own = {id(p.stmt) for p in self.inside(place)}
        return self.all[:place], [p for p in self.all[place + 1 :] if id(p.stmt) not in own]

    def with_product(self) -> list[int]:
        return [n for n in self.pipelines if self.products(n)]

    def operands(self, place: int) -> set[str]:
        """Return what a pipeline's products multiply, and the other tiles that its steps read."""
        read = {name for p in self.inside(place) for name in p.names if p.reads(name)}
        return {name for name in read if self.scopes.get(name) == "shared"} | {
            _base(a) for p in self.products(place) if p.call is not None for a in p.call.args[:2]
        }


def _base(e: ast.expr) -> str:
    while isinstance(e, ast.Subscript):
        e = e.value
    return e.id if isinstance(e, ast.Name) else ""


def _placed(block: list[ast.stmt], around: tuple[ast.stmt, ...]) -> Iterator[PlacedStatement]:
    for stmt in block:
        yield PlacedStatement(stmt, around)
        for inner in (getattr(stmt, "body", []), getattr(stmt, "orelse", [])):
            yield from _placed(inner, (*around, stmt))


def _stages(p: PlacedStatement) -> int:
    """The number of stages of a pipeline, 1 where a name says it; 0 for other statements."""
    if p.name != "Pipelined" or p.call is None or not isinstance(p.stmt, ast.For):
        return 0
    given = [k.value for k in p.call.keywords if k.arg == "num_stages"]
    numbers = [e.value if isinstance(e, ast.Constant) and isinstance(e.value, int) else 1 for e in given]
    return sum(numbers)


def _is_by_elements(t: KernelTraits, p: PlacedStatement) -> bool:
    """Whether it is T.Parallel, or loads a tile whose rows no bulk copy can take: their bytes are no multiple of 16."""
    source = _base(p.call.args[0]) if p.is_load and p.call is not None else ""
    return p.name == "Parallel" or (t.scopes.get(p.written) == "shared" and t.pitches.get(source, 0) % 16 > 0)


def _constant(e: ast.expr) -> bool:
    return not any(isinstance(n, ast.Name) and n.id != "T" for n in ast.walk(e))


def _loads_before(t: KernelTraits, place: int, name: str) -> list[int]:
    return [n for n in range(place) if t.all[n].is_load and t.all[n].written == name]


def _operand(count: int, asked: Callable[[KernelTraits, int, str, int], bool]) -> Callable[[KernelTraits], bool]:
    """A trait of a pipeline's operand that is loaded so often before the pipeline."""

    def has(t: KernelTraits) -> bool:
        for place in t.pipelines:
            for name in t.operands(place):
                loads = _loads_before(t, place, name)
                if len(loads) >= count and asked(t, place, name, loads[0]):
                    return True
        return False

    return has


def _is_read_before(t: KernelTraits, place: int, name: str, load: int) -> bool:
    return any(p.reads(name) for p in t.all[load + 1 : place])


def _is_read_after(t: KernelTraits, place: int, name: str, _load: int) -> bool:
    return any(p.reads(name) for p in t.parted(place)[1])


def _is_read_after_none(t: KernelTraits, place: int, name: str, load: int) -> bool:
    """Whether it is read after a pipeline that may have no step, or whose steps a branch may skip."""
    skips = any(isinstance(s, ast.If) for p in t.products(place) for s in p.around)
    return (skips or is_of_block(t.all[place])) and _is_read_after(t, place, name, load)


def _used_then_loaded(t: KernelTraits) -> bool:
    bodies = [t.inside(place) for place in t.pipelines]
    return any(p.is_load and any(q.reads(p.written) for q in body[:n]) for body in bodies for n, p in enumerate(body))


def _loaded_then_set(t: KernelTraits) -> bool:
    """Whether a step of a pipeline loads a tile, then stores elements that do not depend on it."""
    for place in t.pipelines:
        body = t.inside(place)
        for n, p in enumerate(body):
            later = [q for q in body[n + 1 :] if isinstance(q.stmt, ast.Assign) and q.written == p.written]
            if p.is_load and t.scopes.get(p.written) == "shared" and any(not q.reads(p.written) for q in later):
                return True
    return False


def _cleared_then_loaded(t: KernelTraits) -> bool:
    """Whether a step of a pipeline fills a tile with a constant, then from a tensor."""
    for place in t.pipelines:
        body = t.inside(place)
        for n, p in enumerate(body):
            later = [q for q in body[n + 1 :] if q.written == p.written]
            from_tensor = any(t.scopes.get(name) == "global" for q in later for name in q.names)
            if p.name in _SETS and t.scopes.get(p.written) == "shared" and from_tensor:
                return True
    return False


def _loaded_registers(t: KernelTraits) -> bool:
    loads = [p for place in t.pipelines for p in t.inside(place) if p.is_load and p.call is not None]
    scopes = [(t.scopes.get(_base(p.call.args[0])), t.scopes.get(p.written)) for p in loads if p.call is not None]
    return ("global", "fragment") in scopes


def _guarded_conversion(t: KernelTraits) -> bool:
    """Whether elements are converted in a branch within a loop over elements."""
    for p in t.all:
        names = [_loop_name(s) for s in p.around]
        guarded = "Parallel" in names and "if" in names[names.index("Parallel") :]
        if guarded and isinstance(p.stmt, ast.Assign) and "T.cast(" in ast.unparse(p.stmt.value):
            return True
    return False


def _viewed(t: KernelTraits) -> bool:
    """Whether registers are reshaped before a pipeline."""
    for place in t.pipelines:
        calls = [c for p in t.parted(place)[0] for head in p.heads for c in ast.walk(head)]
        if any(t.scopes.get(name) == "fragment" for name in map(_reshaped, calls)):
            return True
    return False


def _reshaped(node: ast.AST) -> str:
    """The buffer that a node is a view of, empty for none."""
    match node:
        case ast.Call(func=ast.Attribute(attr="reshape"), args=[ast.Name(id=name), *_]):
            return name
    return ""


def _reduced_in_place(t: KernelTraits) -> bool:
    views = {p.written: _reshaped(p.stmt.value) for p in t.all if isinstance(p.stmt, ast.Assign)}
    for p in t.all:
        if p.name.startswith("reduce_") and p.call is not None and len(p.call.args) > 1:
            source, into = p.call.args[:2]
            if (_reshaped(source) or views.get(_base(source))) == _base(into):
                return True
    return False


def _kept_over(t: KernelTraits) -> bool:
    """Whether registers are used before and after a pipeline."""
    for place in t.pipelines:
        before, after = ({n for p in part for n in p.names} for part in t.parted(place))
        if any(t.scopes.get(name) == "fragment" for name in before & after):
            return True
    return False


def _signed_by_cast(t: KernelTraits) -> bool:
    """Whether a number that is cast to a signed type is compared or divided."""
    for p in t.all:
        for node in (n for head in p.heads for n in ast.walk(head)):
            match node:
                case ast.Compare(left=left) | ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod()):
                    match left:
                        case ast.Call(func=ast.Attribute(attr="cast"), args=[_, ast.Constant(value=str(dtype))]):
                            if dtype.startswith("int"):
                                return True
    return False


def _small_reducer(t: KernelTraits) -> bool:
    """Whether a loop over fewer elements than threads, of which a pipeline may add 128, updates a whole reducer."""
    if any("batch=" in ast.unparse(p.stmt) for p in t.all if p.name == "finalize_reducer"):
        return False
    for p in t.all:
        loop = next((s for s in p.around[::-1] if _loop_name(s) == "Parallel"), None)
        names = p.names | {p.written}
        if isinstance(loop, ast.For) and any(t.scopes.get(name) == "reducer" for name in names):
            sizes = [a.value for a in getattr(loop.iter, "args", ()) if isinstance(a, ast.Constant)]
            if math.prod(n for n in sizes if isinstance(n, int)) < t.threads + 128 * bool(t.pipelines):
                return True
    return False


def _threads(block: ast.With) -> int:
    calls = [i.context_expr for i in block.items if isinstance(i.context_expr, ast.Call)]
    given = [k.value for call in calls for k in call.keywords if k.arg == "threads"]
    return next((e.value for e in given if isinstance(e, ast.Constant) and isinstance(e.value, int)), 128)


def _loop_name(stmt: ast.stmt) -> str:
    """The function that a loop runs over; `if` for a branch."""
    return "if" if isinstance(stmt, ast.If) else PlacedStatement(stmt, ()).name


def _loaded_in_a_loop(t: KernelTraits) -> bool:
    """Whether a step of a pipeline has a loop that fills shared memory from a tensor."""
    for place in t.pipelines:
        for p in t.inside(place):
            loops = [_loop_name(s) for s in p.around[p.around.index(t.all[place].stmt) + 1 :]]
            filled = p.is_load or isinstance(p.stmt, ast.Assign)
            from_tensor = any(t.scopes.get(name) == "global" for name in p.names)
            in_a_loop = not {"serial", "unroll", "Pipelined"}.isdisjoint(loops)
            if t.scopes.get(p.written) == "shared" and filled and from_tensor and in_a_loop:
                return True
    return False


def _loaded_before(t: KernelTraits) -> bool:
    """Whether a tile that a pipeline loads is loaded before it, too."""
    for place in t.pipelines:
        loads = {p.written for p in t.inside(place) if p.is_load and t.scopes.get(p.written) == "shared"}
        if any(_loads_before(t, place, name) for name in loads):
            return True
    return False


def _guarded_load(t: KernelTraits) -> bool:
    bodies = (t.inside(place) for place in t.pipelines)
    return any(p.is_load and isinstance(p.around[-1], ast.If) for body in bodies for p in body)


def _row_variable(t: KernelTraits) -> bool:
    for place in t.pipelines:
        body = t.inside(place)
        changed = {
            p.written for p in body if isinstance(p.stmt, ast.Assign) and isinstance(p.stmt.targets[0], ast.Name)
        }
        changed = {name for name in changed if t.scopes.get(name) == "var"}
        if any((p.is_load or t.scopes.get(p.written) == "shared") and p.names & changed for p in body):
            return True
    return False


def _kept_registers(t: KernelTraits) -> bool:
    for place in t.pipelines:
        before, after = t.parted(place)
        used = {n for p in t.products(place) for n in p.names}
        known = {n for p in before for n in p.names if t.scopes.get(n) == "fragment"} - used
        if any(p.names & known for p in after):
            return True
    return False


def _vectorized_sum(t: KernelTraits) -> bool:
    for p in t.all:
        match p.stmt:
            case ast.Assign(targets=[ast.Subscript() as target], value=ast.BinOp(left=left)):
                loops = [a.iter for a in p.around if isinstance(a, ast.For)]
                if any("vectorized" in ast.unparse(e) for e in loops) and ast.unparse(target) == ast.unparse(left):
                    return True
    return False


def _over_part(t: KernelTraits) -> bool:
    """Whether a scan takes a part of registers, or a loop over fewer elements than these have stores them by its own
    indices, shifted or not.
    """
    shapes = {p.written: _numbers(p.call.args[0]) for p in t.all if p.call is not None and p.name == "alloc_fragment"}
    for p in t.all:
        scanned = p.call.keywords[:1] if p.call is not None and p.name in SCANS else []
        if any(isinstance(k.value, ast.Subscript) and _base(k.value) in shapes for k in scanned):
            return True
        loop = next((s for s in p.around[::-1] if _loop_name(s) == "Parallel"), None)
        if not isinstance(loop, ast.For) or not isinstance(p.stmt, ast.Assign):
            continue
        target, shape = p.stmt.targets[0], shapes.get(p.written, ())
        if isinstance(target, ast.Subscript) and _unshifted(target.slice) == _unshifted(loop.target):
            sizes = [_numbers(a) for a in getattr(loop.iter, "args", ())]
            if math.prod(n for size in sizes for n in size) < math.prod(shape):
                return True
    return False


def _unshifted(e: ast.expr) -> list[str]:
    """Return indices without the constants that are added to them."""
    found = []
    for index in e.elts if isinstance(e, ast.Tuple) else [e]:
        match index:
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant()):
                found.append(ast.unparse(left))
            case _:
                found.append(ast.unparse(index))
    return found


def _numbers(e: ast.expr) -> tuple[int, ...]:
    """Return the numbers in a shape or a size."""
    return tuple(n.value for n in ast.walk(e) if isinstance(n, ast.Constant) and isinstance(n.value, int))


def _copied_by_threads(t: KernelTraits) -> bool:
    """Whether a pipeline has a tile that a loop over elements copies from a tensor, beside one that T.copy loads."""
    for place in t.pipelines:
        body = t.inside(place)
        loaded = any(p.is_load and t.scopes.get(p.written) == "shared" for p in body)
        stores = [p for p in body if isinstance(p.stmt, ast.Assign) and t.scopes.get(p.written) == "shared"]
        read = ({t.scopes.get(name) for name in p.names - {p.written}} for p in stores)
        if loaded and any("global" in scopes and "shared" not in scopes for scopes in read):
            return True
    return False


def _in_turn(t: KernelTraits) -> bool:
    """Whether a serial loop, in no loop over elements, uses its own element of registers."""
    for p in t.all:
        loops = [s for s in p.around if isinstance(s, ast.For)]
        names = [_loop_name(s) for s in loops]
        turns = {s.target.id for s in loops if _loop_name(s) in ("serial", "unroll") and isinstance(s.target, ast.Name)}
        if not turns or "Parallel" in names or not isinstance(p.stmt, (ast.Assign, ast.AugAssign)):
            continue
        elements = [n for n in ast.walk(p.stmt) if isinstance(n, ast.Subscript)]
        if any(t.scopes.get(_base(e)) == "fragment" and _names_in(e.slice) & turns for e in elements):
            return True
    return False


def _names_in(e: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}


def _loop_by_thread(t: KernelTraits) -> bool:
    calls = [p.call for p in t.all if p.name in ("serial", "unroll") and p.call is not None]
    return any(len(c.args) == 3 and not all(map(_constant, c.args[:2])) for c in calls)


def is_of_block(p: PlacedStatement) -> bool:
    """Whether it is a loop that may have no step: its end is the number of a block or the like."""
    is_loop = p.name in ("serial", "unroll", "Pipelined") and isinstance(p.stmt, ast.For) and p.call is not None
    end = p.call.args[-1] if is_loop and p.call is not None and p.call.args else None
    return end is not None and not _constant(end) and "+" not in ast.unparse(end)


def _by_thread(t: KernelTraits) -> bool:
    threads = {p.written for p in t.all if p.name == "get_thread_binding"}
    for place in t.pipelines:
        stores = [p for p in t.all[:place] if isinstance(p.stmt, ast.Assign) and t.scopes.get(p.written) == "shared"]
        if any(p.names & threads and isinstance(p.stmt.targets[0], ast.Subscript) for p in stores):  # type: ignore[attr-defined]
            return True
    return False


def _set_by_all(t: KernelTraits) -> bool:
    """Whether all threads store one element of shared memory in each step of a loop."""
    for p in t.all:
        match p.stmt:
            case ast.Assign(targets=[ast.Subscript(slice=index)]) if t.scopes.get(p.written) == "shared":
                loops = [_loop_name(a) for a in p.around if isinstance(a, ast.For)]
                if loops and "Parallel" not in loops and _constant(index):
                    return True
    return False


def _skipped_by_some(t: KernelTraits) -> bool:
    """Whether a pipeline stands in a branch, or in a loop that has no step in some blocks."""
    loops = [p.stmt for p in t.all if is_of_block(p)]
    return any(isinstance(s, ast.If) or s in loops for place in t.pipelines for s in t.all[place].around)


def is_short(p: PlacedStatement) -> bool:
    """Whether it is a pipeline with fewer steps than stages, or with a number of steps that no constant says."""
    bounds = p.call.args[:2] if p.call is not None else []
    numbers = [e.value for e in bounds if isinstance(e, ast.Constant) and isinstance(e.value, int)]
    if not _stages(p) or not bounds:
        return False
    return len(numbers) < len(bounds) or numbers[-1] - (numbers[0] if len(numbers) > 1 else 0) < _stages(p)


def _calls(t: KernelTraits, after_pipeline: bool, *names: str) -> bool:
    for place in t.pipelines:
        before, after = t.parted(place)
        if any(p.name.startswith(names) for p in (after if after_pipeline else before)):
            return True
    return False


def _calls_inside(t: KernelTraits, *names: str) -> bool:
    return any(p.name in names for place in t.pipelines for p in t.inside(place))


def _atomic_of_a_choice(t: KernelTraits) -> bool:
    """Whether an atomic's value is one of two elements."""
    calls = [n for p in t.all if p.name.startswith("atomic_") for head in p.heads for n in ast.walk(head)]
    choices = [n for n in calls if isinstance(n, ast.Call) and ast.unparse(n.func) == "T.if_then_else"]
    return any(all(_has_element(e) for e in n.args[1:]) for n in choices)


def _has_element(e: ast.expr) -> bool:
    return any(isinstance(n, ast.Subscript) for n in ast.walk(e))


def _indices(t: KernelTraits) -> Iterator[tuple[PlacedStatement, str, ast.expr]]:
    for p in t.all:
        for head in p.heads:
            for node in ast.walk(head):
                if isinstance(node, ast.Subscript):
                    yield p, _base(node), node.slice


def _modulo(t: KernelTraits, asked: Callable[[ast.BinOp], bool]) -> bool:
    found = (
        n for p, _, i in _indices(t) for n in ast.walk(i) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod)
    )
    return any(asked(n) for n in found)


def _odd(n: ast.BinOp) -> bool:
    return (
        isinstance(n.right, ast.Constant) and isinstance(n.right.value, int) and n.right.value & (n.right.value - 1) > 0
    )


_TRAITS: Mapping[str, Callable[[KernelTraits], bool]] = {
    "pipeline": lambda t: bool(t.pipelines),
    "product in a pipeline": lambda t: bool(t.with_product()),
    "pipeline in a branch": _skipped_by_some,
    "pipeline in a loop": lambda t: any(
        isinstance(a, (ast.For, ast.While)) for n in t.with_product() for a in t.all[n].around
    ),
    "pipeline in a pipeline": lambda t: any(
        t.all[n].stmt in p.around for n in t.pipelines for p in (t.all[m] for m in t.pipelines)
    ),
    "load in a loop of a step": _loaded_in_a_loop,
    "tile loaded before and in a pipeline": _loaded_before,
    "elements in a pipeline": lambda t: (
        staged.stored_by_steps(t) or any(_is_by_elements(t, p) for n in t.with_product() for p in t.inside(n))
    ),
    "operand read before": _operand(1, _is_read_before),
    "operand read after": _operand(1, _is_read_after),
    "operand read after no step": _operand(1, _is_read_after_none),
    "operand loaded twice": _operand(2, lambda t, place, name, load: True),
    "used, then loaded": _used_then_loaded,
    "guarded load": _guarded_load,
    "loaded, then set": _loaded_then_set,
    "cleared, then loaded": _cleared_then_loaded,
    "registers loaded in a pipeline": _loaded_registers,
    "guarded conversion": _guarded_conversion,
    "registers viewed before a pipeline": _viewed,
    "registers before and after a pipeline": _kept_over,
    "reduced in place": _reduced_in_place,
    "reducer of a small tile": _small_reducer,
    "sign of a cast": _signed_by_cast,
    "row variable": _row_variable,
    "registers over a pipeline": _kept_registers,
    "store by thread before a pipeline": _by_thread,
    "atomic of a choice": _atomic_of_a_choice,
    "atomics of a part of a warp": adds_by_few,
    "atomic before a pipeline": lambda t: _calls(t, False, "atomic_"),
    "scan in or after a pipeline": lambda t: _calls(t, True, *SCANS) or _calls_inside(t, *SCANS),
    "reducer in or after a pipeline": lambda t: _calls(t, True, "reducer_", "finalize_reducer")
    or _calls_inside(t, "finalize_reducer"),
    "scan after a product": lambda t: any(
        p.name == "gemm" and any(q.name in SCANS for q in t.all[n:]) for n, p in enumerate(t.all)
    ),
    "product of registers": lambda t: any(
        p.name == "gemm" and t.scopes.get(_base(p.call.args[0])) == "fragment" for p in t.all if p.call
    ),
    "branch changes what it asked": changes_what_it_asked,
    "one condition twice": asks_twice,
    "else in a loop": lambda t: any(
        isinstance(p.stmt, ast.If) and p.stmt.orelse and any(isinstance(a, ast.For) for a in p.around) for p in t.all
    ),
    "while": lambda t: any(isinstance(p.stmt, ast.While) for p in t.all),
    "loop by thread": _loop_by_thread,
    "loop over part of registers": _over_part,
    "tile that threads copy in a pipeline": _copied_by_threads,
    "registers in turn": _in_turn,
    "loop of a block": lambda t: any(map(is_of_block, t.all)),
    "vectorized sum": _vectorized_sum,
    "turning index": lambda t: _modulo(t, lambda n: isinstance(n.left, ast.BinOp)),
    "odd modulus": lambda t: _modulo(t, _odd),
    "element set by all in a loop": _set_by_all,
    "tile that no step reads": staged.unread_by_steps,
    "row of an operand": reads_row_of_operand,
    "view of a tile in a pipeline": staged.viewed,
    "tile in a condition of a step": staged.asked_for,
    "scan of a tile in a pipeline": staged.scanned,
    "tile that nothing reads": staged.never_read,
    "tile used after its pipeline": staged.used_after,
    "pipeline that begins late": staged.begins_late,
    "registers turned": lambda t: any(
        t.scopes.get(name) == "fragment" and any(isinstance(n, ast.BinOp) for n in ast.walk(index))
        for _, name, index in _indices(t)
    ),
}  # fmt: skip
TRAITS = tuple(_TRAITS)


@lru_cache(maxsize=64)
def traits(text: str) -> frozenset[str]:
    """Return the traits of a kernel's source."""
    kernel = KernelTraits(text)
    return frozenset(name for name, has in _TRAITS.items() if has(kernel))
