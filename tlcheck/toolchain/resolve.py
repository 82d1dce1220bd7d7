"""Find the interpreter that imports what a user calls a toolchain.

TOOLCHAIN = a release (`0.1.14`) | `pinned` | `latest` | `current` (the active environment) | a path of an interpreter,
a wheel or a checkout.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from tlcheck.errors import UsageError, did_you_mean
from tlcheck.toolchain import environment
from tlcheck.toolchain.checkout import Checkout, read_checkout
from tlcheck.toolchain.environment import Environment, Recipe
from tlcheck.toolchain.index import latest_release
from tlcheck.toolchain.releases import PINNED, RELEASES
from tlcheck.toolchain.trial import try_import

_WORDS = ("pinned", "latest", "current")
Kind = Literal["release", "wheel", "interpreter", "checkout"]


@dataclass(frozen=True)
class Toolchain:
    """One TileLang in one interpreter: the code under test."""

    name: str  # short, for people: `0.1.15`, or a path
    kind: Kind
    python: Path  # the interpreter whose workers import this TileLang
    env: Mapping[str, str] = field(default_factory=dict)  # to add to a worker's environment variables
    checkout: Checkout | None = None  # what is imported in place

    @property
    def commit(self) -> str:
        """The commit of a checkout; empty for everything else."""
        return self.checkout.commit if self.checkout else ""


def resolve(toolchain: str, requirements: Iterable[str] = ()) -> Toolchain:
    """The toolchain of that name, with the user's own packages in it. Raises UsageError if it is not there."""
    if toolchain == "current":
        return Toolchain("current", "interpreter", active_python())
    if recipe := recipe_of(toolchain, requirements):
        kind: Kind = "wheel" if toolchain.endswith(".whl") else "release"
        made = environment.find(recipe)
        if made is None:
            raise UsageError(f"toolchain {toolchain} is not installed: {_advice(toolchain, recipe, kind)}")
        return from_environment(recipe.name, made, kind)
    path = Path(toolchain).expanduser().absolute()
    if path.is_file() and os.access(path, os.X_OK):
        return Toolchain(toolchain, "interpreter", path)
    if checkout := read_checkout(path):
        return _in_place(toolchain, checkout, tuple(requirements))
    raise UsageError(
        f"{toolchain!r} is no toolchain: a release such as {PINNED}, `pinned`, `latest`, `current`, "
        f"or the path of an interpreter, a wheel or a checkout{did_you_mean(toolchain, (*_WORDS, *RELEASES))}"
    )


def recipe_of(toolchain: str, requirements: Iterable[str] = ()) -> Recipe | None:
    """Return how tlcheck makes this toolchain; None for one that it does not make (an interpreter, a checkout,
    nonsense).
    """
    own = tuple(requirements)
    if toolchain.endswith(".whl"):
        return _wheel_recipe(Path(toolchain).expanduser(), own)
    version = {"pinned": lambda: PINNED, "latest": latest_release}.get(toolchain, lambda: toolchain)()
    try:
        return environment.release_recipe(str(Version(version)), own)
    except InvalidVersion:
        return None


def active_python() -> Path:
    """The interpreter of the active environment (venv, conda), else the one that runs tlcheck."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := os.environ.get(variable):
            return Path(prefix) / "bin" / "python"
    return Path(sys.executable)


def from_environment(name: str, made: Environment, kind: Kind = "release") -> Toolchain:
    """The toolchain in one of tlcheck's own environments."""
    return Toolchain(name, kind, made.python, made.worker_env())


def _advice(toolchain: str, recipe: Recipe, kind: Kind) -> str:
    """Return what to do about a toolchain that is not there."""
    oldest = min(RELEASES, key=Version)
    if kind == "release" and Version(recipe.name) < Version(oldest):
        return f"it is older than {oldest}, the first release that tlcheck knows"
    install = f"run `{install_of([toolchain], recipe.requirements)}`"
    if kind != "release" or recipe.name in RELEASES:
        return install
    newest = max(RELEASES, key=Version)
    if Version(recipe.name) > Version(newest):
        is_cut = Version(recipe.name).major > Version(newest).major  # 1.15 for 0.1.15
        close = did_you_mean(recipe.name, RELEASES) if is_cut else ""
        return f"it is newer than {newest}, the newest that tlcheck knows; if there is such a release, {install}{close}"
    return f"tlcheck knows no such release{did_you_mean(recipe.name, RELEASES)}"


def install_of(toolchains: Iterable[str], requirements: Iterable[str] = ()) -> str:
    """The command that installs toolchains, to be pasted into a shell."""
    own = [part for requirement in requirements for part in ("--with", requirement)]
    return shlex.join(["tlcheck", "toolchain", "install", *toolchains, *own])


def _wheel_recipe(wheel: Path, requirements: tuple[str, ...]) -> Recipe:
    if not wheel.is_file():
        raise UsageError(f"no such wheel: {wheel}")
    try:
        name, version, _, _ = parse_wheel_filename(wheel.name)
    except InvalidWheelFilename as error:
        raise UsageError(str(error)) from error
    if name != "tilelang":
        raise UsageError(f"{wheel.name} is a wheel of {name}, not of tilelang")
    return environment.wheel_recipe(wheel, str(version), requirements)


def _in_place(toolchain: str, checkout: Checkout, requirements: tuple[str, ...]) -> Toolchain:
    """A checkout in the environment of its release; without that, in the active one if it imports there."""
    recipe = checkout.recipe(requirements)
    if made := environment.find(recipe):
        python, env = made.python, {**made.worker_env(), "PYTHONPATH": str(checkout.root)}
    else:
        own = [path for path in [os.environ.get("PYTHONPATH")] if path]
        python, env = active_python(), {"PYTHONPATH": os.pathsep.join([str(checkout.root), *own])}
        if try_import(python, env)[0]:
            raise UsageError(
                f"toolchain {toolchain} needs the environment of release {recipe.name}, which is not installed: "
                f"run `{install_of([toolchain], requirements)}`"
            )
    return Toolchain(toolchain, "checkout", python, env, checkout)
