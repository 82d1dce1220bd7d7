"""Kernels of Triton, where it is installed: as TileLang's, they are not launched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tlcheck.worker import triton_driver


def install(launched: Callable[[Sequence[Any]], None], bench: Callable[..., Any]) -> None:
    """launched: is told of the arguments of a kernel, which may write what it is given. bench: in Triton's place."""

    def launch(*args: Any, **kwargs: Any) -> None:
        launched([*args, *kwargs.values()])

    def change_kernels(module: Any) -> None:
        module.KernelInterface.__getitem__ = lambda self, grid: launch
        module.JITFunction.run = lambda self, *args, **kwargs: launch(*args, **kwargs)

    def change_tuner(module: Any) -> None:
        module.Autotuner.run = lambda self, *args, **kwargs: launch(*args, **kwargs)

    def change_testing(module: Any) -> None:
        module.do_bench = module.do_bench_cudagraph = bench

    changes = {
        "triton.runtime.jit": change_kernels,
        "triton.runtime.autotuner": change_tuner,
        "triton.testing": change_testing,
    }
    triton_driver.change(changes)
