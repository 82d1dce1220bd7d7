"""The environments that tlcheck keeps in the user's cache: what each holds, where it lives, whether it is complete."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import Version

from tlcheck.files import cache_root
from tlcheck.toolchain import loader, releases, stamped_folders

PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHON_TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what an environment holds: two equal recipes make the same environment."""

    name: str  # a release, or a wheel's version and hash
    tilelang: str = field(compare=False)  # what pip is asked for: `tilelang==0.1.7`, or a wheel's path
    pins: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()  # the user's own packages
    torch: str = releases.TORCH

    @property
    def packages(self) -> tuple[str, ...]:
        """All that pip installs into it, beside the shared torch."""
        return (self.tilelang, *self.pins, *self.requirements)

    @property
    def folder(self) -> Path:
        """Return where it is installed: another folder for each set of the user's own packages."""
        own = "-" + _digest("\n".join(self.requirements).encode()) if self.requirements else ""
        return toolchains_root() / f"{self.name}-{PYTHON_TAG}{own}"


@dataclass(frozen=True)
class Environment:
    """A complete environment: a venv with TileLang, its pins, a shared torch and stub CUDA libraries."""

    recipe: Recipe
    folder: Path
    cuda_libraries: tuple[str, ...]  # those that TileLang's own libraries ask the loader for

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def stubs(self) -> Path:
        return self.folder / "stubs"

    def search_path(self) -> list[Path]:
        """Return where its packages are: its own first, then the shared torch."""
        return [site_packages(self.folder), torch_folder(self.recipe.torch)]

    def worker_env(self) -> dict[str, str]:
        """Return what to add to the environment variables of a process that imports TileLang here.

        The user's PYTHONPATH is emptied: compiler developers have their checkout on it, and it would win.
        """
        return {"PYTHONPATH": "", **loader.library_path(self.cuda_libraries, self.search_path(), self.stubs)}


def release_recipe(version: str, requirements: tuple[str, ...] = ()) -> Recipe:
    """A release of the package index; one that is not in the table is tried as it is."""
    return Recipe(version, f"tilelang=={version}", releases.pins_of(version), tuple(sorted(requirements)))


def wheel_recipe(wheel: Path, version: str, requirements: tuple[str, ...] = ()) -> Recipe:
    """A wheel file, known by its content: a rebuilt wheel of the same name is another toolchain."""
    name = f"{version}-wheel-{_digest(wheel.read_bytes())}"
    return Recipe(name, str(wheel.resolve()), releases.pins_of(version), tuple(sorted(requirements)))


def toolchains_root() -> Path:
    return cache_root() / "toolchains"


def torch_folder(version: str) -> Path:
    """The torch that all toolchains of one Python share: torch and what it needs, nothing else."""
    return cache_root() / "torch" / f"{version}-{PYTHON_TAG}"


def torch_folders() -> list[Path]:
    """The shared torches of this Python, complete or not."""
    root = cache_root() / "torch"
    return sorted(path for path in root.glob(f"*-{PYTHON_TAG}") if path.is_dir())


def site_packages(folder: Path) -> Path:
    return folder / "lib" / f"python{PYTHON_VERSION}" / "site-packages"


def find(recipe: Recipe) -> Environment | None:
    """The complete environment of a recipe; None if there is none, or one with other pins."""
    environment = load(recipe.folder)
    return environment if environment and environment.recipe == recipe else None


def load(folder: Path) -> Environment | None:
    """The complete environment in a folder; None if an install was interrupted or its torch is gone."""
    stamp = stamped_folders.read_stamp(folder)
    if stamp is None or stamped_folders.read_stamp(torch_folder(stamp["torch"])) is None:
        return None
    recipe = Recipe(
        stamp["name"], stamp["tilelang"], tuple(stamp["pins"]), tuple(stamp["requirements"]), stamp["torch"]
    )
    return Environment(recipe, folder, tuple(stamp["cuda_libraries"]))


def folders() -> list[Path]:
    """All toolchain folders of this Python, complete or not, oldest release first."""
    root = toolchains_root()
    found = [path for path in root.glob(f"*-{PYTHON_TAG}*") if path.is_dir()] if root.is_dir() else []
    return sorted(found, key=lambda path: (Version(path.name.split("-")[0]), path.name))


def folders_of(name: str) -> list[Path]:
    """The folders of one toolchain: one for each set of the user's own packages."""
    stem = f"{name}-{PYTHON_TAG}"
    return [path for path in folders() if path.name == stem or path.name.startswith(f"{stem}-")]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
