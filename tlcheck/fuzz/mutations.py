"""Mutations of a kernel's source: boundary sizes, dtypes, threads, loops, guards, slices, siblings, configurations.

A mutation changes a module's tree in place and says what it did; None where the kernel has no place for it. Whether the
mutant is well defined is for the rules about sources to say.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from tlcheck.fuzz.chance import Chance, boundary
from tlcheck.fuzz.constructs import SCANS
from tlcheck.fuzz.switches import SWITCHES

Mutation = Callable[[ast.Module, Chance], "str | None"]
_DTYPES = ("float32", "float16", "bfloat16", "int32", "int8", "uint8", "int64", "int16")
_SIBLINGS: tuple[tuple[str, ...], ...] = (
    ("reduce_sum", "reduce_max", "reduce_min", "reduce_absmax"),
    ("atomic_add", "atomic_max", "atomic_min"),
    ("max", "min"),
    ("serial", "unroll", "Pipelined"),
    ("alloc_shared", "alloc_fragment"),
    SCANS,
    ("exp", "exp2"),
    ("clear", "clear"),
)
_POLICIES = ("FullRow", "FullCol", "Square")


def mutated(text: str, chance: Chance, count: int) -> tuple[str, tuple[str, ...]]:
    """Return a text with up to so many mutations, and what they are."""
    tree = ast.parse(text)
    words: list[str] = []
    for _ in range(4 * count):
        name = chance.production({f"mutation {each}": 1.0 for each in MUTATIONS}).removeprefix("mutation ")
        done = MUTATIONS[name](tree, chance)
        if done is not None:
            words.append(done)
        if len(words) == count:
            break
    ast.fix_missing_locations(tree)
    return ast.unparse(tree) + "\n", tuple(words)


def _calls(tree: ast.AST, *names: str) -> list[ast.Call]:
    """The calls of `T.name`, of any where none is named."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return [c for c in found if isinstance(c.func, ast.Attribute) and (not names or c.func.attr in names)]


def size(tree: ast.Module, chance: Chance) -> str | None:
    """Another size about the old one, wherever the number stands, or in one place."""
    numbers = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is int and n.value > 1]
    if not numbers:
        return None
    chosen = chance.among(numbers)
    old = chosen.value
    assert isinstance(old, int)
    new = boundary(chance, old)
    for each in numbers if chance.of(0.7) else [chosen]:
        if each.value == old:
            each.value = new
    return f"{old} is {new}" if old != new else None


def dtype(tree: ast.Module, chance: Chance) -> str | None:
    """Another dtype, wherever the name stands, or in one place."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value in _DTYPES]
    if not found:
        return None
    chosen, new = chance.among(found), chance.among(_DTYPES)
    old = str(chosen.value)
    for each in found if chance.of(0.6) else [chosen]:
        if each.value == old:
            each.value = new
    return f"{old} is {new}" if old != new else None


def threads(tree: ast.Module, chance: Chance) -> str | None:
    """Another number of threads."""
    return _keyword(tree, "Kernel", "threads", chance.among((32, 64, 96, 128, 160, 256, 384)))


def stages(tree: ast.Module, chance: Chance) -> str | None:
    """Another number of stages of a pipeline."""
    return _keyword(tree, "Pipelined", "num_stages", chance.number(0, 4))


def policy(tree: ast.Module, chance: Chance) -> str | None:
    """Another policy by which warps share a product."""
    calls = _calls(tree, "gemm")
    if not calls:
        return None
    call, name = chance.among(calls), chance.among(_POLICIES)
    call.keywords = [k for k in call.keywords if k.arg != "policy"]
    call.keywords.append(ast.keyword("policy", ast.parse(f"T.GemmWarpPolicy.{name}", mode="eval").body))
    return f"policy {name}"


def _keyword(tree: ast.Module, function: str, name: str, value: int) -> str | None:
    calls = _calls(tree, function)
    if not calls:
        return None
    for call in calls:
        call.keywords = [k for k in call.keywords if k.arg != name]
        call.keywords.append(ast.keyword(name, ast.Constant(value)))
    return f"{name}={value}"


def bounds(tree: ast.Module, chance: Chance) -> str | None:
    """A loop that begins later, or leaves steps out, or begins at a block's or thread's number."""
    calls = [c for c in _calls(tree, "serial", "unroll", "Pipelined") if 1 <= len(c.args) <= 2]
    if not calls:
        return None
    call = chance.among(calls)
    end = call.args[-1]
    begin = chance.among(("0", "1", "2", *_variables(tree)))
    step = chance.among((None, 2, 3)) if _name(call) != "Pipelined" else None
    call.args = [ast.parse(begin, mode="eval").body, end]
    call.args += [ast.Constant(step)] if step is not None else []
    return f"loop from {begin}" + (f" by {step}" if step else "")


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _variables(tree: ast.Module) -> list[str]:
    """The names of blocks and of threads."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            targets = [t for t in ast.walk(node.items[0]) if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)]
            found += [t.id for t in targets if t.id != "_"]
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            is_thread = _name(node.value) == "get_thread_binding"
            found += [t.id for t in node.targets if isinstance(t, ast.Name) and is_thread]
    return found


