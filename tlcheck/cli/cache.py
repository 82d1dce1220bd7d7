"""`tlcheck cache`: where results of earlier runs are kept, how much there is, and away with it."""

from __future__ import annotations

import argparse

from tlcheck.cache.store import LIMIT, Cache, results_folder
from tlcheck.exits import CLEAN
from tlcheck.verdicts.words import plural


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("info", help="show where results are kept, and their number and size")
    actions.add_parser("clean", help="remove all results; toolchains stay")


def run(args: argparse.Namespace) -> int:
    cache = Cache(results_folder())
    entries, size = cache.size()
    if args.action == "clean":
        cache.clear()
        print(f"removed {plural(entries, 'result')}, {_megabytes(size)}, from {cache.folder}")
    else:
        print(f"{cache.folder}: {plural(entries, 'result')}, {_megabytes(size)} of at most {_megabytes(LIMIT)}")
    return CLEAN


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
