"""A reference written for float64, computed in float32: how far a right computation in float32 is from the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class Float32(TorchFunctionMode):  # type: ignore[misc]
    """Within it, torch makes float32 wherever float64 is asked for."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.double:
            return args[0].float()
        narrowed = {key: _narrow(value) for key, value in (kwargs or {}).items()}
        return func(*map(_narrow, args), **narrowed)


def _narrow(value: Any) -> Any:
    return torch.float32 if value is torch.float64 else value
