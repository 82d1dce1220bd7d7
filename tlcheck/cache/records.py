"""Frozen dataclasses as JSON and back: fields are texts, numbers, truth values, None, tuples, mappings from texts, and
dataclasses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def dumps(record: Any) -> bytes:
    """One dataclass as JSON."""
    return json.dumps(asdict(record), separators=(",", ":")).encode()


def loads(kind: type[T], content: bytes) -> T:
    """What `dumps` wrote. Raises ValueError, KeyError or TypeError for what does not fit the type."""
    return cast(T, _read(kind, json.loads(content)))


def _read(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return None if value is None else _read(next(k for k in get_args(kind) if k is not type(None)), value)
    if origin is tuple:
        return tuple(_read(k, item) for k, item in zip(_element_types(kind, len(value)), value, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        return {key: _read(get_args(kind)[1], item) for key, item in value.items()}
    if is_dataclass(kind):
        hints = _hints(cast(Any, kind))
        return cast(Any, kind)(**{field.name: _read(hints[field.name], value[field.name]) for field in fields(kind)})
    return value


def _element_types(kind: Any, count: int) -> tuple[Any, ...]:
    kinds = get_args(kind)
    return (kinds[0],) * count if kinds[-1] is Ellipsis else kinds


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
