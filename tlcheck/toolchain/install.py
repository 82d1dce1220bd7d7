"""Installing a toolchain: venv, shared torch, TileLang with its pins, stubs, and the proof that it imports."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.files import held
from tlcheck.toolchain import environment, imports, index, stamped_folders, stubs
from tlcheck.toolchain.command import CommandError, Reporter, Runner
from tlcheck.toolchain.environment import Environment, Recipe

_OPTIONS = ("--no-input", "--no-compile", "--disable-pip-version-check")


def install(recipe: Recipe, reporter: Reporter) -> Environment:
    """The complete environment of a recipe, made if it is not there. Raises UsageError when it cannot be made."""
    folder = recipe.folder
    with _locked(folder, reporter) as lock:
        if found := environment.find(recipe):
            return found
        stamped_folders.discard(folder)
        try:
            return _build(recipe, Runner(_log(folder), reporter, (lock,)))
        except (CommandError, UsageError) as error:
            stamped_folders.discard(folder)
            why = error if isinstance(error, UsageError) else index.reason(error.output, _missing(recipe)) or error
            raise UsageError(f"cannot install {recipe.name}: {why} (log: {_log(folder)})") from error


def remove(folder: Path, reporter: Reporter) -> None:
    """Remove a toolchain's folder, after an install of it that may be under way."""
    with _locked(folder, reporter):
        stamped_folders.discard(folder)
        _log(folder).unlink(missing_ok=True)


def remove_unused_torch(reporter: Reporter) -> list[Path]:
    """Remove every shared torch of this Python if it has no toolchain left, also none that is being installed."""
    removed = []
    for folder in environment.torch_folders():
        with _locked(folder, reporter):
            if not environment.folders():
                stamped_folders.discard(folder)
                removed.append(folder)
    return removed


def _missing(recipe: Recipe) -> list[str]:
    """List what pip has to find for an environment that is not there."""
    has_torch = stamped_folders.read_stamp(environment.torch_folder(recipe.torch)) is not None
    return [*([] if has_torch else [f"torch=={recipe.torch}"]), *recipe.packages]


def _build(recipe: Recipe, runner: Runner) -> Environment:
    folder = recipe.folder
    index.require_network(_missing(recipe))
    runner.reporter.step("make the environment")
    runner.run([sys.executable, "-m", "venv", "--without-pip", folder])
    # make the shared torch if it is not there, and visible to the environment: pip then counts it as installed
    shared = environment.torch_folder(recipe.torch)
    with _locked(shared, runner.reporter) as lock:
        if stamped_folders.read_stamp(shared) is None:
            stamped_folders.discard(shared)
            runner.reporter.step(f"install torch {recipe.torch}, shared by all toolchains")
            holding = replace(runner, locks=(*runner.locks, lock))
            _pip_install(holding, folder, "--target", shared, f"torch=={recipe.torch}")
            stamped_folders.write_stamp(shared, {"torch": recipe.torch})
    (environment.site_packages(folder) / "tlcheck-torch.pth").write_text(f"{shared}\n")
    runner.reporter.step(" ".join(["install", *recipe.packages]))
    # TileLang, its pins and the user's packages at once; nothing may bring another torch
    constraints = folder / "constraints.txt"
    constraints.write_text(f"torch=={recipe.torch}\n")
    _pip_install(runner, folder, "--constraint", constraints, *recipe.packages)
    made = _stub(Environment(recipe, folder, ()), runner.reporter)
    # show that it works, and leave the byte code of all that is imported behind, whatever the user's setting
    runner.reporter.step("import tilelang")
    env = {"PYTHONDONTWRITEBYTECODE": "", **made.worker_env()}
    begin = time.monotonic()
    runner.run([made.python, "-c", "import tilelang"], env=env, cwd=made.folder)
    stamped_folders.write_stamp(folder, {**asdict(recipe), "cuda_libraries": made.cuda_libraries})
    imports.keep(folder, made.worker_env(), time.monotonic() - begin)
    return made


def _pip_install(runner: Runner, folder: Path, *wanted: str | Path) -> None:
    """tlcheck's own pip, working on the environment: one without a pip of its own is made in a tenth of the time."""
    runner.run([sys.executable, "-m", "pip", "--python", folder, "install", *_OPTIONS, *wanted])


def _stub(made: Environment, reporter: Reporter) -> Environment:
    """Find out which CUDA libraries TileLang's own ask for, and make their stubs."""
    package = environment.site_packages(made.folder) / "tilelang"
    needs = stubs.cuda_needs(sorted(package.glob("lib/*.so")))
    if any(needs.values()):
        reporter.step(f"compile stubs: {' '.join(soname for soname, symbols in needs.items() if symbols)}")
        stubs.compile_stubs(needs, made.stubs)
    return replace(made, cuda_libraries=tuple(needs))


@contextmanager
def _locked(folder: Path, reporter: Reporter) -> Iterator[int]:
    """Keep two installs of one thing apart, by a lock beside the folder.

    Commands started meanwhile must inherit its descriptor: when tlcheck is killed they go on writing, and the next
    install has to wait for them too.
    """
    with held(
        folder.with_name(f".{folder.name}.lock"), lambda: reporter.step("wait for another install to end")
    ) as lock:
        yield lock


def _log(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.log")
