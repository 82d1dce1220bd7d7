"""Describe what tlcheck needs on this machine, looked at piece by piece: there, working, and what to do."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tlcheck.config import Config
from tlcheck.errors import UsageError
from tlcheck.files import cache_root
from tlcheck.toolchain import environment, loader, releases, stamped_folders, stubs
from tlcheck.toolchain.checkout import at_commit
from tlcheck.toolchain.imports import imports
from tlcheck.toolchain.resolve import Toolchain, from_environment, resolve
from tlcheck.toolchain.trial import try_command, try_import

State = Literal["ok", "absent", "problem"]  # absent: not there, and not needed to check kernels

_PROVER = "import tvm; getattr(tvm, 'sym', None) or tvm.arith; print(tvm.__version__)"


@dataclass(frozen=True)
class Item:
    """One thing looked at."""

    name: str
    state: State
    detail: str
    advice: str = ""


def examine(config: Config) -> Iterator[Item]:
    """Everything, cheap things first. A toolchain takes seconds to import: see `imports`."""
    yield Item("python", "ok", f"{platform.python_version()}, {sys.executable}")
    yield Item("config", "ok", str(config.file) if config.file else "no [tool.tlcheck] above this folder: defaults")
    yield _compiler()
    yield _tool("nvcc", "only needed to compile the generated CUDA")
    yield _driver()
    root = cache_root()
    yield Item("cache", "ok", f"{root}, {_free_bytes(root) / 1e9:.1f} GB free")
    yield _torch()
    yield _prover()
    yield _in_use(config)
    for folder in environment.folders():
        yield _toolchain(folder)


def _compiler() -> Item:
    try:
        return Item("C compiler", "ok", stubs.compiler())
    except UsageError:
        return Item("C compiler", "absent", "needed to install releases up to 0.1.7.post3", "install gcc (or clang)")


def _tool(name: str, purpose: str) -> Item:
    home = os.environ.get("CUDA_HOME")
    found = shutil.which(name, path=f"{home}/bin") if home else None
    found = found or shutil.which(name)
    return Item(name, "ok" if found else "absent", found or purpose)


def _driver() -> Item:
    if not loader.is_loadable("libcuda.so.1"):
        return Item("GPU", "absent", "no CUDA driver: kernels are lowered and checked, not run")
    names, error, _ = try_command(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
    return Item("GPU", "absent" if error else "ok", error or ", ".join(names.splitlines()))


def _free_bytes(folder: Path) -> int:
    """Return the free bytes of the disk that a folder lies on, or will lie on."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free


def _torch() -> Item:
    folder = environment.torch_folder(releases.TORCH)
    if stamped_folders.read_stamp(folder) is None:
        return Item("shared torch", "absent", f"{releases.TORCH} comes with the first `tlcheck toolchain install`")
    return Item("shared torch", "ok", f"{releases.TORCH}, {folder}")


def _prover() -> Item:
    version, error, seconds = try_command([sys.executable, "-c", _PROVER])
    if error:
        return Item("prover", "problem", error, "reinstall tlcheck with its constraints (apache-tvm, apache-tvm-ffi)")
    return Item("prover", "ok", f"apache-tvm {version}, imported in {seconds:.1f} s")


def _in_use(config: Config) -> Item:
    try:
        found = resolve(config.toolchain, config.requirements)
    except UsageError as error:
        return Item("in use", "problem", str(error))
    if found.kind in ("release", "wheel"):
        return Item("in use", "ok", f"{config.toolchain}: {found.python}")  # imported further down
    return _imported("in use", found)


def _toolchain(folder: Path) -> Item:
    made = environment.load(folder)
    if made is None:
        name = folder.name.partition(f"-{environment.PYTHON_TAG}")[0]
        advice = f"run `tlcheck toolchain install {name}` or `tlcheck toolchain remove {name}`"
        return Item(name, "problem", f"an install did not end, or the shared torch is gone: {folder}", advice)
    name = made.recipe.name
    again = f"run `tlcheck toolchain remove {name}`, then `tlcheck toolchain install {made.recipe.name}`"
    toolchain = from_environment(name, made)
    error, seconds, known = imports(toolchain, folder)
    if error:
        return Item(name, "problem", error, again)
    return Item(name, "ok", f"imported{' before' if known else ''} in {seconds:.1f} s, {toolchain.python}")


def _imported(name: str, toolchain: Toolchain) -> Item:
    error, seconds = try_import(toolchain.python, toolchain.env)
    if error:
        return Item(name, "problem", error)
    place = str(toolchain.python)
    if toolchain.checkout:
        place = f"{at_commit(toolchain.name, toolchain.commit)} in {place}"
    return Item(name, "ok", f"imported in {seconds:.1f} s, {place}")
