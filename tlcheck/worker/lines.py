"""Source lines of atomics, for the releases whose IR has none (before 0.1.13)."""

from __future__ import annotations

from typing import Any


class CallLines:
    def of(self, prim_func: Any) -> list[int]:
        return []
