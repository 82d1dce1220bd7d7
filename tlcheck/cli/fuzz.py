"""`tlcheck fuzz`: kernels that nobody wrote, to find what a release silently gets wrong."""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from tlcheck.cli.interruption import stoppable
from tlcheck.cli.lowered import working
from tlcheck.cli.options import LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, positive, read
from tlcheck.cli.progress import Bar
from tlcheck.config import read_config
from tlcheck.execute.request import Request
from tlcheck.exits import exit_code
from tlcheck.files import make_folder
from tlcheck.fuzz.campaign import Campaign, CampaignPlan
from tlcheck.fuzz.campaign_folder import CampaignFolder
from tlcheck.fuzz.finding_reducer import FindingReducer
from tlcheck.fuzz.remaking import remade
from tlcheck.fuzz.seeds import seeds
from tlcheck.lower.client import processors
from tlcheck.report import fuzz_index, fuzz_text
from tlcheck.targets.lookup import USUAL
from tlcheck.toolchain.resolve import resolve

_TIME = "10m"
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
_REDUCING = 0.5  # of the time, at most, besides
_SECONDS = 120.0  # for each finding


def add_arguments(parser: Parser) -> None:
    parser.add_argument("seeds", nargs="*", metavar="SEED", help="FILE[::FUNCTION] or a folder of kernels to mutate")
    parser.add_argument("--time", type=_seconds, default=_TIME, metavar="T", help="90s, 10m, 8h (default: 10m)")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("fuzz"), metavar="DIR", help="findings and index (default: fuzz)"
    )
    parser.add_argument("--against", metavar="TOOLCHAIN", help="count only kernels that this one gets right")
    parser.add_argument("--from-number", type=int, default=None, metavar="N", help="begin at this kernel's number")
    parser.add_argument(
        "--export", type=Path, metavar="DIR", help="keep snapshots of kernels that agree or are refuted"
    )
    parser.add_argument(
        "--reduce",
        type=positive,
        default=_SECONDS,
        metavar="S",
        help="seconds to reduce each new finding (default: 120)",
    )
    parser.add_argument("--no-reduce", action="store_true", help="leave kernels as they were found")
    parser.add_argument("--show", type=int, metavar="N", help="write the kernel that has this number in the log")
    add_lowering_arguments(parser, archs=",".join(USUAL))


def run(args: argparse.Namespace) -> int:
    if args.show is not None:
        sys.stdout.write(remade(args.output, args.show, seeds(args.seeds)).text)
        return exit_code()
    config, lowering = read_config(Path.cwd()), read(LoweringOptions, args)
    settings = lowering.settings(config)
    toolchain = resolve(settings.toolchain, settings.requirements)
    against = resolve(args.against, settings.requirements) if args.against else None
    folder = CampaignFolder(args.output, " ".join((settings.toolchain, *lowering.pass_configs)))
    if args.from_number is not None:
        folder.begin_at(args.from_number)
    if args.export is not None:
        make_folder(args.export)
    plan = CampaignPlan(
        toolchain, settings.arch or USUAL, seeds(args.seeds), against, args.export, settings.pass_configs
    )
    with stoppable() as interruption, working(loudness=settings.loudness) as (place, bar):
        campaign = Campaign(plan, folder, settings.jobs or processors(), lambda f: _tell(bar, f))
        interruption.add(campaign.stop)
        try:
            campaign.run(args.time)
            if not args.no_reduce:
                reducer = FindingReducer(
                    settings,
                    Request(),
                    folder,
                    place,
                    bar,
                    args.reduce,
                    interruption.add,
                    lambda: bool(interruption.number),
                )
                reducer.run(time.monotonic() + max(args.reduce, _REDUCING * args.time))
        finally:
            folder.save()
            fuzz_index.write(folder)
    fuzz_text.write(sys.stdout, folder)
    new = any(f.against != "refuted" for f in folder.state.unknown)
    return interruption.code(exit_code(found=new, unchecked=not folder.state.sorts))


def _tell(bar: Bar, folder: CampaignFolder) -> None:
    """Show how far it is."""
    state = folder.state
    new = sum(1 for f in state.found if f.sort == "refuted")
    bar.stage(f"kernel {sum(state.sorts.values()):,}: {state.sorts['agreed']:,} agreed, {new} findings")


def _seconds(text: str) -> float:
    """A time with its unit, as an option's value."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if found is None or not float(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no time: give 90s, 10m or 8h")
    return float(found[1]) * _UNITS[found[2]]
