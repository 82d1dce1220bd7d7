"""Find where the generated CUDA computes something else than the TIR that it is printed from, or is refused by nvcc.

Integers of 8 and 16 bits: C++ computes with them in int (`promotion`). Vectors of integers: some releases lose lanes
where they pack them (`packing`). Integers of 64 bits: from 0.1.8 to 0.1.12 the library's `warp_reduce` takes them
through int. Scalar floats of 16 bits are CUTLASS's classes, which many functions of CUDA do not take, so that nvcc
refuses the kernel. Bounds of a loop: TIR reads them once, `for (int k = 0; k < n[0]; ++k)` before each iteration. Equal
lanes are printed one by one: an atomic among them runs as often. A choice by a vector of conditions is `ushort4 ? a :
b` before 0.1.14, which neither nvcc nor hipcc takes (pull requests 2843, 2889); nor do they take `!ushort4` (3117), nor
nvcc `~int4` before 0.1.15 (issue 2993). `~` of a bool is an int that is never 0, in HIP, and in CUDA before 0.1.15. HIP
has its own numbers of eight bits, and stores a whole word for an integer of four.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from tlcheck.program.atomics import is_atomic
from tlcheck.program.packing import is_unpacked, packing
from tlcheck.program.promotion import is_promoted
from tlcheck.program.release import Release
from tlcheck.program.roles import WRITE, accesses
from tlcheck.signatures.atomics import ATOMICS
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Evaluate, Expr, For, Function, Stmt, Store
from tlcheck.snapshot.operators import OPERATORS, named
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.targets.target import AMD, Target

_THROUGH_INT, _IN_64_BITS = Release.of("0.1.8"), Release.of("0.1.13")  # from which on `warp_reduce` does either
_A_COPY = "let the body change a copy of it"
_IN_32_BITS = "compute in 32 bits: sums and products of 8 and 16 bits do not wrap in the generated {}"


@dataclass(frozen=True)
class _Missing:
    """Functions that nvcc refuses of scalars of these types, from one release on until another has them."""

    names: frozenset[str]
    dtypes: tuple[str, ...]
    start: Release = Release.of("0")  # noqa: RUF009 - immutable
    end: Release | None = None


# Compiled with nvcc 13.0 against the headers of each release (docs/device-library.md).
_MISSING = tuple(
    _Missing(frozenset(names.split()), tuple(dtypes.split()), *map(Release.of, releases))
    for names, dtypes, *releases in (
        ("hceil hexp10 hexp2 hfloor hlog10 hlog2 hrcp hrint htan htrunc", "float16 bfloat16", "0", "0.1.14"),
        ("hatan hcosh herf hfmod hnearbyint hsinh", "float16 bfloat16", "0", "0.1.15"),
        ("habs hacos hasin hatan2 hcopysign hfabs hfma hlog1p hround", "float16 bfloat16"),
        ("hcos hlog hrsqrt hsin hsqrt", "bfloat16", "0", "0.1.14"),
        ("hpow htanh", "bfloat16", "0", "0.1.15"),
        ("hcos hexp hlog hsin", "float16", "0.1.12", "0.1.14"),
        ("hsqrt", "float16", "0.1.12", "0.1.13"),
        ("hpow htanh", "float16", "0.1.12", "0.1.15"),
    )
)
_EXACT = 8  # bits of an integer that bfloat16 holds
_LANE_BY_LANE = Release.of("0.1.14")  # the release from which on a vector's choice and `!` are printed lane by lane
_COMPLEMENTS = Release.of("0.1.15")  # the release from which on CUDA has `!` for `~` of a bool, and `~` of a vector
# Lanes of bool from which on HIP has a bit for each: `~` is right, except where each lane is printed alone.
_IN_BITS = 8
_CARRIER = 32  # bits of the integer that holds a short vector
_FOUR = 4  # bits
_SIGNS = {**{name: OPERATORS[name].symbol for name in named("ring")}, "shift_left": "<<", "select": "? :"}


def is_never_false(e: Expr, release: Release, target: Target | None) -> bool:
    """Whether it is `~` of a bool, or of up to four, that is printed as such: -1 or -2."""
    found = dtype_of(e.dtype)
    complemented = e.op == "call" and e.value == "bitwise_not" and found.kind == "bool" and found.lanes < _IN_BITS
    return complemented and (release < _COMPLEMENTS or (target is not None and target.family == AMD))


def is_ever_complemented(function: Function, release: Release, target: Target | None) -> bool:
    """Whether a function has `~` of a bool that is printed as such."""
    return any(is_never_false(e, release, target) for e in _parts(function))


def as_printed(e: Expr, wanted: str) -> Expr:
    """Return what is printed for `~` of a bool, where a number of some type is wanted, or a bool: true."""
    lanes = dtype_of(e.dtype).lanes
    dtype = "int32" if lanes == 1 else f"int32x{lanes}"
    if dtype_of(wanted).kind != "bool":
        return Expr("cast", wanted, (Expr("call", dtype, (Expr("cast", dtype, e.args),), "bitwise_not"),))
    true = Expr("int", dtype_of(e.dtype).name, (), 1)
    return true if lanes == 1 else Expr("broadcast", e.dtype, (true,), lanes)


def is_repeated(e: Expr) -> bool:
    """Whether equal lanes call an atomic, each for itself: `make_int4(AtomicAddRet(..), AtomicAddRet(..), ..)`."""
    calls = (part for part in postorder(e.args) if part.op == "call")
    return e.op == "broadcast" and any(is_atomic(name_of_call(call)) for call in calls)


def is_cut(dtype: str, release: Release) -> bool:
    """Whether the values of `warp_reduce` lose their upper half."""
    found = dtype_of(dtype)
    return found.is_integral and found.bits == 64 and _THROUGH_INT <= release < _IN_64_BITS


@dataclass(frozen=True)
class Departure:
    """A record of what an expression is in CUDA and not in TIR, in words, and what helps, if anything but another
    release.
    """

    words: str
    advice: str = ""


def is_lost(call: Expr, stmt: Stmt) -> bool:
    """Whether a statement uses the value of an atomic that returns none: nothing stands in its place in the CUDA.

    From 0.1.7.post3 to 0.1.12 `T.atomic_max` and `T.atomic_min` with return_prev make such calls.
    """
    used = not (isinstance(stmt, Evaluate) and stmt.value is call)
    atomic = ATOMICS.get(str(call.value)) if call.op == "call" else None
    return used and atomic is not None and atomic.combines and not atomic.returns


def lost_values(stmt: Stmt) -> Iterator[Expr]:
    """The atomics in a statement whose value is lost."""
    return (e for e in postorder(expressions(stmt)) if is_lost(e, stmt))


def refusals(function: Function, release: Release, target: Target) -> Iterator[str]:
    """Yield why the code that is made of a function does not compile, or accesses other memory, as far as that is
    known.
    """
    yield from of_vectors(function, release, target)
    if target.family == AMD:
        yield from _fours(function)
        for e in _parts(function):
            if e.value == "bitwise_not" and dtype_of(e.dtype).kind == "bool" and dtype_of(e.dtype).lanes >= _IN_BITS:
                yield f"~ of {e.dtype}, of which HIP has bits or ints"
    else:
        yield from (f"{words}, which nvcc refuses" for words, refused in of_halves(function, release) if refused)
        if any(is_unpacked(e, release) for e in _parts(function)):
            yield "32 lanes of 8 bits that are no constant, which nvcc refuses"


def of_vectors(function: Function, release: Release, target: Target) -> Iterator[str]:
    """Choices, `!` and `~` that are made for each lane, in releases that print one for all of them, if the compiler
    refuses it. HIP's vectors have `~`, and so has an integer that holds bytes.
    """
    compiler = "hipcc" if target.family == AMD else "nvcc"
    for e in _parts(function) if release < _COMPLEMENTS else ():
        if dtype_of(e.dtype).lanes == 1:
            continue
        if e.op == "select" and release < _LANE_BY_LANE and dtype_of(e.args[0].dtype).lanes > 1:
            yield f"a choice by a vector of conditions ({e.dtype}), which {compiler} refuses"
        elif e.op == "not" and release < _LANE_BY_LANE:
            yield f"! of a vector ({e.dtype}), which {compiler} refuses"
        elif e.value == "bitwise_not" and target.family != AMD and not _is_one_integer(e.dtype):
            yield f"~ of a vector ({e.dtype}), which {compiler} refuses"


def _is_one_integer(dtype: str) -> bool:
    """Whether a vector is held by one integer."""
    found = dtype_of(dtype)
    return found.kind != "bool" and found.bits <= 8 and found.bits * found.lanes <= _CARRIER and found.lanes > 3


def _fours(function: Function) -> Iterator[str]:
    """Single integers of four bits in memory: `*((int*)s + i / 8) = x` takes the other seven of its word along."""
    stored = (stmt.buffer for stmt in statements(function.body) if isinstance(stmt, Store) and not _lanes(stmt.value))
    loaded = (e.buffer for e in _parts(function) if e.op == "load" and e.buffer is not None and not _lanes(e))
    for buffer in chain(stored, loaded):
        if dtype_of(buffer.dtype).is_integral and dtype_of(buffer.dtype).bits == _FOUR:
            yield f"single {buffer.dtype} of {buffer.name}, which HIP loads and stores as a word of eight"


def _lanes(e: Expr) -> bool:
    """Whether it is a vector."""
    return dtype_of(e.dtype).lanes > 1


def of_halves(function: Function, release: Release) -> Iterator[tuple[str, bool]]:
    """Calls and casts that give floats of 16 bits and are not done in CUDA as in TIR, in words, and whether nvcc
    refuses them. The others are casts of integers to bfloat16: CUTLASS leaves out lower bits of a float, and does not
    round. Casts of a vector are printed lane by lane: `(half_t)(v_.x)`.
    """
    for e in _halves(function):
        if e.op == "call" and _is_missing(name_of_call(e), e.dtype, release):
            yield f"{name_of_call(e)} of {e.dtype}", True
        elif e.op == "cast" and dtype_of(e.args[0].dtype).name in ("int64", "uint64"):
            yield f"a cast of {e.args[0].dtype} to {e.dtype}", True
        elif e.op == "cast" and dtype_of(e.dtype).name == "bfloat16" and _is_inexact(e.args[0]):
            yield f"a cast of {e.args[0].dtype} to {e.dtype}", False


def _is_inexact(value: Expr) -> bool:
    """Whether bfloat16 may not hold an integer that is no constant."""
    source = dtype_of(value.dtype)
    return value.op != "int" and source.is_integral and source.bits > _EXACT


def _halves(function: Function) -> Iterator[Expr]:
    """The calls of a function that give scalar floats of 16 bits, and the casts that give any."""
    for e in _parts(function):
        named = dtype_of(e.dtype).name if e.op == "cast" else e.dtype
        if e.op in ("call", "cast") and e.args and named in ("float16", "bfloat16"):
            yield e


def _parts(function: Function) -> Iterator[Expr]:
    """All expressions of a function, operands first."""
    return postorder(chain.from_iterable(map(expressions, statements(function.body))))


def _is_missing(name: str, dtype: str, release: Release) -> bool:
    found = (m for m in _MISSING if name in m.names and dtype in m.dtypes)
    return any(m.start <= release and (m.end is None or release < m.end) for m in found)


def read_anew(loop: For) -> list[Expr]:
    """Return what CUDA loads before each iteration of a loop to see whether it ends; a conditional expression stands
    before the loop, as a variable.
    """
    parts = list(postorder((loop.start, loop.extent)))
    return [] if any(e.value == "if_then_else" for e in parts) else [e for e in parts if e.op == "load"]


def _moves(loop: For) -> bool:
    """Whether the body of a loop writes what CUDA reads anew."""
    read = {e.buffer.data.uid for e in read_anew(loop) if e.buffer is not None}
    inner = statements(loop.body) if read else ()
    return any(
        (isinstance(stmt, Store) and stmt.buffer.data.uid in read)
        or any(mode & WRITE and data.uid in read for e in expressions(stmt) for data, mode in accesses(e))
        for stmt in inner
    )


def departures(stmt: Stmt, release: Release, target: Target | None = None) -> Iterator[Departure]:
    """Yield the departures of a statement's expressions, innermost first. target: None for one that is not known."""
    is_cuda = target is None or target.kind == "cuda"
    language = "CUDA" if is_cuda else "HIP"
    if target is not None and not is_cuda:
        yield from _formats(stmt, target)
    if isinstance(stmt, For) and _moves(stmt):
        yield Departure(f"{language} reads the end of loop {stmt.var.value} anew in each iteration", _A_COPY)
    for e in postorder(expressions(stmt)):
        if is_promoted(e):
            yield Departure(f"{operation_in_words(e)} is an int in {language}", _IN_32_BITS.format(language))
        elif is_never_false(e, release, target):
            yield Departure(f"~ of a bool is an int in {language}, which is never 0", "use T.Not")
        elif not is_cuda:
            continue
        elif how := packing(e, release):
            yield Departure(how.value)
        elif e.op == "call" and e.args and "warp_reduce_" in name_of_call(e) and is_cut(e.args[-1].dtype, release):
            yield Departure(f"{name_of_call(e)} takes {e.args[-1].dtype} through int")


def _formats(stmt: Stmt, target: Target) -> Iterator[Departure]:
    """The numbers in a statement whose bits the target takes for another format."""
    for e in postorder(expressions(stmt)):
        named = [str(a.value) if a.op == "str" else a.dtype for a in e.args]
        for dtype, other in target.formats.items():
            if e.op in ("cast", "call") and any(dtype == name.split("x")[0] for name in (e.dtype, *named)):
                yield Departure(f"{target.arch} takes the bits of {dtype} for {other}", f"use {other} there")


def operation_in_words(e: Expr) -> str:
    """An operation by the types of its operands: `uint8 - uint8`."""
    if e.value == "bitwise_not":
        return f"~{e.args[0].dtype}"
    *_, first, second = e.args
    return f"{first.dtype} {_SIGNS[str(e.value) if e.op == 'call' else e.op]} {second.dtype}"
