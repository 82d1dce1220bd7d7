"""Watches TileLang where there is a GPU: what it compiles is recorded, and the first call of each kernel kept.

TileLang's compiler, profiler, tuner and launches do all that they do without this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tilelang.autotuner.tuner
from tilelang.jit.kernel import JITKernel

from tlcheck.worker.capture import script_calls
from tlcheck.worker.capture.kernel_recording import RecordedKernel, Recording
from tlcheck.worker.capture.observation import Keeper, Parameters

_CALL = "_tlcheck_call"  # attribute of a kernel: the `Call` that it comes from
_LAUNCH = "_tlcheck_launch"


class LiveWatch:
    """A record of what is watched in one process. keeper: None where calls are not kept."""

    def __init__(self, recording: Recording, keeper: Keeper | None) -> None:
        self._recording, self._keeper = recording, keeper
        self._tuning = 0  # tuners that run: of what they try, only what they choose is recorded
        self._kept: set[str] = set()

    def install(self) -> None:
        """Watch from now on."""
        script_calls.note()
        self._watch_compiler()
        self._watch_launches()
        self._watch_tuner()

    def _watch_compiler(self) -> None:
        """A kernel is recorded before it is compiled, which may fail."""
        kernel_class: Any = JITKernel
        compile_kernel = kernel_class._compile_and_create_adapter

        @functools.wraps(compile_kernel)
        def compile_watched(kernel: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
            setattr(kernel, _CALL, script_calls.current(func))
            if not self._tuning:
                self._record(kernel)
            return compile_kernel(kernel, func, *args, **kwargs)

        kernel_class._compile_and_create_adapter = compile_watched

    def _watch_launches(self) -> None:
        """However a kernel is made, its function is set last, and is what its adapter calls as well."""

        def launch(kernel: Any) -> Any:
            return kernel.__dict__.get(_LAUNCH)

        def set_launch(kernel: Any, function: Callable[..., Any]) -> None:
            if not hasattr(kernel, _CALL):  # not compiled: from a cache
                setattr(kernel, _CALL, script_calls.current(kernel.prim_func))
            watched = self._watched(kernel, function) if self._keeper else function
            kernel.__dict__[_LAUNCH] = kernel.adapter.func = watched
            if not self._tuning:
                self._record(kernel)

        kernel_class: Any = JITKernel
        kernel_class.torch_function = property(launch, set_launch)

    def _watch_tuner(self) -> None:
        tuner: Any = tilelang.autotuner.tuner.AutoTuner
        run = tuner.run

        @functools.wraps(run)
        def run_watched(*args: Any, **kwargs: Any) -> Any:
            self._tuning += 1
            try:
                found = run(*args, **kwargs)
            finally:
                self._tuning -= 1
            if isinstance(getattr(found, "kernel", None), JITKernel):
                self._record(found.kernel)
            return found

        tuner.run = run_watched

    def _watched(self, kernel: Any, launch: Callable[..., Any]) -> Callable[..., Any]:
        """Keeps the first call, and is gone from then on: what a script measures later is the kernel alone."""
        assert self._keeper is not None
        keeper = self._keeper

        @functools.wraps(launch)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._tuning or kwargs:
                return launch(*args, **kwargs)
            number = self._record(kernel).number
            if not number or number in self._kept:
                result, settled = launch(*args), True
            else:
                result, settled = keeper.call(number, _parameters(kernel), launch, args)
            if settled:
                self._kept.add(number)
                kernel.__dict__[_LAUNCH] = kernel.adapter.func = launch
            return result

        return watched

    def _record(self, kernel: Any) -> RecordedKernel:
        configs = dict(kernel.pass_configs or {})
        return self._recording.add(
            kernel.prim_func, configs, getattr(kernel, _CALL), script_calls.kind_of(kernel.target)
        )


def _parameters(kernel: Any) -> Parameters:
    """Return arguments by the names that the kernel's author gave them."""
    func, buffers = kernel.prim_func, kernel.prim_func.buffer_map
    names = tuple(str((buffers[p] if p in buffers else p).name) for p in func.params)  # noqa: SIM401 - TVM's map
    return Parameters(names, tuple(int(place) % len(names) for place in kernel.adapter.result_idx or ()))
