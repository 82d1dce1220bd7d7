"""Functions that a kernel brings along as CUDA (T.import_source) and calls by their names.

Known by their text: a function counts as one of these only if its definition is, letter by letter but for comments and
spaces, that of TileLang's examples: dequantize_gemm/quantize/lop3.py and mxfp.py, bitnet-1.58b/kernel_benchmark.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import annotation, attribute, extern
from tlcheck.execute.memory.codes import Computation, Step
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.execute.ops.thread.wide import reshaped
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Attr, Block, Expr

_TEXT = "imported functions"
_WORD = kind_of("uint32")
_COMMENT = re.compile(r"//[^\n]*")
_SPACE = re.compile(r"\s+")


@annotation("pragma_import_c")
def annotated_source(block: Block, program: KernelProgram) -> None:
    """The text of imported functions, verbatim."""
    program.state.shared[_TEXT] = dict(block.annotations)["pragma_import_c"]


@attribute("pragma_import_c")
def attributed_source(stmt: Attr, program: KernelProgram) -> Step:
    """The text of imported functions, as lowered."""
    program.state.shared[_TEXT] = "" if stmt.value is None else str(stmt.value.value)
    return program.step(stmt.body)


def _fields_of_2_bits(words: Array, unsigned: bool = True) -> Array:
    """Byte k of word i of the result: bits 2i and 2i + 1 of byte k. Signed ones less 2."""
    fields = [(words[0] >> np.uint32(8 * k + 2 * i)) & np.uint32(3) for i in range(4) for k in range(4)]
    return np.asarray(np.stack(fields).astype(np.int8) - np.int8(0 if unsigned else 2))


def _fields_of_4_bits(words: Array, unsigned: bool = True) -> Array:
    """Halves 2i and 2i + 1 of the result: four bits from 4i, and from 16 + 4i. Signed ones less 8."""
    fields = [(words[0] >> np.uint32(16 * k + 4 * i)) & np.uint32(15) for i in range(4) for k in range(2)]
    return np.stack(fields).astype(np.float64) - (0.0 if unsigned else 8.0)


def _twiddled_fp4(words: Array) -> Array:
    """Unpack 8 numbers of e2m1 from each word, whose bits lie where bfloat16 has sign, exponent and mantissa."""
    found = []
    for word in words:
        x = word.astype(np.uint32).byteswap()
        last = ((x << 1) & 0x80008000) | ((x >> 3) & 0x01800180) | ((x >> 7) & 0x00400040)
        parts = [x & 0x81C081C0, (x << 3) & 0x81C081C0, (x << 6) & 0x81C081C0, last]
        found += [_small(part >> 16) for part in parts] + [_small(part & 0xFFFF) for part in parts]
    return np.stack(found)


def _small(bits: Array) -> Array:
    """Bit 15 is the sign, 8 and 7 the exponent, 6 the mantissa."""
    exponent, half = (bits >> 7) & 3, ((bits >> 6) & 1) * 0.5
    size = np.where(exponent == 0, half, (1.0 + half) * 2.0 ** (exponent.astype(np.float64) - 1.0))
    return np.where(bits & 0x8000, -size, size)


@dataclass(frozen=True, slots=True)
class _Decoder:
    """digest: of its definition. apply: words -> elements, (number, worlds, lanes) each. elements: of one word.

    groups: its count says how many words, otherwise how many elements.
    """

    digest: str
    apply: Callable[[Array], Array]
    elements: int
    form: str
    groups: bool = False


_DECODERS = {
    "decode_i2u_to_i8s": _Decoder("0e2638f876011b89", _fields_of_2_bits, 16, "int8"),
    "decode_i2s_to_i8s": _Decoder("ed29299c61537a37", lambda w: _fields_of_2_bits(w, False), 16, "int8"),
    "decode_i4u_to_f16": _Decoder("076d6d81a991094d", _fields_of_4_bits, 8, "float16"),
    "decode_i4s_to_f16": _Decoder("c196a2f5ce4e9815", lambda w: _fields_of_4_bits(w, False), 8, "float16"),
    "decode_fp4_to_bf16_twiddling": _Decoder("c52ba3cb762d9517", _twiddled_fp4, 8, "bfloat16", groups=True),
}


@extern(*_DECODERS)
def decode(e: Expr, program: KernelProgram) -> Computation:
    """(packed, decoded[, count]): elements of a few bits from 32-bit words; count: elements, or of fp4 words."""
    decoder = _DECODERS[str(e.value)]
    if digest(str(program.state.shared.get(_TEXT, "")), str(e.value)) != decoder.digest:
        raise NotModelled(f"{e.value}, another one than TileLang's")
    words = _words(e, decoder)
    source, target = program.pointer(e.args[0]).kind, program.pointer(e.args[1]).kind
    if target != kind_of(decoder.form) or source.family not in ("int", "uint"):
        raise NotModelled(f"{e.value} of {source.name} to {target.name}")
    packed = program.pointer(e.args[0], words * _WORD.bits // source.bits)
    decoded = program.pointer(e.args[1], words * decoder.elements)

    def run(frame: Frame) -> int:
        bits = np.broadcast_to(packed.load(frame), (words * _WORD.bits // source.bits, frame.worlds, frame.lanes))
        decoded.store(frame, decoder.apply(reshaped(bits, source, _WORD)))
        return 0

    return run


def _words(e: Expr, decoder: _Decoder) -> int:
    """Return how many words are decoded."""
    default = decoder.elements
    count = int(e.args[2].value or 0) if len(e.args) > 2 and e.args[2].op == "int" else default
    if len(e.args) > 2 and e.args[2].op != "int":
        raise NotModelled(f"{e.value} of a varying count")
    if decoder.groups:
        return count
    if count != decoder.elements:
        raise NotModelled(f"{e.value} of {count} elements")
    return 1


def digest(text: str, name: str) -> str:
    """Return what tells the definition of a function, and of the function of TileLang's that it calls, from others."""
    text = _COMMENT.sub("", text)
    found = _definition(text, name)
    inner = re.search(r"\b(decode_\w+)<", found)
    whole = found if inner is None else _definition(text, inner[1]) + found
    return hashlib.sha256(_SPACE.sub("", whole).encode()).hexdigest()[:16]


def _definition(text: str, name: str) -> str:
    """Return the text from the template's head to the closing brace; empty where there is none."""
    match = re.search(rf"template\s*<[^>]*>\s*__device__\s+void\s+{name}\(", text)
    if match is None:
        return ""
    depth, at = 0, text.index("{", match.end())
    for end in range(at, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return text[match.start() : end + 1]
    return ""
