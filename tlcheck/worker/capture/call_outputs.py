"""Describe what a kernel's call returns: tensors of the right shape and dtype, without values until somebody asks for
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from tilelang import tvm

from tlcheck.worker.capture.unseen import NoValuesError

_tir = getattr(tvm, "tirx", None) or tvm.tir
_DTYPES = {
    "bool": torch.bool,
    "float8_e4m3": torch.float8_e4m3fn,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "e4m3_float8": torch.float8_e4m3fn,
    "e5m2_float8": torch.float8_e5m2,
    "float8_e8m0fnu": torch.float8_e8m0fnu,
    "float4_e2m1fn": torch.float4_e2m1fn_x2,
    "int4": torch.int8,
    "uint4": torch.uint8,
}


class Kernel:
    """An object that takes the place of TileLang's adapter: called like a kernel, it launches nothing.

    outputs: positions of the parameters that the kernel makes itself. launch: is told of a call's arguments.
    """

    def __init__(
        self,
        prim_func: Any,
        outputs: Sequence[int],
        empty: Callable[..., Any],
        launch: Callable[[Sequence[Any]], None],
        source: str,
    ) -> None:
        self.prim_func = self.func_or_mod = prim_func
        self.result_idx = list(outputs)
        self.params = [prim_func.buffer_map.get(var, var) for var in prim_func.params]
        self._empty, self._launch, self._source = empty, launch, source
        self.func = self.__call__
        self.libpath = self.lib_code = self.kernel_global_source = source

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs: none, one, or a list, as TileLang returns them."""
        inputs = [place for place in range(len(self.params)) if place not in self.result_idx]
        given = [*args, *kwargs.values()]
        if not self.result_idx or len(given) == len(self.params):
            self._launch(given)
            return None
        if len(given) != len(inputs):
            raise ValueError(f"the kernel takes {len(inputs)} inputs, and was called with {len(given)}")
        sizes = self._sizes(dict(zip(inputs, given, strict=True)))
        made = [self._output(self.params[place], sizes) for place in self.result_idx]
        arguments = dict(zip([*inputs, *self.result_idx], [*given, *made], strict=True))
        self._launch([arguments[place] for place in range(len(self.params))])
        return made[0] if len(made) == 1 else made

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The CUDA source."""
        return self._source

    def get_host_source(self) -> str:
        """There is none."""
        return ""

    def _sizes(self, given: dict[int, Any]) -> dict[str, int]:
        """Sizes that are variables of the kernel, by name."""
        sizes: dict[str, int] = {}
        for place, value in given.items():
            param = self.params[place]
            if not hasattr(param, "shape"):
                sizes[str(param.name)] = value
                continue
            for own, actual in zip(param.shape, getattr(value, "shape", ()), strict=False):
                if isinstance(own, _tir.Var):
                    sizes[str(own.name)] = int(actual)
        return sizes

    def _output(self, buffer: Any, sizes: dict[str, int]) -> Any:
        dtype = str(buffer.dtype)
        shape = [_size(dim, sizes) for dim in buffer.shape]
        return self._empty(shape, _DTYPES.get(dtype) or getattr(torch, dtype))


def _size(dim: Any, sizes: dict[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    values: dict[Any, Any] = {}

    def visit(node: Any) -> None:
        if isinstance(node, _tir.Var) and isinstance(sizes.get(str(node.name)), int):
            values[node] = _tir.IntImm(node.dtype, sizes[str(node.name)])

    _tir.stmt_functor.post_order_visit(dim, visit)
    found = tvm.arith.Analyzer().simplify(_tir.stmt_functor.substitute(dim, values))
    if not isinstance(found, _tir.IntImm):
        raise NoValuesError(f"the size {dim} of an output is not known without a launch")
    return int(found.value)


def has_addresses(prim_func: Any) -> bool:
    """Whether a kernel makes pointers of numbers, such as those of a table of tensors (T.make_tensor)."""
    found: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, _tir.Call) and node.dtype == "handle" and str(node.op.name).endswith(".reinterpret"):
            found.append(node)

    _tir.stmt_functor.post_order_visit(prim_func.body, visit)
    return bool(found)


def positions(out_idx: Any, count: int) -> list[int]:
    """`out_idx` as TileLang takes it, as positions from the front."""
    if out_idx is None:
        return []
    found = [out_idx] if isinstance(out_idx, int) else list(out_idx)
    return [int(place) % count for place in found]
