"""Read how one level of a kernel uses the numbers of its blocks, as columns: a value for each block of the grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from tlcheck.algebra.algebra import Algebra, Content
from tlcheck.algebra.evaluate import Evaluator
from tlcheck.algebra.polynomial import Monomial, Poly, add
from tlcheck.execute.compile.extents import Intervals, bind, interval, where
from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.memory.values import Array, lanes_of
from tlcheck.execute.schedule.launches import threads_of
from tlcheck.execute.stops import NotModelled
from tlcheck.execute.worlds.blocks import coordinates
from tlcheck.program.dependent_launch import KERNELS
from tlcheck.program.roles import is_address
from tlcheck.scope.patches import Image, Pixels, classes_and_moves, pixels_of_box, pixels_of_rows
from tlcheck.scope.tails import Relation, stay_inside
from tlcheck.scope.widths import WIDEST, octets_of, predicate
from tlcheck.signatures.bulk_copies import FAMILY, TensorMap, is_descriptor, tensor_map
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.control import thread_axis
from tlcheck.signatures.signature import Collective
from tlcheck.signatures.table import family_of, signature_of
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Alloc, Attr, Bind, Buffer, Expr, For, Function, If, Stmt, Store, Thread, Unknown
from tlcheck.snapshot.operators import OPPOSITE, ORDER, named
from tlcheck.snapshot.walk import children, expressions, postorder

_COMPARED = named("comparison")
_PATCHES = ("im2col", "c2d_im2col")
_ACROSS = (Collective.CLUSTER, Collective.GRID)
_UNDECIDED = 2
_EXACT = frozenset(("var", "//", "%", "min", "max", "wrap", "mul", *named("division")))


@dataclass(frozen=True, slots=True, eq=False)
class BlockColumn:
    """A number of each block. what: it is, in words."""

    numbers: Array
    what: str
    line: int


class Level:
    """The use that a kernel at one level makes of the numbers of its blocks.

    moves: of each access to a tensor, by how many bits it is moved in each block.
    """

    def __init__(
        self,
        function: Function,
        sizes: Mapping[str, int],
        extents: tuple[int, int, int],
        bits: Mapping[str, int],
        tensors: Set[str],
    ) -> None:
        """bits: of each tensor that is compact, by the name of its pointer. tensors: these names, at both levels."""
        self.columns: list[BlockColumn] = []
        self.moves: list[tuple[str, int, Array]] = []
        self._sizes, self._bits, self._count = sizes, bits, prod(extents)
        self._blocks = coordinates(np.arange(self._count), extents)
        self._threads = threads_of(function)
        self._descriptors = {var.uid: call for var, call in function.descriptors}
        self._tensors = {b.data.uid: b for b in function.buffers}
        self._names = tensors
        self._known: Intervals = {}
        shapes = [e for b in function.buffers for e in (*b.shape, *b.strides)]
        named = [e for e in postorder([*function.params, *shapes]) if e.op == "var" and str(e.value) in sizes]
        self._given: Intervals = {e.uid: (sizes[str(e.value)],) * 2 for e in named}
        self._line = 0
        self._uids: set[int] = set()  # variables of the block
        self._depending: set[int] = set()  # those and the ones that are bound to what depends on them
        self._environment: dict[int, Any] = {}
        self._conditions: list[Relation] = []  # that hold where the walk is
        self._read = 0
        self._algebra = Algebra(self._content)
        self._walk(function.body)

    def _content(self, load: Expr) -> Content:
        """A number in memory: of each load its own, wherever it lies."""
        self._read += 1
        return Content(f"{load.buffer.name if load.buffer else '?'}#{self._read}", {}, {}, None)

    # ---- statements

    def _walk(self, stmt: Stmt) -> None:
        self._line = stmt.line or self._line
        if isinstance(stmt, Unknown):
            raise NotModelled(stmt.what)
        if isinstance(stmt, Alloc) and stmt.buffer.scope == "global":
            raise NotModelled(f"{stmt.buffer.name}, which blocks share")
        self._bind(stmt)
        if isinstance(stmt, Store):
            self._access(stmt.buffer, stmt.indices, [1] * len(stmt.indices))
            for e in (stmt.value, *filter(None, (stmt.predicate,))):
                self._visit(e)
        elif not isinstance(stmt, (Bind, Thread)):
            for e in (*expressions(stmt), *(stmt.node if isinstance(stmt, Attr) else ())):
                self._visit(e)
        for _, e in stmt.computed if isinstance(stmt, For) else ():
            self._visit(e)
        for place, part in enumerate(children(stmt)):
            with self._where(stmt.condition if isinstance(stmt, If) else None, holds=not place):
                self._walk(part)

    def _bind(self, stmt: Stmt) -> None:
        """Note what a statement says of a variable."""
        if isinstance(stmt, Thread) and stmt.tag.startswith("blockIdx."):
            at, uid = self._blocks["xyz".index(stmt.tag[-1])], stmt.var.uid
            self._known[uid], self._environment[uid] = (at, at), at
            self._algebra.ranges[uid] = 0, int(at.max())
            self._uids.add(uid)
            self._depending.add(uid)
            return
        if isinstance(stmt, Bind):
            self._let(stmt.var, stmt.value)
        elif isinstance(stmt, (For, Thread)):
            self._depending.discard(stmt.var.uid)
            self._algebra.values.pop(stmt.var.uid, None)
            bind(stmt, self._sizes, self._known)
        if isinstance(stmt, (Bind, For, Thread)):
            again = frozenset((stmt.var.uid,))
            self._conditions = [c for c in self._conditions if not again & self._algebra.variables(c.first, c.second)]
            self._note_range(stmt.var.uid)
            self._algebra.forget()  # unrolled and copied statements bind one variable again, to something else

    def _let(self, var: Expr, value: Expr) -> None:
        if var.dtype == "handle":
            named = [e for e in postorder([value]) if e.buffer or e.uid in self._tensors or e.value in self._bits]
            if named or self._depends(value):
                raise NotModelled(f"the pointer {var.value}")
            return
        if (axis := thread_axis(value)) is not None:
            self._known[var.uid] = 0, self._threads[axis] - 1
            return
        self._known[var.uid] = interval(value, self._sizes, self._known)
        if self._depends(value) and _is_number(value):
            self._algebra.values[var.uid] = self._algebra.poly(value)  # at once: what it names may be bound again
            self._depending.add(var.uid)
            self._loads(value)
        else:
            self._visit(value)
            self._algebra.values.pop(var.uid, None)
            self._depending.discard(var.uid)

    def _note_range(self, uid: int) -> None:
        at = self._known.get(uid)
        self._algebra.ranges.pop(uid, None)
        if at is not None:
            self._algebra.ranges[uid] = int(np.min(at[0])), int(np.max(at[1]))

    @contextmanager
    def _where(self, condition: Expr | None, *, holds: bool = True) -> Iterator[None]:
        """Follow what runs while a condition holds, or does not."""
        before = dict(self._known)
        if condition is not None and not holds:
            condition = replace(condition, op=OPPOSITE[condition.op]) if condition.op in ORDER else None
        around = self._conditions
        if condition is not None:
            self._conditions = [*around, *self._compared(condition)]
            self._known.update(where(condition, self._sizes, self._known))
        yield
        if condition is not None:
            self._conditions = around
            self._known.clear()
            self._known.update(before)

    # ---- expressions

    def _depends(self, e: Expr) -> bool:
        """Whether an expression depends on the block, but for what it reads."""
        left = [e]
        while left:
            e = left.pop()
            if e.op == "var" and e.uid in self._depending:
                return True
            if e.op != "load":
                left.extend(e.args)
        return False

    def _visit(self, e: Expr) -> None:
        """Add the columns of an expression."""
        name = str(e.value) if e.op == "call" else ""
        if e.op in ("unknown", "let") or _meets(e):
            raise NotModelled(name or e.op)
        for _, computed in e.computed:
            self._visit(computed)
        if e.op == "load" and e.buffer is not None:
            self._access(e.buffer, e.args, [1] * len(e.args))
        elif e.op in _COMPARED and all(map(_is_number, e.args)):
            self._condition(e)
            for a in e.args:
                self._loads(a)
        elif name == "if_then_else":
            self._visit(e.args[0])
            for a, holds in zip(e.args[1:], (True, False), strict=True):
                with self._where(e.args[0], holds=holds):
                    self._visit(a)
        elif _is_number(e) and e.op != "call" and self._depends(e):
            self._number(e, "a number")
            self._loads(e)
        elif e.op == "call":
            self._call(e)
        else:
            for a in e.args:
                self._visit(a)

    def _loads(self, e: Expr) -> None:
        """Add the columns of what an expression reads."""
        if e.op in ("load", "call", "unknown", "let"):
            self._visit(e)
            return
        for a in e.args:
            self._loads(a)

    def _number(self, e: Expr, what: str) -> None:
        """Add what a number has of the block."""
        for numbers in self._parts(self._algebra.poly(e)).values():
            self._add(numbers, what)

    def _parts(self, p: Poly) -> dict[Monomial, Array]:
        """The block's parts of a polynomial, by what multiplies them; the block's number where they do not separate."""
        found = self._algebra.factor(p, frozenset(self._uids))
        if found is None or not all(map(self._is_exact, found[1].values())):
            return {(-1,): np.arange(self._count)}
        evaluator = Evaluator(self._algebra, self._environment)
        return {m: np.broadcast_to(np.asarray(evaluator(part)), (self._count,)) for m, part in found[1].items()}

    def _is_exact(self, p: Poly) -> bool:
        """Whether each part of a polynomial of the block's variables has its own value when it is evaluated."""
        atoms = [self._algebra.atoms[n] for m in p for n in m]
        return all(a.kind in _EXACT and all(map(self._is_exact, a.args)) for a in atoms)

    def _add(self, numbers: Any, what: str) -> None:
        numbers = np.broadcast_to(np.asarray(numbers, np.int64), (self._count,))
        if (numbers != numbers[0]).any():
            self.columns.append(BlockColumn(numbers, what, self._line))

    def _condition(self, e: Expr) -> None:
        """Add what a condition is in each block; where other variables decide, by what number."""
        if not self._depends(e):
            return
        sides = [interval(a, self._sizes, self._known) for a in e.args]
        state = np.full(self._count, _UNDECIDED)
        if sides[0] is not None and sides[1] is not None:
            if e.op in ORDER:
                smaller, larger, gap = ORDER[e.op]
                (low, high), (least, most) = sides[smaller], sides[larger]  # type: ignore[misc]
                state = np.where(np.less_equal(np.add(high, gap), least), 1, state)
                state = np.where(np.less(np.subtract(most, gap), low), 0, state)
            else:
                apart = np.less(sides[0][1], sides[1][0]) | np.less(sides[1][1], sides[0][0])
                state = np.where(apart, int(e.op == "ne"), state)
        self._add(state, "a condition")
        first, second = (self._algebra.poly(a) for a in e.args)
        for numbers in self._parts(add(first, second, -1)).values():
            self._add(np.where(state == _UNDECIDED, numbers, 0), "a condition")

    # ---- accesses

    def _call(self, e: Expr) -> None:
        if family_of(e) is FAMILY and e.args and is_descriptor(e.args[0]):
            self._box(e)
        elif is_address(e):
            self._address(e, None)
        elif name_of_call(e) in _PATCHES:
            self._patches(e)
        else:
            short = signature_of(e) is not None or str(e.value).startswith("atomic")
            with self._where(predicate(e)):
                for a in e.args:
                    if is_address(a) and a.value in ("address_of", "access_ptr"):
                        self._address(a, octets_of(e, a) if short else None)
                    else:
                        self._visit(a)

    def _address(self, e: Expr, octets: int | None) -> None:
        """Add an access from an address on. octets: how much of it; None where that is not known."""
        element = e.args[0]
        if e.value == "tvm_access_ptr":
            tensor = self._tensors.get(e.args[1].uid)
            for a in e.args[2:4]:
                self._loads(a)
                if tensor is None and self._depends(a):
                    self._number(a, "an address")
            if tensor is not None:
                size = Expr("int", "int64", (), prod(self._size(n) for n in tensor.shape))
                flat = replace(tensor, shape=(size,), strides=())
                self._access(flat, [e.args[2]], [e.args[3]])
        elif element.op != "load" or element.buffer is None:
            raise NotModelled(f"the address {e.value}")
        elif e.value == "region":
            self._access(element.buffer, element.args, e.args[2:], 0)  # an operator, of which no instruction is known
        else:
            bits = dtype_of(element.buffer.dtype).bits
            length = None if octets is None else max(1, octets * 8 // bits)
            self._access(element.buffer, element.args, [*[1] * (len(element.args) - 1), length], octets or WIDEST)
            for a in e.args[1:]:
                self._visit(a)

    def _access(
        self,
        buffer: Buffer,
        indices: Sequence[Expr],
        lengths: Sequence[Expr | int | None],
        octets: int = WIDEST,
    ) -> None:
        """Add an access from an element on, so far along each axis; None for nobody knows how far.

        octets: as many bytes as it may have to be aligned to.
        """
        for e in (*indices, *lengths):
            if isinstance(e, Expr):
                self._loads(e)
        whole = self._bits.get(str(buffer.data.value)) if buffer.scope == "global" else None
        flat = whole is not None and len(buffer.shape) == 1  # what an address names: its shape ends with the element
        layout = (*(() if flat else buffer.shape), *buffer.strides, *filter(None, (buffer.elem_offset,)))
        if any(map(self._depends, layout)):
            raise NotModelled(f"the layout of {buffer.name}")
        if buffer.scope != "global":
            for index in indices:
                for e in index.args if index.op == "ramp" else (index,):
                    if self._depends(e):
                        self._number(e, f"an index of {buffer.name}")
            return
        if len(lengths) != len(buffer.shape) or len(indices) != len(buffer.shape):
            raise NotModelled(f"an access to {buffer.name}")
        if str(buffer.data.value) not in self._names:
            raise NotModelled(f"the pointer {buffer.data.value}")
        bits = dtype_of(buffer.dtype).bits
        shape = [whole // bits] if flat and whole is not None else [self._size(e) for e in buffer.shape]
        steps = [self._size(e) for e in buffer.strides] or [prod(shape[n + 1 :]) for n in range(len(shape))]
        moved = np.zeros(self._count, np.int64)
        for index, length, size, step in zip(indices, lengths, shape, steps, strict=True):
            moved = moved + step * self._along(buffer.name, index, length, size)
        one = all(length == 1 for length in lengths) and not any(index.op == "ramp" for index in indices)
        self._move(str(buffer.data.value), moved * bits, 0 if one else min(octets, WIDEST))

    def _move(self, name: str, bits: Array, octets: int = WIDEST) -> None:
        """Add by how much an access is moved. octets: that it may have to be aligned to; 0 for one element's."""
        self.moves.append((name, self._line, bits))
        if octets:
            self._add(bits % (8 * octets), f"the alignment of {name}")

    def _along(self, name: str, index: Expr, length: Expr | int | None, size: int) -> Array:
        """Return by how much an index is moved in each block. Adds a column where it may leave its axis."""
        if index.op == "ramp":
            base, step = index.args
            if not isinstance(step.value, int) or step.value < 0 or not isinstance(length, int):
                raise NotModelled(f"an access to {name}")
            index, length = base, length + step.value * (int(index.value or lanes_of(index.dtype)) - 1)
        if isinstance(length, Expr) and self._depends(length):
            self._number(length, f"how much of {name} is accessed")
        if not self._depends(index):
            return np.zeros(self._count, np.int64)
        parts = self._parts(self._algebra.poly(index))
        moved = parts.pop((), np.zeros(self._count, np.int64))
        for numbers in parts.values():
            self._add(numbers, f"an index of {name}")
        at = interval(index, self._sizes, self._known)
        more = interval(length, self._sizes, self._known) if isinstance(length, Expr) else (length, length)
        inside: Any = np.zeros(self._count, np.bool_)
        if at is not None and more is not None and more[1] is not None:
            inside = np.greater_equal(at[0], 0) & np.less_equal(np.add(at[1], more[1]), size) | inside
        if more is not None and more[1] is not None and not inside.all():
            inside[~inside] = self._is_guarded(index, int(np.max(more[1])), size, np.flatnonzero(~inside))
        self._add(np.where(inside, 0, 1 + moved - moved.min()), f"whether an index of {name} is in bounds")
        return moved

    def _is_guarded(self, index: Expr, length: int, size: int, which: Array) -> Array:
        """Return in which of these blocks the conditions around an access keep it in bounds."""
        place = self._algebra.poly(index)
        if not self._is_exact(place):
            return np.zeros(len(which), np.bool_)
        blocks = {uid: np.asarray(self._environment[uid])[which] for uid in self._uids}
        return stay_inside(
            self._algebra, blocks, {**self._given, **self._known}, (place, length, size), self._conditions
        )

    def _compared(self, condition: Expr) -> Iterator[Relation]:
        """The comparisons of numbers that hold where a condition does."""
        if condition.op == "and":
            yield from chain.from_iterable(map(self._compared, condition.args))
        elif condition.op in _COMPARED and all(map(_is_number, condition.args)):
            first, second = map(self._algebra.poly, condition.args)
            if self._is_exact(first) and self._is_exact(second):
                yield Relation(condition.op, first, second)

    def _box(self, call: Expr) -> None:
        """Add a bulk copy of a tensor map's box: coordinates and sizes stand with the innermost dimension first."""
        first = call.args[0]
        made = first if first.op == "call" else self._descriptors.get(first.uid)
        map_, signature = None if made is None else tensor_map(made), signature_of(call)
        if map_ is None or signature is None or signature.coordinates is None:
            raise NotModelled(f"the tensor map of {call.value}")
        if map_.tensor.op != "var" or str(map_.tensor.value) not in self._names:
            raise NotModelled(f"the tensor map of {call.value}")
        before, after = call.args[1 : signature.coordinates], call.args[signature.coordinates :]
        moves = self._box_of_patches if map_.pixels else self._box_of_elements
        for e in (*before, *moves(call, after, map_)):
            self._visit(e)

    def _box_of_elements(self, call: Expr, args: Sequence[Expr], map_: TensorMap) -> Sequence[Expr]:
        """Add a bulk copy of a box by its coordinates. Returns the arguments behind these."""
        rank, name = map_.rank, str(map_.tensor.value)
        fields = [self._size(e) for e in map_.fields[: 2 * rank]]
        shape, octets = ([self._size(e) for e in each] for each in (map_.sizes, map_.octets))
        if any(each != 1 for each in fields[rank:]):
            raise NotModelled(f"the tensor map of {call.value}")
        moved = np.zeros(self._count, np.int64)
        for n, e in enumerate(args[:rank]):
            self._loads(e)
            moved = moved + 8 * octets[n] * self._along(name, e, fields[n], shape[n])
        self._move(name, moved)
        return args[rank:]

    def _patches(self, call: Expr) -> None:
        """Add what rows of T.im2col read of an image (`execute.ops.tile.im2col` has its arguments)."""
        image, tile = call.args[0].args[0].buffer, call.args[1]
        if image is None or tile.value != "region" or len(tile.args) != 4:
            raise NotModelled(f"the patches of {call.value}")
        bits, name = dtype_of(image.dtype).bits, str(image.data.value)
        shape, form = [self._size(e) for e in image.shape], [self._size(e) for e in call.args[4:8]]
        if len(shape) != 4 or self._bits.get(name) != prod(shape) * bits or self._depends(call.args[3]):
            raise NotModelled(f"the patches of {call.value}")
        for e in (tile, *call.args[2:4]):
            self._loads(e)
        rows = self._size(tile.args[2])
        numbers = rows * self._of_block(call.args[2])[:, None] + np.arange(rows)
        count, height, width, channels = shape
        steps = height * width * channels * bits, width * channels * bits, channels * bits
        found = Image((count, height, width), steps)
        self._add_patches(name, pixels_of_rows(numbers, found, form), found)

    def _box_of_patches(self, call: Expr, args: Sequence[Expr], map_: TensorMap) -> Sequence[Expr]:
        """Add a bulk copy of pixels (`execute.ops.thread.descriptors.Im2col`), channels first as in the map. Returns
        the arguments behind its coordinates and offsets.
        """
        coordinates, offsets, name = args[:4], args[4:6], str(map_.tensor.value)
        reach = [interval(e, self._sizes, self._known) for e in offsets]
        if map_.rank != 4 or any(map(self._depends, (coordinates[0], *offsets))):
            raise NotModelled(f"the tensor map of {call.value}")
        for e in (*coordinates, *offsets):
            self._loads(e)
        fields, steps = [self._size(e) for e in map_.fields[:9]], [8 * self._size(e) for e in map_.octets]
        channels, width, height, count = map(self._size, map_.sizes)
        if reach[0] is None or reach[1] is None or not channels:
            raise NotModelled(f"the offsets of {call.value}")
        image = Image((count, height, width), (steps[3], steps[2], steps[1]))
        (left, up, right, down), pixels = fields[4:8], fields[8]
        first = [self._of_block(e) for e in coordinates[:0:-1]]
        ranges = [(int(np.min(at[0])), int(np.max(at[1]))) for at in (reach[1], reach[0])]
        corners, strides = ((up, down), (left, right)), (fields[2], fields[1])
        box = pixels_of_box(first, image, pixels, strides, corners, (ranges[0], ranges[1]))
        self._add_patches(name, box, image)
        return args[6:]

    def _add_patches(self, name: str, pixels: Pixels, image: Image) -> None:
        classes, moved = classes_and_moves(pixels, image)
        self._add(classes, f"which part of a patch lies in {name}")
        self._move(name, moved, 0)

    def _of_block(self, e: Expr) -> Array:
        """Return a number that the block alone decides. Raises NotModelled for another one."""
        p = self._algebra.poly(e)
        if self._algebra.variables(p) - self._uids or not self._is_exact(p):
            raise NotModelled("a pixel that more than the block decides")
        found = Evaluator(self._algebra, self._environment)(p)
        return np.broadcast_to(np.asarray(found, np.int64), (self._count,))

    def _size(self, e: Expr) -> int:
        return int(evaluated(e, self._sizes))


def _meets(e: Expr) -> bool:
    """Whether blocks act on one another by a call, or it gives what they decide."""
    signature = signature_of(e)
    across = signature is not None and (signature.of_block or signature.collective in _ACROSS)
    return across or (e.op == "call" and name_of_call(e) in KERNELS)


def _is_number(e: Expr) -> bool:
    """Whether it is one integer."""
    return e.dtype in ("int32", "int64", "uint32", "uint64", "int16", "int8", "uint8", "uint16")
