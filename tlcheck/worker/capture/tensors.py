"""Tensors that say they are on a GPU, where there may be none.

All tensors live on the CPU as far as torch is concerned, so that autograd works, and claim to be on the GPU towards
the script. Those with few elements have their values, which scripts compute sizes and indices from; large ones, and all
that kernels write, have only shape, dtype and strides (torch's FakeTensor). Where somebody asks for their values, these
are made from what was done until then (`tape`); if that takes too long, they are told that there are none.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext
from torch.utils._pytree import tree_map

from tlcheck.worker.capture.patience import Patience
from tlcheck.worker.capture.tape import Tape
from tlcheck.worker.capture.torch_operators import Operators
from tlcheck.worker.capture.unseen import NoValuesError

_FEW = 2**20  # elements of a tensor that has its values
_GPU = torch.device("cuda", 0)
_CPU = torch.device("cpu")


class Pretence(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """A mode through which every call of torch's functions goes while it is active."""

    def __init__(self, tape: Tape, patience: Patience) -> None:
        super().__init__()
        self.tape, self.operators, self.patience = tape, Operators(self), patience
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._gpu_draws = torch.Generator("cpu")  # a real GPU has its own: what it draws changes nothing on the CPU

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Answer what would need a device, and have torch do the rest on the CPU."""
        self.patience.require()
        given = dict(kwargs or {})
        if answer := _ANSWERS.get(func):
            return answer(*args, **given)
        if func in _COMPARISONS:
            return self.compared(func, args, given, True)
        if func in _BACKWARD or self.operators.has(func):
            return func(*args, **given)
        given.pop("pin_memory", None)
        if func in _DRAWS and given.get("generator") is None and _names_gpu(given.get("device")):
            given["generator"] = self._gpu_draws
        if func in _PRODUCTS and given.get("out_dtype"):
            func = _product_of_dtype(func, given.pop("out_dtype"))
        placed = tuple(_on_cpu(value, text=func in _MOVES) for value in args)
        return self._call(func, placed, {key: _on_cpu(value, text=key == "device") for key, value in given.items()})

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        """A tensor without values."""
        with torch._C.DisableTorchFunction(), self._fake:
            return torch.empty(tuple(shape), dtype=dtype)

    def compared(self, func: Callable[..., Any], args: Any, kwargs: Any, otherwise: Any) -> Any:
        """Return what a comparison comes to; `otherwise` where the numbers cannot be made."""
        if not self.tape.settle(_tensors((args, kwargs))):
            return otherwise
        try:
            args, kwargs = self._with_values(args), self._with_values(kwargs)
        except NoValuesError:
            return otherwise
        with torch._C.DisableTorchFunction():
            return func(*args, **kwargs)

    def asserted(self, func: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Compare. Floats that are to be equal to the last bit count as such: kernels run here with other roundings."""
        is_exact = kwargs.get("rtol") == 0 == kwargs.get("atol")
        if not (is_exact and any(tensor.is_floating_point() for tensor in _tensors(args))):
            self.compared(func, args, kwargs, None)

    def _call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(func, "__name__", "")
        settled = name in _METADATA or self.tape.settle(_tensors((args, kwargs)))
        if not settled and name in _ASKING:
            raise _unknown(name, self.tape.loss) from self.tape.loss
        made = self._done(func, args, kwargs, name)
        if not settled:
            self.tape.lose(_tensors(made))
        return made

    def _done(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
        if any(isinstance(value, FakeTensor) for value in _tensors((args, kwargs))):
            return self._without_values(func, args, kwargs, name)
        if name.endswith("_") or name in _DIRECT:
            return func(*args, **kwargs)
        with self.tape.trying() as keep:
            try:
                with self._fake:
                    made = func(*args, **kwargs)
            except Exception:
                made = None
            if any(t.numel() > _FEW for t in _tensors(made)):
                keep()
                return made
        return func(*args, **kwargs)

    def _without_values(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, name: str) -> Any:
        if name == "__get__":
            return func(*args, **kwargs)
        if name in _INDEXED:
            # tensors that have their values become numbers and lists of places: they give the result's shape
            index = args[1]
            parts = list(index) if isinstance(index, tuple) else [index]
            plain: list[Any] = []
            for part in parts:
                if isinstance(part, slice):
                    plain.append(slice(*map(_number, (part.start, part.stop, part.step))))
                elif isinstance(part, torch.Tensor) and not isinstance(part, FakeTensor) and part.dtype == torch.bool:
                    plain += part.nonzero(as_tuple=True)
                else:
                    plain.append(_number(part))
            args = (args[0], tuple(plain), *args[2:])
        try:
            with self._fake:
                return func(*args, **kwargs)
        except (RuntimeError, TypeError) as error:
            if not _wants_values(error):
                raise
            if name in _INDEXED and any(isinstance(t, FakeTensor) for t in _tensors(args[1])):
                return self._without_values(func, (args[0], self._with_values(args[1]), *args[2:]), kwargs, name)
            if name in _CHANGING or re.search("[^_]_$", name):
                raise NoValuesError(f"`{name}` of a tensor whose values do not exist without a launch") from error
        # do it on the CPU, with the values made
        try:
            args, kwargs = self._with_values(args), self._with_values(kwargs)
        except NoValuesError as error:
            raise _unknown(name, error) from error
        return func(*args, **kwargs)

    def _with_values(self, value: Any) -> Any:
        """An argument whose tensors have values. Raises NoValuesError."""
        with torch._C.DisableTorchFunction():
            return tree_map(lambda part: self.tape.value(part) if isinstance(part, FakeTensor) else part, value)


def _unknown(name: str, reason: NoValuesError) -> NoValuesError:
    return type(reason)(f"`{name}` of a tensor whose values do not exist without a launch: {reason}")


def _wants_values(error: Exception) -> bool:
    """Whether this is what torch says of a tensor without values."""
    text = str(error)
    return type(error).__name__ in _VALUES_WANTED or any(word in text for word in ("meta", "FakeTensor", "subclasses"))


_VALUES_WANTED = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException")
_DIRECT = {"__get__", "__set__", "__setitem__", "size", "stride", "dim", "numel", "is_contiguous", "element_size"}
_METADATA = _DIRECT - {"__setitem__"}
_CHANGING = {"__setitem__", *(f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "and", "or", "xor", "pow"))}
_ASKING = {"item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__array__"}
_INDEXED = {"__getitem__", "__setitem__"}
_BACKWARD = {torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad}
_PRODUCTS = {torch.mm, torch.bmm, torch.addmm, torch.baddbmm}
_MOVES = {torch.Tensor.to, torch.Tensor.type}
_DRAWS = {torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal}


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors in an argument or result."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _number(value: Any) -> Any:
    real = isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor)
    return value.item() if real and value.dim() == 0 and not value.is_floating_point() else value


