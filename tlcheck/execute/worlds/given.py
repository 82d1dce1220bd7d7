"""Inputs of a case's own: what its `inputs` made, as arrays in a file, and how they fit the kernel's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.lib.stride_tricks import as_strided

from tlcheck.errors import UsageError
from tlcheck.execute.memory.values import Array
from tlcheck.execute.request import GivenInputs
from tlcheck.execute.worlds import inputs
from tlcheck.program.roles import roles
from tlcheck.snapshot.ir import Buffer, Expr, Function


def tensors(function: Function, given: GivenInputs) -> dict[int, dict[str, Array]]:
    """The arrays of each seed, by the pointer of the parameter. Raises UsageError where there are more or fewer."""
    found = {}
    for seed, places in given.sets:
        require_count(function, len(places))
        arrays = [_mapped(Path(given.file), place) for place in places]
        found[seed] = {str(p.value): array for p, array in zip(function.params, arrays, strict=True)}
    return found


def _mapped(file: Path, place: int) -> Array:
    """The array that begins there; its elements are read when they are used."""
    with file.open("rb") as opened:
        opened.seek(place)
        version = npy.read_magic(opened)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(opened)
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


def require_shapes(function: Function, given: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
    """Raises UsageError for a tensor of another shape than the kernel's. sizes: those known of symbolic shapes."""
    for parameter, buffer in parameters(function):
        if buffer is None:
            continue
        shape, wanted = given[str(parameter.value)].shape, inputs.known_extent(buffer, sizes)
        if wanted is not None and shape != wanted:
            raise UsageError(f"inputs gives {buffer.name} of shape {list(shape)}, the kernel takes {list(wanted)}")


def alike(sets: Mapping[int, Mapping[str, Array]]) -> tuple[int, ...]:
    """The seeds whose tensors have the shapes of the first one's, and whose numbers are the same."""
    first, *_ = sets.values()

    def same(other: Mapping[str, Array]) -> bool:
        return all(a.shape == other[n].shape and (a.ndim or a == other[n]) for n, a in first.items())

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
    target = as_strided(memory[inputs.offset(buffer, sizes) :], array.shape, _octets(strides, array.itemsize))
    target[...] = array
    return memory


def _octets(strides: Sequence[int], width: int) -> tuple[int, ...]:
    return tuple(stride * width for stride in strides)
