"""Inputs of a case's own: what its `inputs` made, as arrays in a file, and how they fit the kernel's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.lib.stride_tricks import as_strided

from tlcheck.errors import UsageError
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.execute.request import GivenInputs, Request
from tlcheck.execute.worlds import inputs
from tlcheck.program.roles import accessed, roles
from tlcheck.snapshot.ir import Buffer, Expr, Function


def tensors(function: Function, given: GivenInputs) -> dict[int, dict[str, Array]]:
    """The arrays of each seed, by the pointer of the parameter; a tensor for which a call passed None has none.

    Raises UsageError where there are more or fewer.
    """
    found = {}
    for number, (seed, places) in enumerate(given.sets):
        require_count(function, len(places))
        unknown = given.unknown[number] if given.unknown else ()
        found[seed] = {
            str(p.value): _mapped(Path(given.file), place, n not in unknown)
            for n, (p, place) in enumerate(zip(function.params, places, strict=True))
            if place >= 0
        }
    return found


def _mapped(file: Path, place: int, known: bool = True) -> Array:
    """The array that begins there; its elements are read when they are used. known: else only its header is there."""
    with file.open("rb") as opened:
        opened.seek(place)
        version = npy.read_magic(opened)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(opened)
        if not known:
            return np.broadcast_to(np.zeros((), dtype), shape)
        if 0 in shape:
            return np.empty(shape, dtype)
        return np.memmap(file, dtype, "r", opened.tell(), shape)


def parameters(function: Function) -> list[tuple[Expr, Buffer | None]]:
    """Each parameter in order, with its buffer; None for a number."""
    buffers = {b.data.uid: b for b in reversed(function.buffers)}
    return [(p, buffers.get(p.uid)) for p in function.params]


def require_count(function: Function, count: int) -> None:
    """Raises UsageError unless there is a value for each parameter."""
    names = [str(p.value) if b is None else b.name for p, b in parameters(function)]
    if count != len(names):
        raise UsageError(f"inputs gives {count} values, the kernel takes {len(names)}: {', '.join(names)}")


def require_unused(function: Function, given: Mapping[str, Array]) -> None:
    """Raises UsageError if the kernel accesses a parameter for which None was passed."""
    for parameter, buffer in parameters(function):
        if str(parameter.value) not in given and (buffer is None or parameter.uid in accessed(function)):
            name = str(parameter.value) if buffer is None else buffer.name
            raise UsageError(f"the kernel accesses {name}, for which None was passed")


def require_shapes(function: Function, given: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
    """Raises UsageError for a tensor of another shape than the kernel's. sizes: those known of symbolic shapes."""
    for parameter, buffer in parameters(function):
        if buffer is None or str(parameter.value) not in given:
            continue
        shape, wanted = given[str(parameter.value)].shape, inputs.known_extent(buffer, sizes)
        if wanted is not None and shape != wanted:
            raise UsageError(f"inputs gives {buffer.name} of shape {list(shape)}, the kernel takes {list(wanted)}")


def called(function: Function, given: GivenInputs, request: Request) -> list[Request]:
    """Requests for the calls of a script: one for each shape that was passed, that of the first call first.

    A seed without a call of its own gets the first one's integers and numbers, with floats that are drawn. Calls that
    do not fit the kernel are left out.
    """
    every = tensors(function, given)
    kinds = {str(p.value): kind_of(b.dtype) for p, b in parameters(function) if b is not None}
    narrow = {name for name, kind in kinds.items() if kind.bits < 8}
    floats = frozenset(name for name, kind in kinds.items() if kind.is_float)
    skipped = poisoned(function, given.updates)
    names = [str(p.value) for p in function.params]
    left: dict[int, dict[str, Array]] = {}
    unknown: dict[int, frozenset[str]] = {}
    for number, arrays in every.items():
        with suppress(UsageError):
            require_unused(function, arrays)
            arrays = {name: array for name, array in arrays.items() if name not in narrow}
            require_shapes(function, arrays, inputs.known(function, arrays))
            left[number] = arrays
            unknown[number] = frozenset(narrow | {names[place] for place in given.unknown[number]}) - skipped
    found = []
    while left:
        same = alike(left)
        first = same[0]
        sets, drawn = dict[int, Mapping[str, Array]](), dict[int, frozenset[str]]()
        for seed in request.seeds:
            number = same[seed] if seed < len(same) else first
            sets[seed] = left[number]
            drawn[seed] = unknown[number] if seed < len(same) else (unknown[number] | floats) - skipped
        seeds = tuple(sets)
        if not floats - skipped:  # a seed without a call of its own would be the first call again
            seeds = tuple(seed for seed in seeds if seed < len(same)) or seeds[:1]
        found.append(replace(request, seeds=seeds, given=sets, drawn=drawn, captured=True, poisoned=skipped))
        left = {number: arrays for number, arrays in left.items() if number not in same}
    return found


def alike(sets: Mapping[int, Mapping[str, Array]]) -> tuple[int, ...]:
    """The seeds whose tensors have the shapes of the first one's, and whose numbers are the same."""
    first, *_ = sets.values()

    def same(other: Mapping[str, Array]) -> bool:
        return first.keys() == other.keys() and all(
            a.shape == other[n].shape and (a.ndim or a == other[n]) for n, a in first.items()
        )

    return tuple(seed for seed, arrays in sets.items() if same(arrays))


def poisoned(function: Function, updates: Iterable[str] | None) -> frozenset[str]:
    """The outputs that begin as poison: those that are never read, unless the case says that they are updated."""
    kept = set(updates or ())
    return frozenset(str(b.data.value) for b in roles(function).unread if b.name not in kept)


def arranged(array: Array, buffer: Buffer, sizes: Mapping[str, int]) -> Array:
    """The elements of a tensor as they lie in the kernel's memory: apart where it declares strides."""
    if not buffer.strides:
        return array.reshape(-1)
    strides = inputs.strides(buffer, sizes)
    memory = np.zeros(inputs.span(buffer, sizes), array.dtype)
    target = as_strided(
        memory[inputs.offset(buffer, sizes) :], array.shape, tuple(stride * array.itemsize for stride in strides)
    )
    target[...] = array
    return memory
