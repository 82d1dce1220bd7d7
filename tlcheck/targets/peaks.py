"""Published peaks of the usual part of an architecture: what no kernel exceeds at the clock that they are of.

Sources: NVIDIA A100 Tensor Core GPU datasheet (SXM4 80 GB, 2021); NVIDIA H100 Tensor Core GPU datasheet (SXM5, 2023),
dense figures. Shared memory: 128 bytes a clock and multiprocessor (CUDA Programming Guide, "Shared Memory": 32 banks of
32 bits), at the clock that the datasheet's figures imply. The highest clock is what `nvidia-smi -q -d CLOCK` says; an
H100 ran a product of matrices at 103 % of the shared memory's rate at 1.83 GHz (results/cost).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BANKED = 128  # bytes a clock of one multiprocessor's shared memory


@dataclass(frozen=True, slots=True)
class Peaks:
    """part: what it is of. memory: bytes a second. tensor: operations a second of tensor cores, by the bits and the
    family of elements. arithmetic: the same of threads. clock: of a multiprocessor, in Hz, that these are of; highest:
    that it can have.
    """

    part: str
    memory: float
    clock: float
    highest: float
    multiprocessors: int
    tensor: Mapping[str, float] = field(default_factory=dict)
    arithmetic: Mapping[str, float] = field(default_factory=dict)

    @property
    def shared(self) -> float:
        """Bytes a second from shared memory."""
        return BANKED * self.clock * self.multiprocessors

    @property
    def boost(self) -> float:
        """Return how many times as fast as published what runs at the multiprocessors' clock may be."""
        return self.highest / self.clock

    def tensor_rate(self, dtype: str) -> float | None:
        """Operations a second on elements of a dtype; None where none is published."""
        for name, rate in self.tensor.items():
            if dtype.startswith(name):
                return rate
        return None


PEAKS: Mapping[str, Peaks] = {
    "sm_80": Peaks(
        "A100 SXM4 80 GB",
        memory=2.039e12,
        clock=1.41e9,
        highest=1.41e9,
        multiprocessors=108,
        tensor={
            "float16": 312e12,
            "bfloat16": 312e12,
            "float32": 156e12,
            "float64": 19.5e12,
            "int8": 624e12,
            "uint8": 624e12,
        },
        arithmetic={"float32": 19.5e12, "float64": 9.7e12},
    ),
    "sm_90": Peaks(
        "H100 SXM5 80 GB",
        memory=3.35e12,
        clock=1.83e9,
        highest=1.98e9,
        multiprocessors=132,
        tensor={
            "float16": 989.4e12,
            "bfloat16": 989.4e12,
            "float32": 494.7e12,
            "float64": 66.9e12,
            "float8": 1978.9e12,
            "int8": 1978.9e12,
            "uint8": 1978.9e12,
        },
        arithmetic={"float32": 66.9e12, "float64": 33.5e12},
    ),
}
