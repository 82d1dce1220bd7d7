"""Times of a kernel and of its torch baselines, in milliseconds on the device."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tlcheck.files import put
from tlcheck.worker.gpu import draws
from tlcheck.worker.gpu.loaded_case import CompiledKernel, LoadedCase
from tlcheck.worker.gpu.task import Rounds, TimeTask

_FLUSH_BYTES = 256 * 2**20  # written before each launch: several times any L2; and the host runs ahead meanwhile
_ROUNDS = 10
_ROUND_MS = 15.0
_LAUNCHES = (3, 40)  # at least and at most in a round
_SETS = (2, 6)  # of inputs that are rotated
_TURN_SECONDS = 300.0

Launch = Callable[[], Any]


@dataclass(frozen=True)
class Contender:
    """A contender that is timed: one launch for each set of inputs. name: empty for the kernel."""

    name: str
    launches: Sequence[Launch]


class Clock:
    """CUDA events around one launch at a time, with a cold L2."""

    def __init__(self) -> None:
        self._flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def measure(self, contender: Contender, count: int) -> list[float]:
        """Milliseconds of `count` launches, the inputs rotated."""
        pairs = []
        for number in range(count):
            launch = contender.launches[number % len(contender.launches)]
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._flush.fill_(number % 251)
            start.record()
            launch()
            end.record()
            pairs.append((start, end))
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]


def measure(subject: LoadedCase, compiled: CompiledKernel, task: TimeTask) -> dict[str, Any]:
    """Times of the kernel and, where no other process takes turns, of the baselines; bytes and operations declared."""
    # sets of inputs whose tensors together are larger than the L2, as far as a few sets can be
    (_, variant), *_ = draws.variants(subject.case, exact=False)
    first = draws.make(subject, variant, 0, task.device)
    count = min(max(_FLUSH_BYTES // max(1, _bytes(first)), _SETS[0]), _SETS[1])
    sets = [first, *(draws.make(subject, variant, seed, task.device) for seed in range(1, count))]
    contenders = [Contender("", [partial(compiled.launch, *values) for values in sets])]
    refused: dict[str, str] = {}
    if task.rounds is None:
        contenders += _baselines(subject, sets, refused)
    clock = Clock()
    counts: dict[str, int] = {}
    samples: dict[str, list[list[float]]] = {contender.name: [] for contender in contenders}
    for _ in _turns(task.rounds, task.limit):
        counts = counts or {contender.name: _launches(clock, contender) for contender in contenders}
        for contender in contenders:
            samples[contender.name].append(clock.measure(contender, counts[contender.name]))
    case = subject.case
    bytes_moved = _number(case.traffic, subject.args) if case.traffic is not None else _bytes(sets[0])
    return {
        "times": {name: _summary(rounds) for name, rounds in samples.items()},
        "bytes": bytes_moved,
        "flops": _number(case.flops or 0, subject.args),
        "sets": len(sets),
        "refused": refused,
    }


def _bytes(values: Sequence[Any]) -> int:
    return sum(value.numel() * value.element_size() for value in values if torch.is_tensor(value))


def _baselines(subject: LoadedCase, sets: Sequence[Sequence[Any]], refused: dict[str, str]) -> Iterator[Contender]:
    """Two sets of inputs each: a baseline may keep intermediate results for each. refused: why torch cannot do it."""
    for name, baseline in subject.case.baselines.items():
        try:
            launches = [baseline(subject.args, *values) for values in sets[:2]]
            launches[0]()
        except RuntimeError as error:
            refused[name] = str(error).splitlines()[0]
        else:
            yield Contender(name, launches)


def _launches(clock: Clock, contender: Contender) -> int:
    """Warm up, and how many launches make a round."""
    clock.measure(contender, 3)
    once = statistics.median(clock.measure(contender, 5))
    return round(min(max(_ROUND_MS / max(once, 1e-3), _LAUNCHES[0]), _LAUNCHES[1]))


def _turns(rounds: Rounds | None, limit: float) -> Iterator[None]:
    """Once for each round; with another process in turns. Raises TimeoutError where that does not take its turn.

    limit: seconds from the first turn on.
    """
    if rounds is None:
        yield from [None] * _ROUNDS
        return
    file = Path(rounds.turns)
    for number in range(rounds.count):
        turn = 2 * number + rounds.place
        _wait(file, turn)
        if number == 0:
            signal.alarm(max(1, round(limit)))
        yield
        put(file, str(turn + 1))
    _wait(file, 2 * rounds.count)  # the first process holds the GPU's lock for both


def _wait(file: Path, turn: int) -> None:
    deadline = time.monotonic() + _TURN_SECONDS
    while int(file.read_text()) < turn:
        if file.with_suffix(".ended").exists():
            raise TimeoutError("the other toolchain ended early")
        if turn > 1 and time.monotonic() > deadline:  # before the first round the other one may still compile
            raise TimeoutError(f"the other toolchain did not take its turn in {_TURN_SECONDS:g} s")
        time.sleep(1e-3)


def _summary(rounds: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Median and quartiles of all launches, and the median of each round; milliseconds."""
    every = [sample for samples in rounds for sample in samples]
    low, median, high = statistics.quantiles(every, n=4)
    return {
        "median": median,
        "low": low,
        "high": high,
        "launches": len(every),
        "rounds": [statistics.median(samples) for samples in rounds],
    }


def _number(number: Any, args: Mapping[str, Any]) -> int:
    return int(number if isinstance(number, int) else number(args))


def ceilings() -> dict[str, float]:
    """Return what this device reaches: bytes per second of a copy (read and written), operations per second of a
    product.
    """
    clock = Clock()
    source = torch.empty(2**31, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    copy = _median(clock, lambda: target.copy_(source))
    size = 8192
    left, right = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    product = _median(clock, lambda: left @ right)
    return {"bytes_per_second": 2 * 2**31 / copy * 1e3, "flops_per_second": 2 * size**3 / product * 1e3}


def _median(clock: Clock, launch: Launch) -> float:
    contender = Contender("", [launch])
    clock.measure(contender, 3)
    return statistics.median(clock.measure(contender, 10))
