"""Put into a toolchain's interpreter as `sitecustomize`: the CPU stands for the GPU that this machine does not have.

torch says that there is one, whose tensors are the CPU's; what TileLang compiles for it, it compiles for the CPU, and
launches. Everything else, of TileLang and of tlcheck's worker, is as it is with a GPU. For the pinned release.
"""
# mypy: ignore-errors

import sys
from contextlib import nullcontext
from types import SimpleNamespace


def _stand_in() -> None:
    import torch

    properties = SimpleNamespace(
        name="CPU", major=9, minor=0, multi_processor_count=132, total_memory=2**34, L2_cache_size=2**25
    )
    torch.version.cuda = "13.0"
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": (9, 0),
        "get_device_name": "CPU",
        "get_device_properties": properties,
        "synchronize": None,
        "set_device": None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *args, answer=answer, **kwargs: answer)
    torch.cuda.device = nullcontext
    load = torch.load
    torch.load = lambda file, map_location, **options: load(file, map_location="cpu", **options)
    _compile_for_cpu()
    _time_nothing()


def _time_nothing() -> None:
    """There are no events: what is timed is launched, and each is faster than the one before."""
    import tilelang.profiler

    times = iter(range(1000, 0, -1))

    def bench(launch, *args, **kwargs):
        launch()
        return float(next(times))

    tilelang.profiler.do_bench = bench


def _compile_for_cpu() -> None:
    from tilelang.backend.module import create_backend_context
    from tilelang.jit.kernel import JITKernel

    compile_kernel = JITKernel._compile_and_create_adapter

    def compile_here(self, *args):
        names = ("backend_context", "target", "target_host", "execution_backend_spec", "execution_backend")
        before = [getattr(self, name) for name in names]
        context = create_backend_context("c", None, "auto")
        backend = context.execution_backend
        after = (context, context.target, context.target_host, backend, backend.name)
        for name, value in zip(names, after, strict=True):
            setattr(self, name, value)
        try:
            return compile_kernel(self, *args)
        finally:
            for name, value in zip(names, before, strict=True):
                setattr(self, name, value)

    JITKernel._compile_and_create_adapter = compile_here


if any(argument.endswith("__main__.py") for argument in sys.orig_argv):
    _stand_in()
