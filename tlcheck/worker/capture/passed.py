"""Describe what the calls of a script's kernels passed: shapes, numbers, and the values of tensors that torch alone has
made.

Of each kernel a few calls are kept, the most different ones: of other shapes and numbers first, then of other integers.
Values that nobody knows without a launch are left out; whoever executes the kernel draws them.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tlcheck.worker.gpu.case_arrays import as_array

_KEPT = 4  # calls of one kernel
_LOOKED_AT = 16  # calls of one kernel
_BYTES = 1 << 27  # of all that is kept of a script
_LARGEST = 1 << 22  # bytes of a tensor of floats
_LARGEST_INTEGERS = 1 << 25
ABSENT = -1  # the place of a tensor for which None was passed
_STAMP = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class PassedCall:
    """A call. values: of each parameter, None where they are not known. headers: what a NumPy file says of each, None
    for a tensor for which None was passed.

    shape: hash of shapes, dtypes and numbers; integers: hash of the tensors of integers.
    """

    values: tuple[Any, ...]
    headers: tuple[Mapping[str, Any] | None, ...]
    shape: str
    integers: str


class PassedCalls:
    """The calls that are kept. known: the values of a tensor of at most so many bytes, None where nobody knows them.

    wanted: whether any are to be kept; they are counted anyway.
    """

    def __init__(self, known: Callable[[Any, int], Any], *, wanted: bool) -> None:
        self._known, self._wanted, self._left = known, wanted, _BYTES
        self.seen: Counter[str] = Counter()  # calls of each kernel
        self._kept: dict[str, list[PassedCall]] = {}

    def note(self, kernel: str, arguments: Sequence[Any]) -> None:
        """A kernel is about to be launched on these arguments."""
        self.seen[kernel] += 1
        if not self._wanted or not kernel or self.seen[kernel] > _LOOKED_AT or not all(map(_is_passed, arguments)):
            return
        kept = self._kept.setdefault(kernel, [])
        call = self._looked_at(arguments)
        if any((call.shape, call.integers) == (other.shape, other.integers) for other in kept):
            return
        if len(kept) == _KEPT:  # one whose shape another one has makes room for another shape
            shapes = Counter(other.shape for other in kept)
            twice = [other for other in kept if shapes[other.shape] > 1]
            if call.shape in shapes or not twice:
                return
            kept.remove(twice[-1])
            self._left += _bytes(twice[-1])
        if _bytes(call) <= self._left:
            self._left -= _bytes(call)
            kept.append(call)

    def _looked_at(self, arguments: Sequence[Any]) -> PassedCall:
        values: list[Any] = []
        headers: list[Mapping[str, Any] | None] = []
        shape, integers = hashlib.sha256(), hashlib.sha256()
        for argument in arguments:
            if argument is None:
                values.append(None)
                headers.append(None)
                shape.update(b"None;")
                continue
            array = self._array(argument)
            header = _header(argument) if array is None else np.lib.format.header_data_from_array_1_0(array)
            values.append(array)
            headers.append({**header, "fortran_order": False})
            number = "" if torch.is_tensor(argument) else repr(argument)
            shape.update(f"{header['descr']} {header['shape']} {number};".encode())
            if array is not None and array.dtype.kind in "iub":
                integers.update(array.tobytes() + b";")
        return PassedCall(tuple(values), tuple(headers), shape.hexdigest(), integers.hexdigest())

    def _array(self, argument: Any) -> Any:
        """None where the values are not known, or are too many."""
        if not torch.is_tensor(argument):
            return np.asarray(argument)
        most = _LARGEST if argument.is_floating_point() else _LARGEST_INTEGERS
        found = self._known(argument, most)
        return None if found is None else np.ascontiguousarray(as_array(found))

    def write(self, archive: Path, kernels: Collection[str] | None = None) -> dict[str, Any]:
        """Add the calls of these kernels, or of all, to an archive of snapshots. Returns what there is for each: the
        sets, each with the places of its arrays, and with the parameters of which only the header is there.
        """
        found: dict[str, Any] = {}
        for kernel, calls in self._kept.items():
            if not calls or (kernels is not None and kernel not in kernels):
                continue
            file, sets = BytesIO(), []
            for call in calls:
                places, unknown = [], []
                for place, (array, header) in enumerate(zip(call.values, call.headers, strict=True)):
                    places.append(ABSENT if header is None else file.tell())
                    if header is None:
                        continue
                    if array is None:
                        unknown.append(place)
                        np.lib.format.write_array_header_1_0(file, dict(header))
                    else:
                        np.lib.format.write_array(file, array, (1, 0), allow_pickle=False)
                sets.append((places, unknown))
            content = file.getvalue()
            found[kernel] = {"sets": sets, "digest": hashlib.sha256(repr(sets).encode() + content).hexdigest()}
            with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as kept:
                kept.writestr(zipfile.ZipInfo(f"{kernel}.inputs", _STAMP), content, zipfile.ZIP_DEFLATED, 1)
        return found


def _is_passed(argument: Any) -> bool:
    return torch.is_tensor(argument) or isinstance(argument, (bool, int, float, type(None)))


def _header(tensor: Any) -> Mapping[str, Any]:
    """Return what NumPy's file of these values would begin with."""
    empty = as_array(torch.empty(0, dtype=tensor.dtype))
    return {"descr": np.lib.format.dtype_to_descr(empty.dtype), "shape": tuple(tensor.shape)}


def _bytes(call: PassedCall) -> int:
    return sum(array.nbytes for array in call.values if array is not None)
