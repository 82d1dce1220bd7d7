"""Bulk reductions: a `tma_store` with its reduce flag adds a box of shared memory to global memory, by one thread.

Two forms: (shared, global, bytes, flag, hint) adds a contiguous run; (descriptor, shared, coordinates..., flag, hint)
adds the descriptor's box, cut at the tensor's bounds by the hardware, from shared memory in the descriptor's swizzle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tlcheck.program.walk import Guard, Program, expressions, subexpressions
from tlcheck.signatures.bulk_copies import FAMILY, TensorMap, is_descriptor, tensor_map
from tlcheck.signatures.signature import Completion
from tlcheck.signatures.table import family_of, signature_of
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Buffer, Expr

LANE = -100  # uid of the variable that counts the elements of one instruction
_TENSOR_TYPES = dict(enumerate("uint8 uint16 uint32 int32 uint64 int64 float16 float32 float64 bfloat16".split()))
_SWIZZLED_ROWS = {0: 0, 1: 1, 2: 3, 3: 7}  # swizzle mode -> mask of the 128-byte rows that permute 16-byte chunks


@dataclass(frozen=True, slots=True, eq=False)
class Bulk:
    """A record of what one instruction adds, as expressions of the lane: offset in the destination, load, and
    conditions.

    start: the innermost coordinate of a box; None for a run of bytes.
    """

    root: str
    dtype: str
    elements: int
    offset: Expr
    load: Expr
    guards: tuple[Guard, ...]
    start: Expr | None = None


def is_reduction(call: Expr) -> bool:
    """Whether a call is a `tma_store` that adds."""
    signature = signature_of(call)
    return signature is not None and signature.asynchronous is Completion.BULK_GROUP and bool(signature.updates)


def is_boxed(call: Expr) -> bool:
    """Whether a bulk reduction adds the box of a descriptor, not a run of bytes."""
    return is_descriptor(call.args[0])


def is_copy(call: Expr) -> bool:
    """Whether a call is a bulk copy that adds nothing: a load, or a store whose reduce flag is 0."""
    signature = signature_of(call)
    return family_of(call) is FAMILY and signature is not None and bool(signature.writes)


def descriptors(programs: Mapping[str, Program]) -> dict[str, TensorMap]:
    """Root -> its tensor map of boxes: at device-tir only a parameter named after the tensor is left."""
    found: dict[str, TensorMap] = {}
    for program in programs.values():
        for placed in program.statements:
            for top in expressions(placed.stmt):
                for e in subexpressions(top):
                    if (made := tensor_map(e)) is not None and not made.pixels:
                        found.setdefault(program.roots.of(made.tensor), made)
    return found


def bulk(program: Program, call: Expr, known: Mapping[str, TensorMap]) -> Bulk | None:
    """The additions of a reducing `tma_store`; None where it is not understood."""
    first = call.args[0]
    made, signature = tensor_map(first), signature_of(call)
    if signature is None:
        return None
    if made is not None and not made.pixels:
        return _boxed(program, call, made, program.roots.of(made.tensor))
    if first.op == "var":
        root = str(first.value).removesuffix("_desc")
        return _boxed(program, call, known[root], root) if root in known else None
    source, target = _flat(program, call.args[0]), _flat(program, call.args[1])
    size = call.args[signature.size].value if signature.size is not None else None
    if source is None or target is None or not isinstance(size, int):
        return None
    width = _element_bytes(target[1].dtype)
    if not width or size % width:
        return None
    lane = _lane()
    load = Expr("load", source[1].dtype, (_add(source[2], lane),), buffer=source[1])
    return Bulk(target[0], target[1].dtype, size // width, _add(target[2], lane), load, ())


def _boxed(program: Program, call: Expr, made: TensorMap, root: str) -> Bulk | None:
    source, signature, rank = _flat(program, call.args[1]), signature_of(call), made.rank
    fields = [a.value for a in made.fields]
    first = signature.coordinates if signature is not None else None
    if source is None or first is None or len(fields) != 2 * rank + 4:
        return None
    strides, box = [a.value for a in made.octets], fields[:rank]
    width = _element_bytes(source[1].dtype)
    if not all(isinstance(x, int) for x in (*strides, *box)) or not width or set(fields[rank : 2 * rank]) != {1}:
        return None
    sizes, steps = [int(x or 0) for x in box], [int(x or 0) // width for x in strides]
    swizzle = _swizzled(_lane(), width, fields[-3])
    if swizzle is None:
        return None
    offset, guards = _int(0), []
    for d in range(rank):
        inner = _mod(_div(_lane(), prod(sizes[:d])), sizes[d])
        position = _add(call.args[first + d], inner)
        offset = _add(offset, _mul(position, steps[d]))
        guards += [Guard(Expr("lt", "bool", (position, made.sizes[d]))), Guard(Expr("ge", "bool", (position, _int(0))))]
    load = Expr("load", source[1].dtype, (_add(source[2], swizzle),), buffer=source[1])
    kind = made.number.value  # CUtensorMapDataType of the CUDA driver API
    dtype = _TENSOR_TYPES.get(kind, "unknown") if isinstance(kind, int) else "unknown"
    return Bulk(root, dtype, prod(sizes), offset, load, tuple(guards), call.args[first])


def _swizzled(lane: Expr, width: int, mode: object) -> Expr | None:
    """Return where in shared memory the lane's element lies: 16-byte chunks permuted within rows of 128 bytes."""
    mask = _SWIZZLED_ROWS.get(mode) if isinstance(mode, int) else None
    if mask is None:
        return None
    if mask == 0:
        return lane
    chunk, row = _div(lane, 16 // width), _div(lane, 128 // width)
    permuted = Expr("call", "int32", (chunk, _mod(row, mask + 1)), "bitwise_xor")
    return _add(_mul(permuted, 16 // width), _mod(lane, 16 // width))


def _flat(program: Program, e: Expr) -> tuple[str, Buffer, Expr] | None:
    """A pointer into memory as (root, buffer without a shape, offset); only where its index is flat or at the start."""
    if e.op == "call" and e.value in ("address_of", "access_ptr") and e.args:
        load = e.args[0]
        start = all(i.value == 0 for i in load.args[:-1])
        if load.buffer is None or not start:
            return None
        root = program.roots.of(load.buffer.data)
        flat = Buffer(root, load.buffer.dtype, (), load.buffer.scope, load.buffer.data)
        return root, flat, load.args[-1]
    if e.op == "call" and e.value == "tvm_access_ptr" and e.args[1].op == "var":
        root = program.roots.of(e.args[1])
        known = program.buffers.get(root)
        return root, Buffer(root, e.args[0].dtype, (), known.scope if known else "", e.args[1]), e.args[2]
    return None


def _element_bytes(dtype: str) -> int:
    """0 for what is no scalar of whole bytes."""
    found = dtype_of(dtype)
    return found.bits // 8 if found.lanes == 1 else 0


def _lane() -> Expr:
    return Expr("var", "int32", value="lane", uid=LANE)


def _int(value: int) -> Expr:
    return Expr("int", "int32", value=value)


def _add(a: Expr, b: Expr) -> Expr:
    return Expr("add", a.dtype, (a, b))


def _mul(a: Expr, factor: int) -> Expr:
    return Expr("mul", a.dtype, (a, _int(factor)))


def _div(a: Expr, divisor: int) -> Expr:
    return Expr("floordiv", a.dtype, (a, _int(divisor)))


def _mod(a: Expr, divisor: int) -> Expr:
    return Expr("floormod", a.dtype, (a, _int(divisor)))