def _product_of_dtype(func: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """Return a product of 16-bit floats with a result of another type, which torch has for GPUs alone."""

    @functools.wraps(func)
    def product(*args: Any, **kwargs: Any) -> Any:
        return func(*(arg.float() for arg in args), **kwargs).to(dtype)

    return product


def _on_cpu(value: Any, *, text: bool) -> Any:
    """An argument that names the GPU, as one that names the CPU. text: whether strings and numbers may name it."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return _CPU
    if text and isinstance(value, str) and value.split(":")[0] == "cuda":
        return _CPU
    if text and isinstance(value, int) and not isinstance(value, bool):
        return _CPU
    return value


def _names_gpu(device: Any) -> bool:
    return _on_cpu(device, text=True) is not device


def _same(tensor: Any, *args: Any, **kwargs: Any) -> Any:
    return tensor


def _answer(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def _address(tensor: Any) -> int:
    """Aligned, other for each tensor, and of no use."""
    return id(tensor) * 256


# What would need a device.
_ANSWERS: dict[Any, Callable[..., Any]] = {
    torch.Tensor.cuda: _same,
    torch.Tensor.cpu: _same,
    torch.Tensor.pin_memory: _same,
    torch.Tensor.is_pinned: _answer(False),
    torch.Tensor.data_ptr: _address,
    torch.Tensor.get_device: _answer(0),
    torch.Tensor.device.__get__: _answer(_GPU),  # type: ignore[attr-defined, unused-ignore]
    torch.Tensor.is_cuda.__get__: _answer(True),  # type: ignore[attr-defined, unused-ignore]
    torch.Tensor.is_cpu.__get__: _answer(False),  # type: ignore[attr-defined, unused-ignore]
}
_COMPARISONS = {torch.allclose, torch.Tensor.allclose, torch.equal, torch.Tensor.equal}


def install(tape: Tape, patience: Patience) -> Pretence:
    """Make what torch does outside of its functions say the same. Returns the mode, not yet active."""
    mode = Pretence(tape, patience)
    mode.operators.watch()
    _claim_gpu(tape, mode.operators)
    torch.set_default_device = _answer(None)
    torch.compile = _compile
    torch.Tensor.record_stream = _answer(None)  # type: ignore[method-assign, unused-ignore]  # wants torch's own Stream
    torch.Generator = _Generator  # type: ignore[misc, unused-ignore]
    close = torch.testing.assert_close
    torch.testing.assert_close = lambda *args, **kwargs: mode.asserted(close, args, kwargs)
    add = DeviceContext.__torch_function__
    DeviceContext.__torch_function__ = _unless_gpu(add)  # type: ignore[method-assign, unused-ignore]
    torch.autograd._engine_run_backward = _within(mode, torch.autograd._engine_run_backward)
    function = torch.autograd.function.BackwardCFunction
    function.apply = _settled(tape, function.apply)  # type: ignore[method-assign, unused-ignore]
    return mode


def _within(mode: Pretence, run: Callable[..., Any]) -> Callable[..., Any]:
    """The script's own backward functions run inside of a call of torch's: they are to see the same."""

    def run_within(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return run(*args, **kwargs)

    return run_within


def _settled(tape: Tape, run: Callable[..., Any]) -> Callable[..., Any]:
    """The script's backward functions, of whose gradients torch makes copies and sums where nobody sees it."""

    def run_settled(*args: Any) -> Any:
        made = run(*args)
        tape.settle(_tensors(made))
        return made

    return run_settled


def warm() -> None:
    """Have torch import what its first FakeTensor needs: seconds of work, and the same for all scripts."""
    with FakeTensorMode():
        torch.empty(2) + 1


class _Generator(torch._C.Generator):  # type: ignore[misc, unused-ignore]
    """One for the CPU, whatever device it was made for."""

    def __new__(cls, device: Any = None) -> Any:
        return super().__new__(cls, "cpu")


def _compile(model: Any = None, **options: Any) -> Any:
    """`torch.compile` that leaves everything as it is."""
    return model if model is not None else lambda model: model


def _unless_gpu(add: Callable[..., Any]) -> Callable[..., Any]:
    """`with torch.device("cuda"):` adds nothing."""

    @functools.wraps(add)
    def torch_function(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.device.type == "cuda":
            return func(*args, **(kwargs or {}))
        return add(self, func, types, args, kwargs)

    return torch_function


def _claim_gpu(tape: Tape, operators: Operators) -> None:
    """Have FakeTensor, which answers for its device itself, name the GPU to the script and the CPU to torch.

    tape: is told of what is done without values. operators: those that are the script's own are run.
    """
    own, dispatch = FakeTensor.device, FakeTensorMode.__torch_dispatch__
    inside = [0]

    def device(tensor: Any) -> Any:
        outside = torch._C._is_torch_function_mode_enabled() and torch._C._len_torch_function_stack() > 0
        return _GPU if outside and not inside[0] else own.fget(tensor)

    def torch_dispatch(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if run := operators.implementation(func):
            return run(*args, **(kwargs or {}))
        inside[0] += 1
        try:
            made = dispatch(self, func, types, args, kwargs)
            if inside[0] == 1:
                with torch._C.DisableTorchFunction():
                    tape.note(func, args, kwargs or {}, made)
            return made
        finally:
            inside[0] -= 1

    FakeTensor.device = property(device)  # type: ignore[assignment, unused-ignore]
    FakeTensorMode.__torch_dispatch__ = torch_dispatch  # type: ignore[method-assign, assignment, unused-ignore]
