"""Values and indices of composed kernels. An index stays within its dimension, whatever is drawn."""

from __future__ import annotations

from tlcheck.fuzz.writer import DrawnBuffer, KernelText

_OF_FLOATS = {
    "add": 4, "subtract": 2, "multiply": 2, "max": 1, "min": 1, "select": 2, "abs": 1, "constant": 1, "cast": 1.2,
    "two tensors": 0.6,
}  # fmt: skip
_OF_INTEGERS = _OF_FLOATS | {"bits": 1, "shift": 1, "quotient": 1, "remainder": 1}
_CAST = ("uint8", "int8", "int16", "uint8", "int8", "float16", "int32", "float32")  # the first ones into any
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*"}


def index(w: KernelText, name: str, extent: int, size: int, scope: str) -> str:
    """Return an index of a dimension of `size`, made of a variable below `extent`.

    Registers are read at the variable's own place: another thread may have any other.
    """
    if scope == "fragment":
        return name if extent <= size else f"{name} % {size}"
    maps = {"same": 6.0, "reversed": 1.0, "rotated": 1.0, "halved": 0.5, "wrapped": 0.5, "swapped": 0.3, "shifted": 1.0}
    match w.chance.production({f"index {key}": wanted for key, wanted in maps.items()}).removeprefix("index "):
        case "reversed" if extent <= size:
            return f"{size - 1} - {name}"
        case "rotated":
            return f"({name} + {w.chance.among((1, 2, 4, 8, 32))}) % {size}"
        case "halved" if extent <= size:
            return f"{name} // 2"
        case "wrapped":
            return f"{name} % {min(size, w.chance.among((3, 4, 7, 8, 16)))}"
        case "swapped" if extent <= size and size % 2 == 0:
            return f"{name} ^ 1"
        case "shifted" if extent < size:
            return f"{name} + {w.chance.among((1, size - extent))}"
    return name if extent <= size else f"{name} % {size}"


def place(w: KernelText, buffer: DrawnBuffer, extents: dict[str, int]) -> str:
    """Return an element of a buffer, its last dimensions indexed by these variables, others by what is in reach."""
    names = list(extents)[-len(buffer.shape) :]
    lead = len(buffer.shape) - len(names)
    parts = [free(w, size) for size in buffer.shape[:lead]]
    parts += [index(w, n, extents[n], s, buffer.scope) for n, s in zip(names, buffer.shape[lead:], strict=True)]
    if buffer.scope == "fragment" and len(buffer.shape) == 1 and len(extents) == 2:
        first = next(iter(extents))  # a value for each row
        parts = [first] if extents[first] <= buffer.shape[0] else parts
    return f"{buffer.name}[{', '.join(parts)}]"


def free(w: KernelText, size: int) -> str:
    """Return an index below a size, of a variable in reach or a constant."""
    fitting = [name for name, bound in w.indices.items() if bound <= size]
    if fitting and w.chance.of(0.8):
        return w.chance.among(fitting)
    larger = [name for name in w.indices if name not in ("tx",)]
    if larger and size > 1 and w.chance.of(0.3):
        return f"({w.chance.among(larger)} + {w.chance.number(0, 2)}) % {size}"
    return str(w.chance.number(0, size - 1))


def value(w: KernelText, dtype: str, extents: dict[str, int], depth: int = 2) -> str:
    """Return an expression of a dtype, of buffers in reach at these variables."""
    if not depth or w.chance.of(0.25):
        return leaf(w, dtype, extents)
    is_float = dtype.startswith(("float", "bfloat"))
    kinds = _OF_FLOATS if is_float else _OF_INTEGERS
    chosen = w.chance.production({f"value {k}": float(n) for k, n in kinds.items()}).removeprefix("value ")
    first = value(w, dtype, extents, depth - 1)
    return _combined(w, chosen, first, dtype, extents, depth)


