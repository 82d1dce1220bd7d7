"""`tlcheck toolchain`: install, list, remove and locate TileLang releases."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.filesize import decimal

from tlcheck.config import Config, read_config
from tlcheck.errors import UsageError
from tlcheck.exits import CLEAN
from tlcheck.toolchain.checkout import read_checkout
from tlcheck.toolchain.environment import Recipe, find, folders, folders_of, load, torch_folders
from tlcheck.toolchain.install import install, remove, remove_unused_torch
from tlcheck.toolchain.install_progress import progress
from tlcheck.toolchain.releases import PINNED
from tlcheck.toolchain.resolve import recipe_of, resolve
from tlcheck.toolchain.stamped_folders import disk_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    install = actions.add_parser(
        "install", help="install releases, `pinned`, `latest`, wheel files, or the environment of a checkout"
    )
    install.add_argument("toolchains", nargs="*", metavar="TOOLCHAIN", help="default: what [tool.tlcheck] names")
    actions.add_parser("list", help="show the installed toolchains, and which one the project uses")
    remove = actions.add_parser("remove", help="remove toolchains, with the packages in them")
    remove.add_argument("toolchains", nargs="+", metavar="TOOLCHAIN", help="such as 0.1.8")
    path = actions.add_parser("path", help="print the path of a toolchain's interpreter")
    path.add_argument("toolchain", metavar="TOOLCHAIN", help="such as 0.1.8")
    for action in (install, path):
        _add_with(action)


def _add_with(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--with",
        dest="requirements",
        action="append",
        default=[],
        metavar="REQUIREMENT",
        help="a package to install too, besides [tool.tlcheck] requirements; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    {"install": _install, "list": _list, "remove": _remove, "path": _path}[args.action](args)
    return CLEAN


def _install(args: argparse.Namespace) -> None:
    named = args.toolchains or [read_config(Path.cwd()).toolchain]
    recipes = [_recipe(toolchain, _requirements(args)) for toolchain in named]
    failures: list[str] = []
    for recipe in dict.fromkeys(recipes):
        try:
            _install_one(recipe)
        except UsageError as error:  # the others may do
            failures.append(str(error))
    if failures:
        raise UsageError("; ".join(failures))


def _install_one(recipe: Recipe) -> None:
    if made := find(recipe):
        print(f"{recipe.name}: already installed in {made.folder}")
        return
    with progress(recipe.name) as reporter:
        made = install(recipe, reporter)
    print(f"{recipe.name}: installed in {made.folder} ({reporter.seconds():.0f} s)")


def _recipe(toolchain: str, requirements: tuple[str, ...]) -> Recipe:
    if recipe := recipe_of(toolchain, requirements):
        return recipe
    if checkout := read_checkout(Path(toolchain).expanduser().absolute()):
        return checkout.recipe(requirements)
    raise UsageError(f"cannot install {toolchain!r}: give a release, `pinned`, `latest`, a wheel or a checkout")


def _requirements(args: argparse.Namespace) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*read_config(Path.cwd()).requirements, *args.requirements]))


def _list(args: argparse.Namespace) -> None:
    """Print a line for each: name, size, folder, what it is to the project, and the user's packages in it."""
    used = _folder_in_use(read_config(Path.cwd()))
    rows = []
    for folder in folders():
        made = load(folder)
        if made is None:
            rows.append((folder.name, folder, "incomplete: install it again"))
            continue
        marks = {"pinned": made.recipe.name == PINNED, "in use": folder == used}
        words = [*(mark for mark, holds in marks.items() if holds), *made.recipe.requirements]
        rows.append((made.recipe.name, folder, ", ".join(words)))
    rows += [("torch", folder, "shared by all") for folder in torch_folders()]
    width = max((len(name) for name, _, _ in rows), default=0)
    for name, folder, said in rows:
        print(f"{name:<{width}}  {decimal(disk_bytes(folder)):>8}  {folder}  {said}".rstrip())


def _folder_in_use(config: Config) -> Path | None:
    """Find the folder of the project's toolchain. `latest` is not looked up: that takes a network."""
    if config.toolchain == "latest":
        return None
    try:
        return _recipe(config.toolchain, config.requirements).folder
    except UsageError:
        return None


def _remove(args: argparse.Namespace) -> None:
    for toolchain in args.toolchains:
        recipe = recipe_of(toolchain)
        found = folders_of(recipe.name if recipe else toolchain)  # a wheel may be gone: by the name that `list` shows
        if not found:
            raise UsageError(f"toolchain {toolchain} is not installed")
        for folder in found:
            with progress(toolchain) as reporter:
                remove(folder, reporter)
            print(f"{toolchain}: removed {folder}")
    with progress("torch") as reporter:
        for folder in remove_unused_torch(reporter):
            print(f"removed {folder}, which no toolchain uses any more")


def _path(args: argparse.Namespace) -> None:
    print(resolve(args.toolchain, _requirements(args)).python)
