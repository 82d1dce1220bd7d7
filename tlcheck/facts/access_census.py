"""Find which instructions touch global and shared memory, and which compute on tensor cores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tlcheck.facts.kernel_facts import AccessFacts, Count, InstructionFacts
from tlcheck.facts.memory_sizes import space_of
from tlcheck.facts.product_names import product_name
from tlcheck.facts.trips import Trips
from tlcheck.program.async_copies import copied_bytes
from tlcheck.program.atomics import Pointer, Site, atomics, pointer
from tlcheck.program.release import Release
from tlcheck.program.tma import is_copy, is_reduction
from tlcheck.program.walk import Placed, Program, Scope, expressions
from tlcheck.signatures.bulk_copies import LOADS, tensor_map
from tlcheck.signatures.calls import is_external, name_of_call
from tlcheck.signatures.signature import Collective, CountedAs, Signature
from tlcheck.signatures.table import argument, family_of, signature_of
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Buffer, Expr, Store
from tlcheck.targets.nvidia import WARPGROUP

READ, WRITE, ATOMIC = "read", "write", "atomic"
_ADDRESSES = ("address_of", "access_ptr", "tvm_access_ptr", "region")
_FUNCTIONS = frozenset(
    "exp exp2 exp10 log log2 log10 log1p sqrt rsqrt tanh sin cos tan pow erf sigmoid atan fma".split()
)


@dataclass(frozen=True, slots=True)
class AccessEvent:
    """One access in program order: the place of a synchronization is what comes next."""

    order: int
    operation: str
    buffer: str
    space: str


@dataclass(frozen=True, slots=True)
class Here:
    """A record of where an expression is evaluated: its statement, and the guards within it."""

    placed: Placed
    scope: Scope

    def under(self, condition: Expr, holds: bool) -> Here:
        return Here(self.placed, self.scope.under(condition, holds))


class Census:
    """One walk through a function, and all that it counts."""

    def __init__(self, program: Program, trips: Trips, release: str, warp: int) -> None:
        """warp: threads of one."""
        self._program, self._warp = program, warp
        self._release = Release.of(release)
        self._trips = trips
        self._accesses: dict[tuple[str, str, str, str, int], Count] = defaultdict(lambda: Count(0))
        self._instructions: dict[str, Count] = defaultdict(lambda: Count(0))
        self._sites = {(site.placed.order, site.call): site for site in atomics(program).sites}
        self._plain: set[Expr] = set()  # expressions that hold nothing to count
        self.events: list[AccessEvent] = []
        self.functions: set[str] = set()
        for placed in program.statements:
            here = Here(placed, placed.scope)
            for expr in expressions(placed.stmt):
                self._visit(expr, here)
            if isinstance(placed.stmt, Store):
                self._plain_access(here, WRITE, placed.stmt.buffer, placed.stmt.indices)

    def accesses(self) -> tuple[AccessFacts, ...]:
        return tuple(AccessFacts(*key, count) for key, count in sorted(self._accesses.items()))

    def instructions(self) -> tuple[InstructionFacts, ...]:
        return tuple(InstructionFacts(name, count) for name, count in sorted(self._instructions.items()))

    def _visit(self, e: Expr, here: Here) -> bool:
        """Count what is in `e`; whether that is anything."""
        if e in self._plain:
            return False
        found = self._count(e, here)
        guarded = e.op == "call" and e.value == "if_then_else" and len(e.args) == 3
        parts = _atomic_parts(e) if (here.placed.order, e) in self._sites else _parts(e)
        for position, arg in enumerate(parts):
            inside = here.under(e.args[0], position == 1) if guarded and position else here
            found = self._visit(arg, inside) or found
        if not found:
            self._plain.add(e)
        return found

    def _count(self, e: Expr, here: Here) -> bool:
        """Count `e` itself; whether it is something that counts."""
        if e.op == "load" and e.buffer is not None:
            return self._plain_access(here, READ, e.buffer, e.args)
        if e.op != "call":
            return False
        site = self._sites.get((here.placed.order, e))
        if site is not None:
            return self._atomic(site, Here(here.placed, site.scope))
        if is_copy(e) or is_reduction(e):
            return self._bulk(e, here)
        name = str(e.value)
        signature, family = signature_of(e), family_of(e)
        known = _COUNTED[family.counted] if family is not None and family.counted is not None else None
        if known is not None and signature is not None and signature.touches_memory:
            known(self, e, here, signature)
            return True
        return self._function(e, name)

    def _plain_access(self, here: Here, operation: str, buffer: Buffer, indices: Sequence[Expr]) -> bool:
        elements, times = _width(indices, buffer.dtype)
        base = dtype_of(buffer.dtype).name
        instruction = base if elements == 1 else f"{base}x{elements}"
        root = self._program.roots.of(buffer.data)
        return self._access(here, operation, root, buffer.scope, instruction, elements, times)

    def _atomic(self, site: Site, here: Here) -> bool:
        target = site.target
        source = site.value
        if isinstance(source, Pointer) and space_of(source.buffer.scope) == "shared":
            instruction = source.dtype if site.width == 1 else f"{source.dtype}x{site.width}"
            self._access(here, READ, source.root, source.buffer.scope, instruction, site.width)
        name = "TMA reduction" if site.tma else f"Atomic{site.operation.capitalize()}"
        name += f"x{site.width}" if site.width > 1 and not site.tma else ""
        name += f" (memory order {site.order})" if site.order else ""
        scope = self._declared(target.root, target.buffer.scope)
        return self._access(here, ATOMIC, target.root, scope, name, 0 if site.tma else site.width)

    def _bulk(self, e: Expr, here: Here) -> bool:
        """A TMA instruction, counted at the tensor in global memory."""
        operation = READ if e.value in LOADS else ATOMIC if is_reduction(e) else WRITE
        name = "TMA reduction" if operation == ATOMIC else "TMA"
        for arg in e.args[:2]:
            root = self._tensor(arg)
            if root:
                return self._access(here, operation, root, "global", name, 0)
        return self._access(here, operation, "?", "global", name, 0)

    def _tensor(self, arg: Expr) -> str:
        """The global tensor that an argument of a bulk copy names, empty if it names none."""
        if arg.op == "var" and str(arg.value).endswith("_desc"):
            return str(arg.value).removesuffix("_desc")
        if (made := tensor_map(arg)) is not None and not made.pixels:
            return self._program.roots.of(made.tensor)
        target = pointer(self._program, arg)
        if target is None or self._declared(target.root, target.buffer.scope) not in ("", "global"):
            return ""
        return target.root

    def _async_copy(self, e: Expr, here: Here, signature: Signature) -> None:
        """The source is a pointer variable with an offset, in old releases, or an address."""
        named = argument(e, signature.reads[0])
        source = None if named.op == "var" else pointer(self._program, named)
        root = self._program.roots.of(named) if named.op == "var" else source.root if source is not None else "?"
        bits = dtype_of(source.dtype).bits if source is not None else 8
        size = copied_bytes(e, bits, self._release)
        self._access(here, READ, root, "global", f"async copy of {'?' if size is None else size} bytes", 0)

    def _matrix(self, e: Expr, here: Here, signature: Signature) -> None:
        """ldmatrix and stmatrix: a warp moves so many 8 x 8 matrices."""
        operation, name = (READ, "ldmatrix") if signature.reads else (WRITE, "stmatrix")
        places = [pointer(self._program, argument(e, a)) for a in (*signature.reads, *signature.writes)]
        target = next((p for p in places if p is not None and self._is_shared(p)), None)
        number = next((a.value for a in e.args if a.op == "int" and a.dtype != "bool" and a.value), 1)
        root = target.root if target is not None else "?"
        self._access(here, operation, root, "shared", f"{name} x{number}", 0, group=self._warp)

    def _product(self, e: Expr, here: Here, signature: Signature) -> None:
        """A warp or a warpgroup multiplies, or the thread that a warp elects for it."""
        group = WARPGROUP if signature.collective is Collective.WARPGROUP else self._warp
        self._instructions[product_name(e)] += _grouped(self._trips.count(here.scope), group)

    def _template(self, e: Expr, here: Here, signature: Signature) -> None:
        """A gemm that the release's CUDA templates make: its name has the shape."""
        name = next((str(a.value) for a in e.args if a.op == "str"), "gemm")
        self._instructions[name] += self._trips.count(here.scope, threads=False)

    def _function(self, e: Expr, name: str) -> bool:
        if is_external(e):
            name = name_of_call(e)
            if "gemm" in name:
                return False
        elif name not in _FUNCTIONS:
            return False
        if dtype_of(e.dtype).kind == "float":
            self.functions.add(name.partition("<")[0])
        return False

    def _access(
        self,
        here: Here,
        operation: str,
        root: str,
        scope: str,
        instruction: str,
        elements: int,
        times: int = 1,
        group: int = 1,
    ) -> bool:
        space = space_of(scope)
        if space not in ("global", "shared"):
            return False
        count = _grouped(self._trips.count(here.scope), group)
        for _ in range(times):
            self._accesses[root, space, operation, instruction, elements] += count
        self.events.append(AccessEvent(here.placed.order, operation, root, space))
        return True

    def _declared(self, root: str, scope: str) -> str:
        """The scope of a buffer; a flat view of a pointer does not say."""
        known = self._program.buffers.get(root)
        return scope or (known.scope if known is not None else "")

    def _is_shared(self, target: Pointer) -> bool:
        return space_of(self._declared(target.root, target.buffer.scope)) == "shared"