def _combined(w: KernelText, chosen: str, first: str, dtype: str, extents: dict[str, int], depth: int) -> str:
    def second() -> str:
        return value(w, dtype, extents, depth - 1)

    match chosen:
        case "add" | "subtract" | "multiply":
            return f"({first} {_SIGNS[chosen]} {second()})"
        case "max" | "min":
            return f"T.{chosen}({first}, {second()})"
        case "select":
            return f"T.if_then_else({condition(w, extents)}, {first}, {second()})"
        case "cast":
            narrow = w.chance.among(_CAST if dtype in ("int32", "int64", "float32") else _CAST[:2])
            computed = f"{value(w, narrow, extents, depth - 1)} {w.chance.among('+-')} {leaf(w, narrow, extents)}"
            return f'T.cast({computed}, "{dtype}")'
        case "two tensors" if extents and max(extents.values()) > 1:
            return two_tensors(w, dtype, extents)
        case "abs" if dtype not in ("uint8",):
            return f"T.abs({first})"
        case "bits":
            return f"({first} {w.chance.among('&|^')} {second()})"
        case "shift":
            return f"({first} {w.chance.among(('<<', '>>'))} {constant(w, dtype, w.chance.number(1, 3))})"
        case "quotient" | "remainder":
            operator = "//" if chosen == "quotient" else "%"
            return f"({first} {operator} {constant(w, dtype, w.chance.among((2, 3, 4, 5, 7)))})"
    return f"({first} + {constant(w, dtype, w.chance.number(-3, 5))})"


def leaf(w: KernelText, dtype: str, extents: dict[str, int]) -> str:
    """Return an element, an index or a constant, cast where its dtype is another one."""
    readable = [b for b in w.buffers if b.scope != "local" and _fits(b, extents)]
    if extents and w.chance.of(0.12):
        return direct(w, dtype, extents)
    if readable and w.chance.of(0.85):
        chosen = w.chance.among(readable)
        text = place(w, chosen, extents)
        return text if chosen.dtype == dtype else f'T.cast({text}, "{dtype}")'
    if extents and w.chance.of(0.5):
        return f'T.cast({w.chance.among(list(extents))}, "{dtype}")'
    return constant(w, dtype, w.chance.number(-3, 5))


def direct(w: KernelText, dtype: str, extents: dict[str, int]) -> str:
    """Return an element of a new tensor, read without a tile between: of the loop's sizes, or of smaller ones."""
    count = w.chance.number(1, len(extents))
    sizes = [w.chance.among((extents[n], extents[n], extents[n], 4, 7, 16)) for n in list(extents)[-count:]]
    return place(w, w.tensor(tuple(sizes), dtype), extents)


def two_tensors(w: KernelText, dtype: str, extents: dict[str, int]) -> str:
    """Return an element of one tensor, or of another one beyond its end."""
    name = w.chance.among([n for n in extents if extents[n] > 1])
    first = w.chance.among((extents[name] // 2, w.chance.number(1, extents[name] - 1)))
    last = extents[name] - first
    one, other = w.tensor((first,), dtype), w.tensor((last,), dtype)
    beyond = w.chance.among((f"{name} - {first}", f"{extents[name] - 1} - {name}"))
    return f"T.if_then_else({name} < {first}, {one.name}[{name}], {other.name}[{beyond}])"


def _fits(b: DrawnBuffer, extents: dict[str, int]) -> bool:
    """Whether a fragment's elements can be read by a loop of these extents in the thread that has each."""
    if b.scope != "fragment":
        return True
    sizes = tuple(extents.values())
    return sizes == b.shape or (len(b.shape) == 1 and len(sizes) == 2 and sizes[0] == b.shape[0])


def constant(w: KernelText, dtype: str, number: int) -> str:
    number = abs(number) if dtype == "uint8" else number
    return f'T.cast({number}, "{dtype}")'


def condition(w: KernelText, extents: dict[str, int]) -> str:
    """Return a condition on variables in reach, or on an element of integers."""
    names = {**w.indices, **extents}
    integers = [b for b in w.buffers if not b.is_float and b.scope in ("global", "shared")]
    if not names or (integers and w.chance.of(0.2)):
        if integers:
            return f"{place(w, w.chance.among(integers), extents)} > {w.chance.number(-2, 2)}"
        return "bx == 0"
    name = w.chance.among(list(names))
    bound = names[name]
    limits = [f"{name} < {w.chance.number(1, max(1, bound))}", f"{name} % 2 == {w.chance.number(0, 1)}"]
    limits += [f"{name} > {w.chance.number(0, bound)}", f"{name} != {w.chance.number(0, bound)}"]
    others = [other for other in names if other != name]
    limits += [f"{name} <= {w.chance.among(others)}"] if others else []
    return w.chance.among(limits)
