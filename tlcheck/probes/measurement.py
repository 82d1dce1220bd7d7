"""One measurement: all calls against the headers of one release, for one arch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tlcheck.probes.compilation import Headers, compile_kernels
from tlcheck.probes.judgement import judge
from tlcheck.probes.ptx import entries
from tlcheck.probes.ptx_machine import UnreadPtxError
from tlcheck.probes.spelling import Dialect, first_line, source
from tlcheck.program.device_library import REFUSED, Behaviour, LibraryCall


def measure(headers: Headers, arch: int, calls: Sequence[LibraryCall]) -> dict[LibraryCall, Behaviour]:
    """Return what the device library does with each call; a call whose PTX is not understood is left out.

    arch: compute capability, as one number. Raises UsageError where nvcc does not run or refuses the headers.
    """
    family = families(calls)
    spelled = source(calls, dialect(headers)).splitlines()

    def remaining(refused: set[int]) -> str:
        kept = [line if i - first_line() + 1 not in refused else "" for i, line in enumerate(spelled)]
        return "\n".join(kept) + "\n"

    compiled = compile_kernels(headers, arch, remaining, first_line(), lambda kernel: family[kernel])
    found = {calls[kernel]: Behaviour(REFUSED, error) for kernel, error in compiled.errors.items()}
    for kernel, entry in entries(compiled.ptx).items():
        number = int(kernel.removeprefix("p"))
        if number not in compiled.errors:
            try:
                found[calls[number]] = judge(calls[number], entry)
            except UnreadPtxError:
                continue
    return found


def dialect(headers: Headers) -> Dialect:
    """Return how the release of these headers spells the calls, as far as its headers show it."""
    text = headers.atomics
    return Dialect(references="AtomicAdd(T1 &" in text, packs="\nAtomicAddx4Ret(half_t" in text)


def families(calls: Sequence[LibraryCall]) -> Mapping[int, list[int]]:
    """Kernel -> the kernels that instantiate the same template: order and memory are no template arguments."""
    groups: dict[LibraryCall, list[int]] = defaultdict(list)
    for number, call in enumerate(calls):
        groups[replace(call, order=0, shared=False)].append(number)
    return {number: groups[replace(call, order=0, shared=False)] for number, call in enumerate(calls)}