_COUNTED: Mapping[CountedAs, Callable[[Census, Expr, Here, Signature], None]] = {
    CountedAs.COPY: Census._async_copy,
    CountedAs.MATRICES: Census._matrix,
    CountedAs.PRODUCT: Census._product,
    CountedAs.NAMED_PRODUCT: Census._product,
    CountedAs.TENSOR_PRODUCT: Census._product,
    CountedAs.LIBRARY_PRODUCT: Census._template,
}


def _parts(e: Expr) -> tuple[Expr, ...]:
    """The arguments that are evaluated as values: of an address only its indices."""
    if e.op == "call" and e.value in _ADDRESSES and e.args and e.args[0].op == "load":
        return (*e.args[0].args, *e.args[1:])
    return e.args


def _atomic_parts(e: Expr) -> tuple[Expr, ...]:
    """Do as `_parts`; up to 0.1.8 the destination may stand there as a load, under a tail's predicate."""
    args = e.args[1:] if e.args[0].op == "str" else e.args
    target = args[0]
    while target.op == "call" and target.value == "if_then_else":
        target = target.args[1]
    return (*(target.args if target.op == "load" else args[:1]), *args[1:])


def _width(indices: Sequence[Expr], dtype: str) -> tuple[int, int]:
    """Elements that one instruction moves, and number of instructions: neighbours are moved by one."""
    own = dtype_of(dtype).lanes
    if not indices or indices[-1].op not in ("ramp", "broadcast"):
        return own, 1
    number = int(indices[-1].value or 1)
    if indices[-1].op == "broadcast":
        return own, 1
    stride = indices[-1].args[1]
    return (own * number, 1) if stride.op == "int" and stride.value == 1 else (own, number)


def _grouped(count: Count, threads: int) -> Count:
    return Count(-(-count.number // threads), count.text) if threads > 1 else count
