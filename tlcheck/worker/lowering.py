"""Lowering with a pass instrument that keeps the modules at the checkpoints."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tilelang
import tilelang.transform
from tilelang import tvm

from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.targets.target import AMD
from tlcheck.worker.assumed_device import known_target
from tlcheck.worker.failures import PassError, RequestError
from tlcheck.worker.shared_memory import MERGE, UNMERGED

# LayoutReducer, where it exists, directly precedes LayoutInference; in 0.1.7.post2 it drops the annotations of tile
# operators.
_BEFORE = {
    "tl.LayoutReducer": Checkpoint.INTENT,
    "tl.LayoutInference": Checkpoint.INTENT,
    "tl.LowerTileOp": Checkpoint.TILE_OPS,
    MERGE: UNMERGED,
}
_AFTER = {
    "tl.LowerTileOp": Checkpoint.LOWER_TILE_OP,
    "tl.DecoupleTypeCast": Checkpoint.TYPE_CAST,
    "tl.VectorizeLoop": Checkpoint.VECTORIZE_LOOP,
}
_HAS_TYPE_CAST = hasattr(tilelang.transform, "DecoupleTypeCast")
_PYTHON_PASS = "pass_fn"


@dataclass(frozen=True)
class LoweredModules:
    """modules: checkpoint -> IRModule, in pipeline order. passes: checkpoint -> name of its pass. cuda: the source."""

    modules: Mapping[str, Any]
    passes: Mapping[str, str]
    cuda: str


class _Recorder:
    """Follows the passes. Passes that run inside another one are counted, never recorded."""

    def __init__(self, every_pass: bool) -> None:
        self.modules: dict[str, Any] = {}
        self.passes: dict[str, str] = {}
        self._every_pass = every_pass
        self._depth = 0
        self._given: tuple[str, Any] | None = None  # the pass that runs, and what it was given

    def before(self, module: Any, name: str) -> None:
        if self._depth == 0:
            self._given = name, module
        if self._depth == 0 and not self._every_pass:
            self._keep(Checkpoint.SOURCE, module, name)  # the first pass gets the source
            self._keep(_BEFORE.get(name), module, name)
        elif self._depth == 0 and not self.modules:
            self._keep("000-input", module, "")
        self._depth += 1

    def after(self, module: Any, name: str) -> None:
        self._depth -= 1
        if self._depth:
            return
        self._given = None
        self._last = module, name
        self._keep(f"{len(self.modules):03}-{name}" if self._every_pass else self._checkpoint(name), module, name)

    def finish(self) -> None:
        """The last pass before code generation works on the device functions alone."""
        if not self._every_pass:
            self._keep(Checkpoint.DEVICE_TIR, *self._last)

    def broken(self) -> PassError | None:
        """The pass that was running when something was raised, with what there was until then."""
        if self._given is None:
            return None
        name, module = self._given
        last = {} if self._every_pass else {f"before-{name}": module}
        self.passes |= dict.fromkeys(last, name)
        return PassError(name, {**self.modules, **last})

    def _checkpoint(self, name: str) -> str | None:
        """DecoupleTypeCast is written in Python up to 0.1.13, and the only such pass between these two."""
        between = Checkpoint.LOWER_TILE_OP in self.modules and Checkpoint.VECTORIZE_LOOP not in self.modules
        if name == _PYTHON_PASS and _HAS_TYPE_CAST and between:
            return Checkpoint.TYPE_CAST
        return _AFTER.get(name)

    def _keep(self, checkpoint: str | None, module: Any, name: str) -> None:
        if checkpoint is not None and checkpoint not in self.modules:
            self.modules[str(checkpoint)] = module  # TVM takes plain text as keys
            self.passes[str(checkpoint)] = name


def make_target(arch: str) -> Any:
    """The TVM target. Raises RequestError for an arch that this release does not know, or makes no code for."""
    wanted = known_target(arch)
    if wanted.family == AMD and tvm.get_global_func("target.build.tilelang_hip_without_compile", True) is None:
        raise RequestError(f"this release makes no code for {arch}", "target")
    try:
        return tvm.target.Target(wanted.tvm)
    except Exception as error:
        raise RequestError(f"this release has no target for {arch}: {error}") from error


def lower(prim_func: Any, pass_configs: Mapping[str, Any], target: Any, every_pass: bool) -> LoweredModules:
    """Lower as the JIT function would, but for compiling anything. Raises PassError, and what TileLang raises."""
    recorder = _Recorder(every_pass)
    instrument = _instrument(recorder)
    try:
        with tvm.transform.PassContext(opt_level=3, config=dict(pass_configs), instruments=[instrument]), target:
            artifact = tilelang.lower(prim_func, target=target, enable_host_codegen=False, enable_device_compile=False)
    except Exception as error:
        broken = recorder.broken()
        if broken is None and _is_of_code_generation(error):
            recorder.finish()
            broken = PassError("code generation", recorder.modules)
        if broken is None:
            raise
        raise broken from error
    recorder.finish()
    return LoweredModules(recorder.modules, recorder.passes, artifact.kernel_source)


def _is_of_code_generation(error: BaseException) -> bool:
    """Whether an exception comes from what follows the passes."""
    return any(frame.name.startswith("device_codegen") for frame in traceback.extract_tb(error.__traceback__))


def _instrument(recorder: _Recorder) -> Any:
    @tvm.instrument.pass_instrument
    class Instrument:
        def run_before_pass(self, module: Any, info: Any) -> None:
            recorder.before(module, info.name)

        def run_after_pass(self, module: Any, info: Any) -> None:
            recorder.after(module, info.name)

    return Instrument()


def graph_text(node: Any) -> str:
    """The node graph of what TVM can write as JSON. Raises what TVM raises where it cannot.

    `tvm.ir.save_json` writes the same nodes with indentation, which is half of the text and a fifth of the time.
    """
    try:
        from tvm_ffi import serialization
    except ImportError:  # 0.1.6
        return str(tvm.ir.save_json(node))
    return str(serialization.to_json_graph_str(node))


def save(modules: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """All modules as one JSON graph with shared nodes, and checkpoint -> why it could not be saved."""
    try:
        return graph_text(dict(modules)), {}
    except Exception:
        problems = {name: problem for name, module in modules.items() if (problem := _problem(module))}
    return graph_text({name: modules[name] for name in modules if name not in problems}), problems


def _problem(module: Any) -> str:
    """Return why a module cannot be saved; empty if it can."""
    try:
        graph_text(module)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""