def _statements(tree: ast.Module) -> list[tuple[list[ast.stmt], int, list[str]]]:
    """Places of statements of a kernel that do something, each with the variables of the loops about it."""
    found: list[tuple[list[ast.stmt], int, list[str]]] = []

    def visit(block: list[ast.stmt], names: list[str]) -> None:
        for place, stmt in enumerate(block):
            if isinstance(stmt, ast.For):
                own = [t.id for t in ast.walk(stmt.target) if isinstance(t, ast.Name)]
                found.append((block, place, names))
                visit(stmt.body, names + own)
            elif isinstance(stmt, (ast.If, ast.While)):
                visit(stmt.body, names)
                visit(stmt.orelse, names)
            elif isinstance(stmt, (ast.Expr, ast.AugAssign)) or (
                isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Subscript)
            ):
                found.append((block, place, names))

    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            visit(node.body, _variables(tree))
    return found


def guard(tree: ast.Module, chance: Chance) -> str | None:
    """A statement that only some steps, blocks or threads execute."""
    found = [each for each in _statements(tree) if each[2]]
    if not found:
        return None
    block, place, names = chance.among(found)
    name = chance.among(names)
    test = chance.among((f"{name} < {chance.among((1, 2, 7, 31, 32, 33, 100))}", f"{name} % 2 == 0", f"{name} > 0"))
    block[place] = ast.If(ast.parse(test, mode="eval").body, [block[place]], [])
    return f"if {test}"


def unguard(tree: ast.Module, chance: Chance) -> str | None:
    """A condition that always holds."""
    found = [
        (block, place)
        for node in ast.walk(tree)
        if isinstance(block := getattr(node, "body", None), list)
        for place, stmt in enumerate(block)
        if isinstance(stmt, ast.If)
    ]
    if not found:
        return None
    block, place = chance.among(found)
    stmt = block[place]
    block[place : place + 1] = stmt.body
    return f"without if {ast.unparse(stmt.test)}"


def loop(tree: ast.Module, chance: Chance) -> str | None:
    """A statement that is repeated in a loop of its own."""
    found = _statements(tree)
    if not found:
        return None
    block, place, _ = chance.among(found)
    kind, count = chance.among(("serial", "unroll", "serial")), chance.number(1, 3)
    head = ast.parse(f"for z in T.{kind}({count}):\n    pass").body[0]
    assert isinstance(head, ast.For)
    head.body = [block[place]]
    block[place] = head
    return f"{kind} loop of {count}"


def twice(tree: ast.Module, chance: Chance) -> str | None:
    """A statement that is there once more, at once or later."""
    found = _statements(tree)
    if not found:
        return None
    block, place, _ = chance.among(found)
    again = ast.parse(ast.unparse(block[place])).body[0]
    block.insert(chance.number(place + 1, len(block)), again)
    return f"again: {ast.unparse(again).splitlines()[0]}"


def exchange(tree: ast.Module, chance: Chance) -> str | None:
    """Two statements, one after the other, in the other order."""
    found = [each for each in _statements(tree) if each[1] + 1 < len(each[0])]
    if not found:
        return None
    block, place, _ = chance.among(found)
    block[place], block[place + 1] = block[place + 1], block[place]
    return f"exchanged: {ast.unparse(block[place]).splitlines()[0]}"


