"""Takes the place of what TileLang does with a kernel after it is written: compile, time, compare, tune."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import tilelang
import tilelang.autotuner.tuner
import tilelang.profiler
from tilelang.jit.kernel import JITKernel

from tlcheck.worker.capture import script_calls
from tlcheck.worker.capture.call_outputs import Kernel, has_addresses, positions
from tlcheck.worker.capture.kernel_recording import Recording
from tlcheck.worker.capture.tape import Tape

_MILLISECONDS = 1.0  # that everything takes
# The name under which a tuner passes the pass configurations of one configuration on; empty where there are none.
_PASS_CONFIGS: str = getattr(tilelang.autotuner.tuner, "_PASS_CONFIGS_KEY", "")


def install(recording: Recording, empty: Callable[..., Any], tape: Tape, max_configs: int) -> None:
    """Send kernels to `recording` from now on. empty: makes an output. tape: is told of calls. max_configs: of an
    autotuned kernel.
    """
    _patch_kernels(recording, empty, tape)
    script_calls.note()
    _patch_profiler()
    _patch_tuner(max_configs)


def _patch_kernels(recording: Recording, empty: Callable[..., Any], tape: Tape) -> None:
    def compile_kernel(self: Any, func: Any, out_idx: Any = None) -> Any:
        call = script_calls.current(func)
        configs = dict(self.pass_configs or {})
        recorded = recording.add(func, configs, call, script_calls.kind_of(getattr(self, "target", None)))
        source = recorded.source
        launch = partial(tape.launch, recorded.number, addressed=has_addresses(func))
        kernel = Kernel(func, positions(out_idx, len(func.params)), empty, launch, source)
        self.artifact = SimpleNamespace(params=_params(func), kernel_source=source, host_mod="", rt_mod=None)
        return kernel

    kernel_class: Any = JITKernel
    kernel_class._compile_and_create_adapter = compile_kernel
    kernel_class.get_kernel_source = lambda self, *args, **kwargs: self.adapter.get_kernel_source()
    kernel_class.get_host_source = lambda self, *args, **kwargs: ""


def _params(func: Any) -> list[Any]:
    from tilelang.engine.param import KernelParam

    buffers = func.buffer_map
    return [KernelParam.from_buffer(buffers[v]) if v in buffers else KernelParam.from_var(v) for v in func.params]


def _patch_profiler() -> None:
    profiler: Any = tilelang.profiler.Profiler
    for name in ("assert_allclose", "assert_consistent", "manual_assert_close", "run_once"):
        setattr(profiler, name, lambda self, *args, **kwargs: None)
    profiler.do_bench = lambda self, func=None, *args, **kwargs: bench(None, *args, **kwargs)
    for module in (tilelang.profiler, getattr(tilelang.profiler, "bench", None)):
        if module is not None and hasattr(module, "do_bench"):
            module.do_bench = bench


def bench(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Call what is timed once, since it may compile. Then give a time, as many as are asked for."""
    if inspect.isfunction(func):
        func()
    quantiles = kwargs.get("quantiles")
    return [_MILLISECONDS] * len(quantiles) if quantiles and len(quantiles) > 1 else _MILLISECONDS


def _patch_tuner(max_configs: int) -> None:
    """Compile the first configurations; the first one that compiles is the best."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        own = getattr(self, "_default_compile", lambda **config: self.compile_args.compile_program(self.fn(**config)))
        compile_function = self.jit_compile or own
        made, problem = [], None
        for config in _configs(self)[:max_configs]:
            try:
                made.append((config, compile_function(**_as_passed(config))))
            except Exception as error:
                problem = error
        if not made:
            raise problem or ValueError("an autotuned kernel without a configuration")
        config, kernel = made[0]
        kernel.latency, kernel.config, kernel.ref_latency = _MILLISECONDS, config, _MILLISECONDS
        return SimpleNamespace(
            latency=_MILLISECONDS,
            config=config,
            ref_latency=_MILLISECONDS,
            libcode=kernel.get_kernel_source(),
            func=kernel.prim_func,
            kernel=kernel,
        )

    tuner: Any = tilelang.autotuner.tuner.AutoTuner
    tuner.run = run


def _as_passed(config: Mapping[str, Any]) -> dict[str, Any]:
    return {_PASS_CONFIGS if _PASS_CONFIGS and key == "pass_configs" else key: value for key, value in config.items()}


def _configs(tuner: Any) -> list[Mapping[str, Any]]:
    """The configurations, or one empty one where the call itself gives what is to be tuned."""
    args, kwargs = _given(tuner)
    configs = tuner.configs
    if callable(configs):
        configs = configs(*args, **kwargs)
    found: list[Mapping[str, Any]] = [
        config if isinstance(config, dict) else _zipped(tuner, config) for config in configs or ()
    ]
    given = {*list(inspect.signature(tuner.fn).parameters)[: len(args)], *kwargs}
    return [{}] if found and given & set(found[0]) else found


def _given(tuner: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the call; older releases keep only the positional ones."""
    given = tuner._kernel_parameters or ((), ())
    if len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], (tuple, dict)):
        return given[0], dict(given[1])
    return tuple(given), {}


def _zipped(tuner: Any, config: Any) -> dict[str, Any]:
    names = list(inspect.signature(tuner.fn).parameters)
    return dict(zip(names, config, strict=False))
