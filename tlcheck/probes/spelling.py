"""The CUDA of the probes: one kernel for each call, spelled as TileLang's code generator spells the call.

From `codegen_cuda.cc`, `PrintType` and the printing of `atomic_*_elem_op` and of `call_extern`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlcheck.program.device_library import BULK, LibraryCall
from tlcheck.signatures.atomics import Atomic, function_of

_SCALARS = {
    "float16": "half_t",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "int64_t",
    "uint64": "uint64_t",
}
_VECTORS = {
    "float16": ("uint1", "uint2"),
    "bfloat16": ("uint1", "uint2"),
    "float32": ("float2", "float4"),
    "float64": ("double2", "double4"),
    "int32": ("int2", "int4"),
    "int64": ("longlong2", "longlong4"),
}
_HEADER = """\
#include <tl_templates/cuda/common.h>
#include <tl_templates/cuda/atomic.h>
#include <tl_templates/cuda/copy.h>
#if __CUDA_ARCH_LIST__ >= 900
#include <tl_templates/cuda/copy_sm90.h>
#endif
"""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A record of what the code generator of a release does in its own way.

    references: scalar destinations are passed by reference, not by address (up to 0.1.7). packs: a returned pair of 16
    bits goes through `tl::to_uint1` (from 0.1.13 on); before, a returned vector is given the destination's scalar type.
    """

    references: bool
    packs: bool


def source(calls: Sequence[LibraryCall], dialect: Dialect) -> str:
    """A translation unit with the kernels `p0`, `p1`, ...: `first_line` of it has the first, each has one line."""
    return _HEADER + "\n".join(kernel(i, call, dialect) for i, call in enumerate(calls)) + "\n"


def first_line() -> int:
    """Line of the kernel `p0`."""
    return _HEADER.count("\n") + 1


def kernel(number: int, call: LibraryCall, dialect: Dialect) -> str:
    """One kernel: parameters are destination, values and where the previous value goes."""
    destination, value = _SCALARS[call.destination], _SCALARS[call.value]
    if call.operation in BULK:
        return _bulk(number, call, destination)
    result = _result(call, dialect)
    shared = f"extern __shared__ __align__(1024) {destination} s{number}[]; " if call.shared else ""
    place = f"s{number}" if call.shared else "d"
    return (
        f'extern "C" __global__ void p{number}({destination}* __restrict__ d, {value}* __restrict__ v, '
        f"{result or 'int'}* __restrict__ r) {{ {shared}{'r[0] = ' if result else ''}{_call(call, place, dialect)}; }}"
    )


def _bulk(number: int, call: LibraryCall, dtype: str) -> str:
    """A bulk reduction of 256 bytes of shared memory, or of the box of a TMA descriptor."""
    arguments = "(&(s[0])), (&(d[0])), 256" if call.operation == "bulk" else "m, (&(s[0])), 0, 0"
    return (
        f'extern "C" __global__ void p{number}({dtype}* __restrict__ d, const __grid_constant__ CUtensorMap m) '
        f"{{ extern __shared__ __align__(1024) {dtype} s{number}[]; tl::tma_store_add({arguments}); }}"
    ).replace("(s[", f"(s{number}[")


def _call(call: LibraryCall, place: str, dialect: Dialect) -> str:
    name = function_of(Atomic(call.operation, call.width, call.returns))
    by_reference = dialect.references and call.width == 1
    arguments = [f"{place}[0]" if by_reference else f"(&({place}[0]))"]
    if call.operation != "load":
        arguments.append(_value(call))
    if call.order or call.operation not in ("add", "max", "min"):
        arguments.append(str(call.order))
    text = f"{name}({', '.join(arguments)})"
    pairs = call.width == 2 and call.returns and call.destination in ("float16", "bfloat16")
    return f"tl::to_uint1({text})" if pairs and dialect.packs else text


def _value(call: LibraryCall) -> str:
    if call.pointer:
        return "(&(v[0]))"
    return "v[0]" if call.width == 1 else f"*({_vector(call.value, call.width)}*)(v + 0)"


def _result(call: LibraryCall, dialect: Dialect) -> str:
    """The type that the code generator gives to what is returned; empty where nothing is."""
    if not call.returns:
        return ""
    if call.width == 1 or (call.width == 2 and not dialect.packs):
        return _SCALARS[call.destination]
    if call.width == 4 and not dialect.packs and call.destination.startswith("float"):
        return "float4"
    return _vector(call.destination, call.width)


def _vector(dtype: str, width: int) -> str:
    return _VECTORS[dtype][0 if width == 2 else 1]
