"""pytest, and what it needs, from tlcheck's own environment, for toolchains that have none.

It is pure Python. Tests and `tilelang.testing` need it, and the kernels of a test need `packaging` at times.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from typing import Any

VARIABLE = "TLCHECK_TOOLS"  # site-packages of tlcheck's environment; empty if it has no pytest either
PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup", "tomli", "py")


class BorrowedFinder:
    """Finds these packages, and no other, in one more folder, where no other finder has them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Implement `importlib.abc.MetaPathFinder`."""
        return PathFinder.find_spec(name, [self._folder]) if name in PACKAGES else None

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        """Implement `importlib.abc.MetaPathFinder`: pytest's first line says the version of pluggy."""
        if context.name not in PACKAGES:
            return ()
        return MetadataPathFinder.find_distributions(DistributionFinder.Context(name=context.name, path=[self._folder]))


def install() -> None:
    """Find these packages from now on. What no finder has, a stand-in replaces: that one comes later."""
    folder = os.environ.get(VARIABLE)
    if folder and not any(isinstance(finder, BorrowedFinder) for finder in sys.meta_path):
        sys.meta_path.append(BorrowedFinder(folder))