def _allocated(tree: ast.Module) -> Mapping[str, tuple[str, str]]:
    """Buffers -> how they are allocated, and the text of shape and dtype."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            name = _name(node.value)
            if name in ("alloc_shared", "alloc_fragment"):
                found[node.targets[0].id] = name, ", ".join(ast.unparse(a) for a in node.value.args)
    return found


def reuse(tree: ast.Module, chance: Chance) -> str | None:
    """One buffer where there were two of a shape and a dtype."""
    known = _allocated(tree)
    pairs = [(a, b) for a in known for b in known if a < b and known[a] == known[b]]
    if not pairs:
        return None
    kept, gone = chance.among(pairs)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == gone:
            node.id = kept
    return f"{gone} is {kept}"


def part(tree: ast.Module, chance: Chance) -> str | None:
    """A fill, clear or scan of a part of a buffer."""
    known = _allocated(tree)
    calls = [c for c in _calls(tree, "fill", "clear", *SCANS) if c.args and _plain(c.args[0], known)]
    if not calls:
        return None
    call = chance.among(calls)
    name = ast.unparse(call.args[0])
    sizes = _sizes(known[name][1])
    if not sizes:
        return None
    cut = [sorted(chance.some(range(s + 1), 2)) if s > 1 and chance.of(0.6) else [0, s] for s in sizes]
    text = f"{name}[{', '.join(f'{low}:{high}' for low, high in cut)}]"
    call.args = [ast.parse(text, mode="eval").body, *call.args[1:]]
    return f"{name} is {text}"


def _plain(e: ast.expr, known: Mapping[str, object]) -> bool:
    return isinstance(e, ast.Name) and e.id in known


def _sizes(text: str) -> list[int]:
    """The sizes in the text of an allocation's arguments, none where they are not all numbers."""
    try:
        first = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(first, ast.Call)
        found = ast.literal_eval(first.args[0])
    except (ValueError, SyntaxError, IndexError):
        return []
    return list(found) if isinstance(found, tuple) and all(isinstance(s, int) and s > 0 for s in found) else []


def sibling(tree: ast.Module, chance: Chance) -> str | None:
    """Another operator of the same kind."""
    by_thread = bool(_calls(tree, "get_thread_binding"))  # no thread has all of a fragment
    kept = [names for names in _SIBLINGS if not by_thread or "alloc_fragment" not in names]
    found = [(c, names) for c in _calls(tree) for names in kept if _name(c) in names]
    if not found:
        return None
    call, names = chance.among(found)
    old, new = _name(call), chance.among([n for n in names if n != _name(call)] or names)
    assert isinstance(call.func, ast.Attribute)
    call.func.attr = new
    if old == "Pipelined":
        call.keywords = []
    if new == "Pipelined":
        call.args, call.keywords = call.args[:2], [ast.keyword("num_stages", ast.Constant(chance.number(1, 3)))]
    return f"{new} for {old}"


def arithmetic(tree: ast.Module, chance: Chance) -> str | None:
    """Another operator of arithmetic, in a value or in an index."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Add, ast.Sub, ast.Mult))]
    if not found:
        return None
    node = chance.among(found)
    node.op = chance.among((ast.Add(), ast.Sub(), ast.Mult()))
    return f"now {ast.unparse(node)}"


def configuration(tree: ast.Module, chance: Chance) -> str | None:
    """A pass configuration of the kernel."""
    name = chance.among(SWITCHES)
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for place, decorator in enumerate(node.decorator_list):
            if ast.unparse(decorator).startswith("tilelang.jit"):
                call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
                call.keywords = [k for k in call.keywords if k.arg != "pass_configs"]
                call.keywords.append(ast.keyword("pass_configs", ast.parse(f"{{{name!r}: True}}", mode="eval").body))
                node.decorator_list[place] = call
                return name
    return None


def transposed(tree: ast.Module, chance: Chance) -> str | None:
    """A reduction or scan along another dimension, or in the other direction."""
    calls = _calls(tree, *SCANS, *_SIBLINGS[0])
    if not calls:
        return None
    call = chance.among(calls)
    name, value = ("dim", chance.number(0, 1)) if chance.of(0.6) else ("reverse", True)
    name, value = ("clear", False) if name == "reverse" and _name(call).startswith("reduce") else (name, value)
    call.keywords = [k for k in call.keywords if k.arg != name]
    call.args = call.args[:2]
    call.keywords.append(ast.keyword(name, ast.Constant(value)))
    return f"{_name(call)} {name}={value}"


MUTATIONS: Mapping[str, Mutation] = {
    "size": size, "dtype": dtype, "threads": threads, "stages": stages, "policy": policy, "bounds": bounds,
    "guard": guard, "unguard": unguard, "loop": loop, "twice": twice, "exchange": exchange, "reuse": reuse,
    "part": part, "sibling": sibling, "arithmetic": arithmetic, "configuration": configuration,
    "transposed": transposed,
}  # fmt: skip
