"""Stand-ins: a package index in a folder, with wheels of a few lines for the real pip, and a reporter."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Index:
    """The folder that pip takes all packages from."""

    folder: Path

    def wheel(self, name: str, version: str, files: dict[str, str], requires: tuple[str, ...] = ()) -> Path:
        """Add a pure Python wheel."""
        info = f"{name}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        content = {
            **files,
            f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {other}\n" for other in requires),
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{path},{_digest(text)},{len(text)}\n" for path, text in content.items())
        wheel = self.folder / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in {**content, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
                archive.writestr(path, text)
        return wheel

    def tilelang(self, version: str, source: str = "import torch\n") -> Path:
        """Add a TileLang; `source` is what importing it runs."""
        return self.wheel("tilelang", version, {"tilelang/__init__.py": source}, ("torch",))


def _digest(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


@dataclass
class Steps:
    """A reporter that remembers the steps, and may do something at one."""

    steps: list[str] = field(default_factory=list)
    on_step: Callable[[str], None] = lambda text: None

    def step(self, text: str) -> None:
        self.steps.append(text)
        self.on_step(text)

    def detail(self, text: str) -> None:
        """Nothing to remember."""
