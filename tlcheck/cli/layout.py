"""`tlcheck layout`: a picture of where a buffer's elements lie, or which thread holds them."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tlcheck.cli.lowered import working
from tlcheck.cli.options import CASE_HELP, LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, read
from tlcheck.cli.projects import one_project
from tlcheck.errors import UsageError
from tlcheck.exits import exit_code
from tlcheck.files import make_folder, save
from tlcheck.lower.runs import unique_name
from tlcheck.page import layout_svg
from tlcheck.page.gallery import Gallery, gallery
from tlcheck.page.picture import Picture
from tlcheck.snapshot.text import render_layout
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.results import read_snapshot


def add_arguments(parser: Parser) -> None:
    parser.add_argument("case", metavar="CASE", help=CASE_HELP)
    add_lowering_arguments(parser)
    parser.add_argument("--buffer", default="", metavar="NAME", help="buffer to draw (default: list them)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="FILE.svg, or a folder for several kernels (default: SVG to stdout)",
    )


def run(args: argparse.Namespace) -> int:
    if args.output is not None and not args.buffer:
        lists = shlex.join(["tlcheck", "layout", args.case, *read(LoweringOptions, args).words])
        raise UsageError(f"which buffer? --buffer NAME; `{lists}` lists them")
    failures: list[str] = []
    found = dict(_galleries(args.case, read(LoweringOptions, args), failures))
    if args.buffer:
        _write({name: _picture(name, of, args.buffer) for name, of in found.items()}, args.output)
    else:
        _list(found)
    for failure in failures:
        print(failure, file=sys.stderr)
    return exit_code(unchecked=bool(failures))


def _galleries(case: str, lowering: LoweringOptions, failures: list[str]) -> Iterator[tuple[str, Gallery]]:
    """Return galleries by a name that tells them apart."""
    project = one_project([case], lowering.for_kernel_files)
    settings = lowering.settings(project.config)
    names: dict[str, None] = {}
    with (
        working(loudness=settings.loudness, judging=True) as (folder, watcher),
        checking(settings, Policy(), folder, watcher) as checks,
    ):
        found = sorted(checks.results(project.selections), key=lambda pair: pair[0].run.position)
        for done, result in found:
            run = done.run
            if done.snapshot is not None:
                saved = done.snapshot.name.removesuffix(".json").removesuffix(".snapshot")
                name = unique_name(saved if done.saved else run.slug, names)
                names[name] = None
                yield name, gallery(read_snapshot(done.snapshot), result.claims)
            elif done.failure is not None:
                failures.append(f"{run.case} {run.target} {run.tilelang}: not lowered: {done.failure.message}")


def _picture(name: str, of: Gallery, buffer: str) -> Picture:
    """Raises UsageError where there is none."""
    if buffer not in of.buffers and buffer not in of.layouts:
        raise UsageError(f"{name} has no buffer {buffer!r}; it has {', '.join(sorted(of.buffers))}")
    found = of.picture(buffer)
    if isinstance(found, str):
        raise UsageError(f"{name}: {found}")
    return found


def _write(pictures: Mapping[str, Picture], output: Path | None) -> None:
    """One to the file or standard output, several into a folder. Raises UsageError."""
    if len(pictures) > 1 and (output is None or output.suffix):
        raise UsageError(
            f"{len(pictures)} kernels: name one of them (--arch ARCH, FILE::NAME), or a folder with -o DIR"
        )
    for name, picture in pictures.items():
        if output is None:
            print(layout_svg.render(picture), end="")
        elif output.suffix and not output.is_dir():
            _write_file(picture, output)
        else:
            make_folder(output)
            _write_file(picture, output / f"{name}.{picture.buffer.replace('/', '_')}.svg")


def _write_file(picture: Picture, file: Path) -> None:
    """Raises UsageError for another ending."""
    if file.suffix != ".svg":
        raise UsageError(f"{file}: a picture is a .svg")
    save(file, layout_svg.render(picture))


def _list(found: Mapping[str, Gallery]) -> None:
    """List what there are pictures of."""
    for name, of in found.items():
        print(name)
        for buffer in of.names:
            layout = of.layouts.get(buffer)
            print(f"    {render_layout(layout, buffer) if layout is not None else f'{buffer}: row-major'}")
